// The guided list of the demo: what to type, and what to look at. Lines with four spaces are commands.

export interface GuideOptions {
  /** The directory of all data, with the kubeconfigs. */
  readonly rootDir: string
  /** The command that runs kcp. */
  readonly kcp: string
}

interface Step {
  readonly title: string
  readonly commands: readonly string[]
  readonly result: string
}

/** The eight steps; each begins where the one before it has ended. */
export function demoSteps({ rootDir, kcp }: GuideOptions): readonly Step[] {
  const admin = `kubectl --kubeconfig ${rootDir}/admin.kubeconfig`
  return [
    {
      title: 'Apply: run something of your own',
      commands: [`kubectl apply -f ${rootDir}/hello.yaml`, 'kubectl rollout status deployment/hello --timeout=60s'],
      result: 'kcp chooses a member; the pods show up here with its nodes: kubectl get pods -o wide',
    },
    {
      title: 'Logs: read what the frontend says in its member',
      commands: ['kubectl logs deployment/frontend --tail=5'],
      result: 'one line for each request; try exec, too: kubectl exec -it deployment/frontend -- sh',
    },
    {
      title: 'Move: take everything in this namespace to oslo',
      commands: [`${kcp} move namespace/default --to oslo --wait`],
      result: 'new pods serve in oslo before the old ones end in paris; no request of the client fails',
    },
    {
      title: 'Drain: empty oslo, as before its maintenance',
      commands: [`${kcp} move namespace/default --to any`, `${kcp} drain oslo --wait`],
      result: 'the workloads of both teams go to paris, again without a failed request',
    },
    {
      title: 'Lose a member: oslo is back, and paris loses its power',
      commands: [`${kcp} drain oslo --undo`, `${admin} annotate membercluster paris simulation.kcp.dev/power=off`],
      result: 'requests fail now, for the first time; after 40 s kcp declares paris lost and starts everything in oslo',
    },
    {
      title: 'Divide: paris is back, and both members share the frontend',
      commands: [
        `${admin} annotate membercluster paris simulation.kcp.dev/power-`,
        `${admin} wait membercluster paris --for=condition=Ready --timeout=60s`,
        `kubectl patch placement home --type=merge -p '{"spec":{"replicas":{"mode":"Divide"}}}'`,
        'kubectl scale deployment frontend --replicas=4',
      ],
      result: 'two pods run in each: kubectl get pods -o wide; both members answer the client',
    },
    {
      title: 'Quota: the API server of this team refuses what is too much',
      commands: [
        'kubectl create quota few --hard=count/deployments.apps=2',
        'kubectl create deployment one-more --image=demo/hello:1.0',
      ],
      result: 'the second command is refused; team-blue has quotas of its own',
    },
    {
      title: 'Explain: ask for more CPU than there is, and for the reason why nothing happens',
      commands: ['kubectl set resources deployment hello --requests=cpu=100', `${kcp} explain deployment/hello`],
      result: 'what is wrong, and what each filter and score says of each member',
    },
  ]
}

/** The guide as text. */
export function guideText(options: GuideOptions): string {
  const steps = demoSteps(options).map(
    ({ title, commands, result }, i) =>
      `${i + 1}. ${title}\n${commands.map((one) => `    ${one}\n`).join('')}   ${result}\n`,
  )
  return `Type this in another terminal (kubectl is needed: "make kubectl" builds one):

    export KUBECONFIG=${options.rootDir}/kubeconfig

${steps.join('\n')}`
}

/** The commands of the printed guide, by step; the first entry is what comes before the steps. */
export function commandsOfGuide(text: string): readonly (readonly string[])[] {
  const found: string[][] = [[]]
  for (const line of text.split('\n')) {
    if (/^\d+\. /.test(line)) found.push([])
    if (line.startsWith('    ')) found.at(-1)?.push(line.trim())
  }
  return found
}
