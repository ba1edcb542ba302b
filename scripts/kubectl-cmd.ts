// Runs the Kubernetes shell tests of kubectl (test/cmd) against logical clusters.   node scripts/kubectl-cmd.ts
// [--help]
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startInstance } from '#test/integration/kcp-instance.ts'
import { repositoryRoot, startCluster } from '#test/support/index.ts'
import { kubeconfigWithoutPath } from '#test/upstream/kubeconfig-without-path.ts'
import { addPassing, isSkipped, readLists } from '#test/upstream/lists.ts'
import { startWorkloadControllers } from '#test/upstream/workload-controllers.ts'
import { prepare } from '#test/upstream/kubectl-cmd/prepare.ts'
import { runFunction, type FunctionResult } from '#test/upstream/kubectl-cmd/run-functions.ts'

const help = `usage: node scripts/kubectl-cmd.ts [--only TEXT]... [--update] [--clusters N] [--real] [--seconds N]

Runs the functions of test/upstream/kubectl-cmd/passing.txt and fails when one does not pass, or when a function is neither
there nor, with a reason, in not-passing.md beside it.

  --only TEXT    only functions whose name contains TEXT, also those that are not listed as passing
  --update       try the others too, but for those below a heading "Needs ..."; add what passes to passing.txt
  --clusters N   logical clusters that share the work, at once (2)
  --real         all functions against a real kube-apiserver and kube-controller-manager, as upstream starts them
  --seconds N    of one function (240)`

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    update: { type: 'boolean', default: false },
    real: { type: 'boolean', default: false },
    clusters: { type: 'string', default: '2' },
    seconds: { type: 'string', default: '240' },
    help: { type: 'boolean', default: false },
  },
})
const clusters = Number(values.clusters)
const timeoutSeconds = Number(values.seconds)
if (values.help || !(clusters >= 1 && clusters <= 16) || !(timeoutSeconds > 0)) {
  console.error(help)
  process.exit(values.help ? 0 : 2)
}

/** Runs first: it reads all Events, and the other tests cause Events for Deployments without a member. */
const first = ['run_kubectl_events_tests']

const folder = join(repositoryRoot, 'test', 'upstream', 'kubectl-cmd')
const { passing, notPassing } = readLists(folder)
const dir = join(repositoryRoot, '.run', values.real ? 'kubectl-cmd-real' : 'kubectl-cmd')
const abort = new AbortController()
process.once('SIGINT', () => abort.abort(new Error('interrupted')))
const started = performance.now()
const known = new Set<string>()
const results = await runAll()
report()

async function runAll(): Promise<readonly FunctionResult[]> {
  await using stack = new AsyncDisposableStack()
  const kubeconfigs: string[] = []
  if (values.real) {
    const flags = ['--disable-admission-plugins=ServiceAccount']
    const cluster = await startCluster({
      name: 'testcmd',
      controllerManager: true,
      flags: { 'kube-apiserver': flags },
    })
    stack.use(cluster)
    kubeconfigs.push(cluster.kubeconfig)
  } else {
    const kcp = stack.use(await startInstance())
    for (let number = 1; number <= clusters; number++) {
      const tenant = await kcp.tenant(`test-cmd-${number}`, { podSecurity: 'privileged' })
      const { name, kubeconfig } = tenant
      stack.use(await startWorkloadControllers({ kubeconfig, label: name, dir: join(dir, 'log'), nodes: 0 }))
      kubeconfigs.push(kubeconfigWithoutPath(tenant))
    }
  }
  const options = { logDir: join(dir, 'log'), timeoutSeconds, signal: abort.signal }
  const shares = await Promise.all(
    kubeconfigs.map((kubeconfig, index) => prepare(kubeconfig, { ...options, dir: join(dir, String(index + 1)) })),
  )
  for (const name of shares[0]?.copy.functions ?? []) known.add(name)
  const waiting = [...first, ...known].filter((name, index, all) => all.indexOf(name) === index && isWanted(name))
  console.error(`${waiting.length} functions in ${shares.length} clusters at once ...`)
  const done: FunctionResult[] = []
  const work = shares.map(async (share) => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const result = await runFunction(name, share)
      done.push(result)
      console.error(describe(result))
    }
  })
  await Promise.allSettled(work)
  await Promise.all(work)
  return done
}

function isWanted(name: string): boolean {
  if (values.only.length > 0) return values.only.some((text) => name.includes(text))
  if (values.real || passing.includes(name)) return true
  const section = notPassing.find(({ names }) => names.includes(name))
  return values.update && !(section !== undefined && isSkipped(section))
}

function describe({ name, passed, seconds, message, logFile }: FunctionResult): string {
  if (passed) return `passed after ${seconds.toFixed(0)} s: ${name}`
  return `failed after ${seconds.toFixed(0)} s: ${name} (${logFile})\n    ${message.replaceAll('\n', '\n    ')}`
}

/** Prints the results and sets the exit code. */
function report(): void {
  const listed = new Set([...passing, ...notPassing.flatMap(({ names }) => names)])
  const bad = results.filter(({ passed }) => !passed).map(({ name }) => name)
  const added = results.filter(({ name, passed }) => passed && !passing.includes(name)).map(({ name }) => name)
  const lost = values.real ? [] : bad.filter((name) => passing.includes(name))
  const missing = passing.filter((name) => !known.has(name))
  const unlisted = [...known].filter((name) => !listed.has(name) && !added.includes(name))
  for (const name of missing) console.error(`no such function: ${name}`)
  for (const name of unlisted) console.error(`in no list: ${name}`)
  if (values.update && !values.real) addPassing(added, { folder })
  const seconds = ((performance.now() - started) / 1000).toFixed(0)
  console.log(
    `kubectl: ${results.length - bad.length} functions passed, ${bad.length} did not (${lost.length} of them listed as ` +
      `passing) in ${seconds} s; ${passing.length + (values.update ? added.length : 0)} of ${known.size} listed as passing`,
  )
  process.exitCode = lost.length + missing.length + unlisted.length > 0 ? 1 : 0
}
