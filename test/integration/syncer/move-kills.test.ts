// A move while processes of ours are killed, each at a state of the move: `kcp apiserver` and `kcp operator`, which
// runs the syncers too, in front of a real host, with two members whose pods only report that they run. A Service of
// the workload must never be without an endpoint that lives. One state per process; `make test-long` takes all.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { createClient, createInformer, httpTransport, loadKubeconfig, type Informer } from '#client/index.ts'
import { placedOn, type CopyState } from '#crds/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { isLongRun, runKcp, startCluster, waitFor, type Cluster, type ManagedProcess } from '#test/support/index.ts'
import { startReplicas, type ReplicaSet } from '#test/integration/replicas.ts'
import { clientOf } from './ordinary-upstream.ts'
import { simulateKubelet } from './played-member.ts'

const namespace = 'shop'
const deployments = { group: 'apps', version: 'v1', resource: 'deployments' }
const services = { group: '', version: 'v1', resource: 'services' }
const namespaces = { group: '', version: 'v1', resource: 'namespaces' }
const pods = { group: '', version: 'v1', resource: 'pods' }
const slices = { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' }
const within = { deadlineMs: 90_000, intervalMs: 50 }

type Program = 'apiserver' | 'operator'
/** The state at which a program is killed, of the copy that comes or of the one that goes. */
interface Moment {
  readonly program: Program
  readonly copy: 'new' | 'old'
  readonly state: CopyState
}
const order: readonly CopyState[] = ['Assumed', 'Syncing', 'Applied', 'Available', 'Serving', 'Draining', 'Terminating']
const moments: readonly Moment[] = (['operator', 'apiserver'] as const).flatMap((program) => [
  ...(['Syncing', 'Applied', 'Available', 'Serving'] as const).map(
    (state) => ({ program, copy: 'new', state }) as const,
  ),
  ...(['Draining', 'Terminating'] as const).map((state) => ({ program, copy: 'old', state }) as const),
])
const short = [
  { program: 'operator', copy: 'new', state: 'Serving' },
  { program: 'apiserver', copy: 'old', state: 'Draining' },
] as const

describe('a move during which kcp is killed', function () {
  this.timeout(300_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  const { signal } = life
  const clusters: Record<string, Cluster> = {}
  const outages: string[] = []
  let kcp: ReplicaSet
  let tenant: Informer<KubeObject>
  let annotate: (clusters: string) => Promise<unknown>
  let probe: () => void = () => undefined

  before(async function () {
    this.timeout(300_000)
    const starting = ['east', 'west'].map(async (name) =>
      stack.use(await startCluster({ name, controllerManager: true })),
    )
    kcp = stack.use(await startReplicas(1))
    for (const [index, cluster] of (await Promise.all(starting)).entries()) {
      const { name } = cluster
      clusters[name] = cluster
      simulateKubelet(await clientOf(cluster.kubeconfig, stack), { subnet: `10.9${index}.0`, signal })
      const flags = ['--kubeconfig', cluster.kubeconfig, '--service-network', 'Flat']
      await runKcp(['member', 'join', name, ...flags, '--host-kubeconfig', kcp.host.kubeconfig])
    }
    await kcp.host.kubectl(['wait', '--for=condition=Ready', 'mc/east', 'mc/west', '--timeout=60s'])
    await kcp.create('acme')
    const [replica] = kcp.replicas
    if (replica === undefined) throw new Error('there is no replica')
    const kubeconfig = await kcp.kubeconfig('acme', replica)
    const transport = stack.use(httpTransport(await loadKubeconfig({ file: kubeconfig }, { trusted: true })))
    const client = createClient(transport, { basePath: '' })
    await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }, { signal })
    // It keeps the namespace and its Services in east, where endpoints are watched.
    await client.create(deployments, deployment('client', 'east'), { signal })
    await client.create(deployments, deployment('web', 'east'), { signal })
    const spec = { selector: { app: 'web' }, ports: [{ port: 80 }] }
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace }, spec }
    await client.create(services, service, { signal })
    const backoff = { firstMs: 50, maxMs: 200 }
    tenant = createInformer<KubeObject>({ client, gvr: deployments, backoff, log: silentLogger, signal })
    annotate = (target) => {
      const metadata = { annotations: { 'kcp.dev/clusters': target } }
      return client.patch(deployments, { namespace, name: 'web' }, 'merge', { metadata }, { signal })
    }
    stack.defer(() => life.abort())
    await arrival('east')
    probe = await watchEndpoints()
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  const states = (): Partial<Record<string, CopyState>> => {
    const found = tenant.store.get(`${namespace}/web`)
    const copies = Object.entries(placedOn((found ?? { metadata: {} }) as KubeObject))
    return Object.fromEntries(copies.map(([member, { state }]) => [member, state]))
  }
  const arrival = (member: string): Promise<unknown> =>
    waitFor(() => JSON.stringify(states()) === JSON.stringify({ [member]: 'Serving' }), {
      what: `web to serve in ${member} alone, not ${JSON.stringify(states())}`,
      ...within,
    })

  /** From now on, notes each moment at which east knows no endpoint of the Service that lives. */
  const watchEndpoints = async (): Promise<() => void> => {
    const alive = new Map<string, Informer<KubeObject>>()
    for (const [name, cluster] of Object.entries(clusters)) {
      const client = await clientOf(cluster.kubeconfig, stack)
      alive.set(name, createInformer<KubeObject>({ client, gvr: pods, log: silentLogger, signal }))
    }
    const east = await clientOf(clusters['east']!.kubeconfig, stack)
    const known = createInformer<KubeObject>({ client: east, gvr: slices, log: silentLogger, signal })
    const living = (): Set<string> => {
      const addresses = [...alive.values()].flatMap(({ store }) =>
        store.list().flatMap(({ metadata, status }) => {
          const { podIP } = (status ?? {}) as { podIP?: string }
          return podIP === undefined || metadata.deletionTimestamp !== undefined ? [] : [podIP]
        }),
      )
      return new Set(addresses)
    }
    const serving = (): number => {
      const alive = living()
      const ofWeb = known.store
        .list()
        .filter(({ metadata }) => metadata.labels?.['kubernetes.io/service-name'] === 'web')
      const endpoints = ofWeb.flatMap(
        (slice) => (slice['endpoints'] ?? []) as { addresses: string[]; conditions?: { ready?: boolean } }[],
      )
      return endpoints.filter(
        ({ addresses: [address = ''], conditions }) => conditions?.ready !== false && alive.has(address),
      ).length
    }
    await waitFor(() => serving() > 0, { what: 'the first endpoint', ...within })
    const check = (): void => {
      if (serving() === 0) outages.push(JSON.stringify(states()))
    }
    for (const informer of [known, ...alive.values()]) informer.onChange(check)
    return check
  }

  const kill = async ({ program, copy, state }: Moment, to: string, from: string): Promise<void> => {
    const processes: Record<Program, ManagedProcess | undefined> = {
      operator: kcp.operator,
      apiserver: kcp.replicas[0]?.process,
    }
    const victim = processes[program]
    const rank = (member: string): number => order.indexOf(states()[member] ?? 'Assumed')
    // A state may be passed in the same write as the next one.
    const isThere = (): boolean =>
      copy === 'new' ? rank(to) >= order.indexOf(state) : rank(from) >= order.indexOf(state) || !(from in states())
    const reached = Promise.withResolvers<undefined>()
    const end = tenant.onChange(() => {
      if (isThere()) reached.resolve(undefined)
    })
    await annotate(to)
    const timer = setTimeout(() => reached.reject(new Error(`${state} was not reached`)), within.deadlineMs)
    await reached.promise.finally(() => clearTimeout(timer))
    end()
    await victim?.kill()
    await victim?.start()
  }

  for (const moment of isLongRun ? moments : short)
    it(`arrives, and is never without an endpoint: ${moment.program} killed when the ${moment.copy} copy is ${moment.state}`, async () => {
      const [from, to] = states()['east'] === undefined ? ['west', 'east'] : ['east', 'west']
      await kill(moment, to, from)
      await arrival(to)
      await waitFor(async () => (await copiesIn(from)) === 0, { what: `the copy in ${from} to go`, ...within })
      expect(await copiesIn(to)).to.equal(1)
      probe()
      expect(outages).to.deep.equal([])
    })

  const copiesIn = async (member: string): Promise<number> => {
    const { stdout } = await clusters[member]!.kubectl(['get', 'deployments', '-A', '-o', 'name'])
    return stdout.split('\n').filter((line) => line.endsWith('/web')).length
  }

  const deployment = (name: string, target: string): KubeObject => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace, annotations: { 'kcp.dev/clusters': target } },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'example/c:1' }] } },
    },
  })
})
