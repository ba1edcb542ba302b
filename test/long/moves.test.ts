// Many moves of applications of several kinds under load, all at once, on two real members with pods: no request may
// fail. KCP_TEST_MOVES (default 20): moves of each application. KCP_TEST_MOVE_SECONDS: no move begins later than this
// after the first, so that the test can run in pieces; it prints what was done. KCP_TEST_APPLICATIONS: names of those
// that move, such as `web`; default all. KCP_TEST_DRAIN_SECONDS: how long old pods keep running without new requests.
import { join } from 'node:path'
import { expect } from 'chai'
import { kubectl, needsNodes, repositoryRoot, waitFor, type CommandResult } from '#test/support/index.ts'
import { createLogicalCluster, idOf, installWithoutHost, type Installation } from '#test/e2e/installation.ts'
import { endLabAfterAll, lab, type Lab } from '#test/e2e/lab.ts'
import { startLoad, type Load, type LoadResult } from '#test/e2e/load.ts'
import { answeringPods, documents, namespace, type Manifest } from '#test/e2e/manifests.ts'

const space = 'shop'
const moves = Number(process.env['KCP_TEST_MOVES'] ?? 20)
const seconds = Number(process.env['KCP_TEST_MOVE_SECONDS'] ?? 3600)
const wanted = process.env['KCP_TEST_APPLICATIONS']?.split(',')
const drainSeconds = Number(process.env['KCP_TEST_DRAIN_SECONDS'] ?? 10)

interface Application {
  readonly name: string
  readonly kind: 'Deployment' | 'StatefulSet'
  /** Requests per second, over new connections and over kept ones. */
  readonly load: { readonly fresh: number; readonly kept: number }
  /** What is done just before each move. */
  readonly before?: (move: number) => Promise<unknown>
  readonly more?: readonly Manifest[]
}

endLabAfterAll()

describe('moves under load', function () {
  this.timeout(3_600_000)
  const stack = new AsyncDisposableStack()
  let clusters: Lab
  let installation: Installation
  let alice = ''
  const as = (...args: string[]): Promise<CommandResult> => kubectl(alice, ['-n', space, ...args])

  const all: readonly Application[] = [
    { name: 'web', kind: 'Deployment', load: { fresh: 100, kept: 100 } },
    { name: 'ordered', kind: 'StatefulSet', load: { fresh: 25, kept: 25 } },
    { name: 'scaled', kind: 'Deployment', load: { fresh: 25, kept: 25 }, more: [autoscaler('scaled')] },
    {
      name: 'rolling',
      kind: 'Deployment',
      load: { fresh: 25, kept: 25 },
      before: (move) => as('set', 'env', 'deployment/rolling', `ROUND=${move}`),
    },
  ]
  const applications = all.filter(({ name }) => wanted?.includes(name) !== false)

  before(async function () {
    await needsNodes(this)
    this.timeout(300_000)
    clusters = await lab()
    installation = stack.use(await installWithoutHost(clusters))
    await installation.join(clusters.east)
    await installation.join(clusters.west)
    await kubectl(installation.admin, ['wait', '--for=condition=Ready', 'memberclusters', '--all', '--timeout=60s'])
    await createLogicalCluster(installation, 'acme', 'alice')
    alice = await installation.tenant('acme', 'alice')
    await kubectl(alice, ['apply', '-f', '-'], { input: namespace(space, 'east') })
    await kubectl(alice, ['apply', '-f', join(repositoryRoot, 'config/crd/kcp.dev_placements.yaml')])
    await kubectl(alice, ['wait', '--for=condition=Established', 'crd/placements.kcp.dev', '--timeout=30s'])
    await kubectl(alice, ['apply', '-f', '-'], { input: drainingFor(drainSeconds) })
    // It keeps the namespace and its Services in east, where the requests are sent.
    const objects = applications.flatMap(({ name, kind, more = [] }) => [...serving(name, kind), ...more])
    await kubectl(alice, ['apply', '-n', space, '-f', '-'], {
      input: documents([...serving('anchor', 'Deployment'), ...objects]),
    })
    for (const { name, kind } of applications)
      await as('rollout', 'status', `${kind.toLowerCase()}/${name}`, '--timeout=120s')
  })
  after(async function () {
    this.timeout(120_000)
    await stack.disposeAsync()
  })

  const states = async ({ kind, name }: Application): Promise<string> => {
    const { stdout } = await as(
      'get',
      kind,
      name,
      '-o',
      String.raw`jsonpath={.metadata.annotations.kcp\.dev/placed-on}`,
    )
    const copies = Object.entries(JSON.parse(stdout || '{}') as Record<string, { state: string }>)
    return copies.map(([member, { state }]) => `${member} ${state}`).join()
  }
  const isAt = (application: Application, member: string): Promise<unknown> =>
    waitFor(async () => (await states(application)) === `${member} Serving` || undefined, {
      what: `${application.name} to serve in ${member} alone`,
      deadlineMs: 180_000,
      intervalMs: 1000,
    })
  const startLoads = async ({ name, load: { fresh, kept } }: Application): Promise<Load[]> => {
    const below = `${await idOf(installation, 'acme')}-${space}`
    const get = ['get', 'service', name, '-n', below, '-o', 'jsonpath={.spec.clusterIP}']
    const url = `http://${(await clusters.east.kubectl(get)).stdout}/hostname`
    return [
      await startLoad(clusters.east, url, { perSecond: fresh }),
      await startLoad(clusters.east, url, { perSecond: kept, keepsConnections: true }),
    ]
  }
  /** Moves it to and fro. Resolves with the number of moves. */
  const moveOften = async (application: Application, end: number): Promise<number> => {
    const { name, kind, before } = application
    for (let move = 1; move <= moves; move++) {
      if (performance.now() > end) return move - 1
      const to = move % 2 === 1 ? 'west' : 'east'
      await before?.(move)
      await as('annotate', kind, name, `kcp.dev/clusters=${to}`, '--overwrite')
      await isAt(application, to)
    }
    return moves
  }

  it('fail no request, of a Deployment, a StatefulSet, one with an autoscaler and one whose rollout is under way', async () => {
    for (const application of applications) await isAt(application, 'east')
    const loads = new Map<Application, Load[]>()
    for (const application of applications) loads.set(application, await startLoads(application))
    const end = performance.now() + seconds * 1000
    const ended = await Promise.allSettled(applications.map((application) => moveOften(application, end)))
    const failures: string[] = []
    for (const [index, application] of applications.entries()) {
      const [fresh, kept] = await Promise.all((loads.get(application) ?? []).map((load) => load.stop()))
      const moved = ended[index]
      const count = moved?.status === 'fulfilled' ? String(moved.value) : String(moved?.reason)
      const told = (title: string, result: LoadResult | undefined): string =>
        `${title}: ${result?.sent} sent, ${result?.failed} failed, ${result?.repeated} repeated`
      console.log(
        `      ${application.name}: ${count} moves; ${told('new connections', fresh)}; ${told('kept', kept)}`,
        [...(fresh?.errors ?? []), ...(kept?.errors ?? [])].slice(0, 4),
      )
      for (const one of [fresh, kept])
        failures.push(...(one?.errors ?? ['no result']).map((text) => `${application.name}: ${text}`))
      if (moved?.status === 'rejected') failures.push(count)
    }
    expect(failures).to.deep.equal([])
  })
})

/** Three pods that answer over a Service. */
function serving(name: string, kind: Application['kind']): Manifest[] {
  const labels = { app: name }
  const template = answeringPods(labels)
  const replicas = name === 'anchor' ? { replicas: 1 } : name === 'scaled' ? {} : { replicas: 3 }
  const selector = { matchLabels: labels }
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { selector: labels, ports: [{ port: 80, targetPort: 8080 }] },
    },
    {
      apiVersion: 'apps/v1',
      kind,
      metadata: { name },
      spec: { ...replicas, selector, template, ...(kind === 'StatefulSet' && { serviceName: name }) },
    },
  ]
}

/** A Placement of the tenant that decides nothing but this. */
function drainingFor(seconds: number): Manifest {
  return {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'Placement',
    metadata: { name: 'moves' },
    spec: { move: { drainSeconds: seconds } },
  }
}

function autoscaler(name: string): Manifest {
  const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name }
  const metrics = [
    { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } },
  ]
  const spec = { scaleTargetRef, minReplicas: 3, maxReplicas: 5, metrics }
  return { apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler', metadata: { name }, spec }
}
