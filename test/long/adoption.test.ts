// Twenty applications that ran in a member before kcp, four of them run by an operator, four with a volume for each pod:
// adopted under load, given back, adopted again, moved with their volumes, and the member removed. No pod starts again,
// no request fails, and no line that was written is lost.
import { expect } from 'chai'
import { rm } from 'node:fs/promises'
import {
  agnhostImage,
  kubectl,
  needsNodes,
  runKcp,
  shellImage,
  storageClasses,
  waitFor,
  type Cluster,
} from '#test/support/index.ts'
import { startWidgetOperator, widget, widgetDefinition } from '#test/support/widget-operator.ts'
import { createHelm } from '../e2e/helm.ts'
import { createLogicalCluster, idOf, installWithoutHost, type Installation } from '../e2e/installation.ts'
import { importKcp, kcpImage } from '../e2e/kcp-image.ts'
import { endLabAfterAll, lab, storageOfLab, type Lab } from '../e2e/lab.ts'
import { startLoad, type Load } from '../e2e/load.ts'
import { writeChart } from '../e2e/small-chart.ts'

interface Item {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly uid: string }
  readonly status?: {
    readonly containerStatuses?: readonly { readonly restartCount: number }[]
    readonly conditions?: readonly { readonly type: string; readonly reason: string; readonly message: string }[]
  }
}

const names = Array.from({ length: 20 }, (_, index) => `app-${index}`)
const within = { deadlineMs: 300_000, intervalMs: 1000 }
/** The container of each application that answers requests. */
const server = {
  name: 'web',
  image: agnhostImage,
  args: ['netexec', '--http-port=8080'],
  // Forty pods share the machine with both members: an answer may take more than the usual second.
  readinessProbe: { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 1, timeoutSeconds: 5 },
}

/** Whether an operator of the member runs the application, for a custom resource. */
const isOperated = (index: number): boolean => index % 5 === 4
const isDatabase = (index: number): boolean => index % 4 === 3 && !isOperated(index)

/** Lines with numbers; a pod that starts goes on with the next number, and says so in another file. */
const writing = [
  'cd /data; touch log; n=$(tail -n 1 log); [ -n "$n" ] || n=0',
  'echo "began at $n" >> starts',
  'while true; do n=$((n+1)); echo $n >> log; sync -d log; sleep 0.5; done',
].join('\n')

const of = (apiVersion: string, kind: string, name: string, rest: object): object => ({
  apiVersion,
  kind,
  metadata: { name },
  ...rest,
})

/** StatefulSet `db`, each of whose two pods writes into its volume. */
function database(): object {
  const labels = { app: 'db' }
  const container = {
    ...{ name: 'main', image: shellImage, command: ['sh', '-c', writing] },
    volumeMounts: [{ name: 'data', mountPath: '/data' }],
    readinessProbe: { exec: { command: ['sh', '-c', 'test -s /data/log'] }, periodSeconds: 2 },
  }
  const claim = {
    ...{ accessModes: ['ReadWriteOnce'], storageClassName: storageClasses.late },
    resources: { requests: { storage: '64Mi' } },
  }
  const items = [
    of('v1', 'Service', 'db', { spec: { clusterIP: 'None', selector: labels, ports: [{ name: 'db', port: 5432 }] } }),
    of('apps/v1', 'StatefulSet', 'db', {
      spec: {
        ...{ serviceName: 'db', replicas: 2, selector: { matchLabels: labels } },
        template: { metadata: { labels }, spec: { terminationGracePeriodSeconds: 1, containers: [container] } },
        volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claim }],
      },
    }),
  ]
  return { apiVersion: 'v1', kind: 'List', items }
}

endLabAfterAll()

describe('twenty applications that ran in a member before kcp', function () {
  this.timeout(600_000)
  const stack = new AsyncDisposableStack()
  let clusters: Lab
  let old: Cluster
  let installation: Installation
  let alice = ''
  let id = ''

  before(async function () {
    this.timeout(30 * 60_000) // a cold cache builds the programs of the storage first
    await needsNodes(this)
    clusters = await lab()
    old = clusters.east
    await storageOfLab()
    installation = stack.use(await installWithoutHost(clusters, ['--gateway-image', kcpImage]))
    const volumes = { default: 'Copy', retainSeconds: 5 }
    await kubectl(installation.admin, ['apply', '-f', '-'], {
      input: of('kcp.dev/v1alpha1', 'Placement', 'volumes', { spec: { volumes } }),
    })
    for (const member of [clusters.east, clusters.west]) {
      await importKcp(member)
      await member.kubectl(['apply', '-f', '-'], { input: widgetDefinition() })
      await installation.join(member, 'Flat', ['--export', 'widgets.example.com'])
      const exportedAPIs = [{ group: 'example.com', resource: 'widgets', move: 'BreakBeforeMake' }]
      const patch = JSON.stringify({ spec: { exportedAPIs } })
      await kubectl(installation.admin, ['patch', `mc/${member.name}`, '--type=merge', '-p', patch])
      stack.use(await startWidgetOperator(member.kubeconfig, server))
    }
    await kubectl(installation.admin, ['wait', '--for=condition=Ready', 'memberclusters', '--all', '--timeout=60s'])
    await createLogicalCluster(installation, 'acme', 'alice')
    alice = await installation.tenant('acme', 'alice')
    id = await idOf(installation, 'acme')
    const chart = await writeChart()
    stack.defer(() => rm(chart, { recursive: true, force: true }))
    for (const [index, name] of names.entries()) {
      await old.kubectl(['create', 'namespace', name])
      if (isOperated(index)) {
        const service = { spec: { selector: { widget: 'web' }, ports: [{ port: 80, targetPort: 8080 }] } }
        const items = [widget(name, 'web', 2), of('v1', 'Service', 'web', service)]
        await old.kubectl(['apply', '-n', name, '-f', '-'], { input: { apiVersion: 'v1', kind: 'List', items } })
        await waitFor(async () => (await old.kubectl(['get', 'deploy', '-n', name, '-o', 'name'])).stdout !== '', {
          what: 'the Deployment of the operator',
          ...within,
        })
      } else if (index % 4 === 2) {
        await using helm = await createHelm(name)
        await helm.run(old.kubeconfig, 'install', 'web', chart)
      } else if (index % 4 === 3) await old.kubectl(['apply', '-n', name, '-f', '-'], { input: database() })
      else {
        await old.kubectl(['apply', '-n', name, '-f', '-'], { input: list(index) })
      }
    }
    for (const [index, name] of names.entries())
      await old.kubectl([
        'rollout',
        'status',
        isDatabase(index) ? 'sts/db' : 'deploy/web',
        '-n',
        name,
        '--timeout=300s',
      ])
  })
  after(async function () {
    this.timeout(300_000)
    await kubectl(installation.admin, ['delete', 'lc/acme', '--timeout=200s'], { expectCode: 'any' })
    await old.kubectl(['delete', 'namespace', ...names, '--timeout=100s'], { expectCode: 'any' })
    await stack.disposeAsync()
  })

  /** A Deployment that reads a ConfigMap, its Service, and for some a CronJob. */
  const list = (index: number): object => {
    const labels = { app: 'web' }
    const container = { ...server, envFrom: [{ configMapRef: { name: 'settings' } }] }
    const template = { metadata: { labels }, spec: { containers: [container] } }
    const job = { spec: { restartPolicy: 'Never', containers: [{ name: 'job', image: agnhostImage, args: ['help'] }] } }
    const cron = of('batch/v1', 'CronJob', 'report', {
      spec: { schedule: '0 3 * * *', jobTemplate: { spec: { template: job } } },
    })
    const items = [
      of('v1', 'ConfigMap', 'settings', { data: { INDEX: String(index) } }),
      of('v1', 'Service', 'web', { spec: { selector: labels, ports: [{ port: 80, targetPort: 8080 }] } }),
      of('apps/v1', 'Deployment', 'web', { spec: { replicas: 2, selector: { matchLabels: labels }, template } }),
      ...(index % 4 === 1 ? [cron] : []),
    ]
    return { apiVersion: 'v1', kind: 'List', items }
  }
  const podsIn = async (kubeconfig: string, among: readonly string[] = names): Promise<string[]> => {
    const { stdout } = await kubectl(kubeconfig, ['get', 'pods', '-A', '-o', 'json'])
    return (JSON.parse(stdout) as { items: Item[] }).items
      .filter(({ metadata }) => among.includes(metadata.namespace))
      .map(({ metadata, status }) => {
        const restarts = (status?.containerStatuses ?? []).map(({ restartCount }) => restartCount)
        return `${metadata.namespace}/${metadata.name} ${metadata.uid} ${restarts.join()}`
      })
      .sort()
  }
  const databases = names.filter((_, index) => isDatabase(index))
  /** What the pods of all databases have written: that no line is lost, and how often each pod has started. */
  const expectWritten = async (starts: number): Promise<void> => {
    for (const namespace of databases)
      for (const pod of ['db-0', 'db-1']) {
        const read = async (file: string): Promise<string[]> =>
          (await kubectl(alice, ['exec', '-n', namespace, pod, '--', 'cat', `/data/${file}`])).stdout
            .trimEnd()
            .split('\n')
        // The last line may be written just now.
        const lines = (await read('log')).slice(0, -1)
        const wrong = lines.findIndex((line, index) => Number(line) !== index + 1)
        expect(wrong, `${namespace}/${pod}: the number in line ${wrong + 1} is ${lines[wrong] ?? ''}`).to.equal(-1)
        expect(lines.length).to.be.greaterThan(10)
        expect(await read('starts'), `${namespace}/${pod}`).to.have.length(starts)
      }
  }
  const loads = async (of = ['app-0', 'app-1', 'app-2']): Promise<Load[]> => {
    const started: Load[] = []
    for (const name of of) {
      const { stdout } = await old.kubectl(['get', 'svc', 'web', '-n', name, '-o', 'jsonpath={.spec.clusterIP}'])
      started.push(await startLoad(old, `http://${stdout}/hostname`, { perSecond: 20 }))
    }
    return started
  }
  const expectNoFailure = async (running: readonly Load[]): Promise<void> => {
    for (const load of running) {
      const { failed, sent, errors } = await load.stop()
      expect([failed, errors], `${sent} requests`).to.deep.equal([0, []])
    }
  }
  const adoptAll = async (mode: 'Adopt' | 'Undo', reason: string): Promise<void> => {
    if (mode === 'Adopt')
      await old.kubectl(['label', 'namespace', ...names, `kcp.dev/adoptable-by=${id}`, '--overwrite'])
    const items = names.map((namespace) => ({
      apiVersion: 'kcp.dev/v1alpha1',
      kind: 'Adoption',
      metadata: { name: `east.${namespace}` },
      spec: { member: old.name, namespace, logicalCluster: 'acme', mode },
    }))
    await kubectl(installation.admin, ['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'List', items } })
    const open = async (): Promise<string[]> => {
      const { stdout } = await kubectl(installation.admin, ['get', 'adoptions', '-o', 'json'])
      return (JSON.parse(stdout) as { items: Item[] }).items.flatMap(({ metadata, status }) => {
        const found = status?.conditions?.find(({ type }) => type === 'Adopted')
        return found?.reason === reason ? [] : [`${metadata.name}: ${found?.message ?? ''}`]
      })
    }
    let left: string[] = []
    const done = async (): Promise<boolean> => (left = await open()).length === 0
    await waitFor(done, { what: `all adoptions to be ${reason}`, ...within }).catch((error: unknown) => {
      throw new Error(left.join('\n'), { cause: error })
    })
  }
  /** Pods that an operator has made are the member's own. */
  const untilShown = async (): Promise<void> => {
    const pods = await podsIn(
      old.kubeconfig,
      names.filter((_, index) => !isOperated(index)),
    )
    const same = async (): Promise<boolean> => JSON.stringify(await podsIn(alice)) === JSON.stringify(pods)
    await waitFor(same, { what: 'all pods in the logical cluster', ...within })
  }

  it('are adopted under load: the same pods, no restart, no failed request', async () => {
    const before = await podsIn(old.kubeconfig)
    expect(before).to.have.length(40)
    const running = await loads(['app-0', 'app-1', 'app-2', 'app-4'])
    await adoptAll('Adopt', 'Adopted')
    await untilShown()
    await expectNoFailure(running)
    expect(await podsIn(old.kubeconfig)).to.deep.equal(before)
    await expectWritten(1)
  })

  it('are given back under load, with nothing of kcp left', async () => {
    const before = await podsIn(old.kubeconfig)
    const running = await loads(['app-0', 'app-1', 'app-2', 'app-4'])
    await adoptAll('Undo', 'Undone')
    await expectNoFailure(running)
    expect(await podsIn(old.kubeconfig)).to.deep.equal(before)
    for (const name of names) {
      const { stdout } = await old.kubectl([
        'get',
        'all,cm,sa,pvc,controllerrevisions,widgets',
        '-n',
        name,
        '-o',
        'yaml',
      ])
      const namespace = await old.kubectl(['get', `ns/${name}`, '-o', 'yaml'])
      expect(`${stdout}${namespace.stdout}`, name).not.to.contain('kcp.dev/')
    }
  })

  it('are adopted again, move under load with their volumes, and the member is removed', async function () {
    this.timeout(30 * 60_000)
    await adoptAll('Adopt', 'Adopted')
    const loaded = ['app-0', 'app-1', 'app-2']
    const running = await loads(loaded)
    await kubectl(alice, ['annotate', 'namespace', ...names, 'kcp.dev/clusters=west'])
    const path =
      'jsonpath={range .items[*]}{.metadata.namespace}{" "}{.metadata.annotations.kcp\\.dev/placed-on}{"\\n"}{end}'
    const serving = (among: readonly string[]) => async (): Promise<boolean> => {
      const { stdout } = await kubectl(alice, ['get', 'deployments,statefulsets,cronjobs,widgets', '-A', '-o', path])
      const lines = stdout.split('\n').filter((line) => among.includes(line.slice(0, line.indexOf(' '))))
      return lines.length >= among.length && lines.every((text) => text.includes('"west":{"state":"Serving"'))
    }
    // Once the last workload has left a namespace, the old member has it back, with a Service that leads nowhere.
    const untilServing = async (name: string, load: Load): Promise<void> => {
      await waitFor(serving([name]), { what: `${name} to serve in west`, ...within })
      await expectNoFailure([load])
    }
    await Promise.all(running.map((load, index) => untilServing(loaded[index] ?? '', load)))
    await waitFor(serving(names), { what: 'all workloads to serve in west', ...within, deadlineMs: 900_000 })
    await expectWritten(2)
    await runKcp(['drain', old.name, '--wait', '--timeout', '300', ...installation.flags], { timeoutMs: 320_000 })
    await kubectl(installation.admin, ['delete', `membercluster/${old.name}`, '--timeout=120s'])
    expect(await podsIn(old.kubeconfig)).to.deep.equal([])
    const { stdout } = await old.kubectl(['get', 'namespaces', ...names, '-o', 'yaml'])
    expect(stdout).not.to.contain('kcp.dev/')
  })
})
