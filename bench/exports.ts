// Measures one export with thousands of consumers: time to bind, memory of a binding, the provider's list and watch
// through its view beside the same reads over all logical clusters, and a change of the schema under them.
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sleep } from '#async/index.ts'
import { connectionOf } from './connection.ts'
import { freePort } from '#test/support/index.ts'
import { HeapUsage } from './heap-usage.ts'
import { inParallel } from './in-parallel.ts'
import { startKcpUnderTest, type KcpUnderTest } from './kcp-under-test.ts'
import { openEndpoint, type Endpoint } from './load.ts'
import { firstNamespaces, logicalCluster, logicalClusters } from './logical-clusters.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { residentMiB, withChildren } from './process-usage.ts'
import { median, quantile, rounded } from './statistics.ts'

const consumerCount = Number(process.env['KCP_BENCH_CONSUMERS'] ?? 10_000)
const objectsEach = 10
const atOnce = 16
const lagRounds = 200
const settleMs = 10_000

const apis = '/apis/apis.kcp.io/v1alpha2'
const widgetsOf = (cluster: string): string => `/${cluster}/apis/bench.example.com/v1/namespaces/default/widgets`
const view = '/services/apiexport/provider/widgets/clusters/*'
const allWidgets = '/apis/bench.example.com/v1/widgets'

type MeasureContext = Parameters<Measurement['run']>[0]

export const exportsMany: Measurement = {
  name: 'exports',
  describes: `one export, ${consumerCount} consumers, ${consumerCount * objectsEach} objects: bind, memory, the provider's view`,
  async run(context) {
    const dir = mkdtempSync(join(tmpdir(), 'kcp-bench-exports-'))
    try {
      return { ...(await whileAwake(dir, context)), ...(await whileAsleep(dir, context)) }
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  },
}

/** Binds and uses the export; all consumers are in memory. */
async function whileAwake(dir: string, { signal, say }: MeasureContext): Promise<Numbers> {
  const inspector = await freePort()
  await using kcp = await startKcpUnderTest({ dir, env: { NODE_OPTIONS: `--inspect=127.0.0.1:${inspector}` } })
  await using root = openEndpoint(kcp.adminKubeconfig, { connections: atOnce })
  await using all = openEndpoint(kcp.adminKubeconfig, { connections: atOnce, base: '/clusters' })
  await using own = openEndpoint(kcp.adminKubeconfig, { connections: 2, base: '' })
  const names = Array.from({ length: consumerCount }, (_, i) => `consumer-${i}`)
  await inParallel(['provider', ...names], atOnce, async (name) => {
    await root.json('POST', logicalClusters, logicalCluster(name))
    await firstNamespaces(all, name)
  })
  await publish(all)
  // Fills the window of recent events, which has a fixed size, so that what is measured below is not in it.
  await inParallel(names, atOnce, async (name) => {
    await createConfigMap(all, name, 'first')
    await createConfigMap(all, name, 'second')
    await all.json('DELETE', `${configMapsOf(name)}/second`)
  })
  const pids = withChildren(kcp.pid)
  using heap = await HeapUsage.connect(inspector, signal)
  const aliveKiB = async (): Promise<number> => {
    await sleep(settleMs, signal)
    return (await heap.aliveMiB(signal)) * 1024
  }
  const start = await aliveKiB()
  // The same writes as those of a binding: it is created, and then its status is written.
  await inParallel(names, atOnce, async (name) => {
    await createConfigMap(all, name, 'likebinding', 400)
    await all.json('PUT', `${configMapsOf(name)}/likebinding`, configMap('likebinding'))
  })
  const before = await aliveKiB()
  const bound = await bindAll(all, names, signal)
  const after = await aliveKiB()
  const bytes = (await all.text('GET', `/${names[0] ?? ''}${apis}/apibindings/widgets`)).length
  const [kibEach, kibOfObject] = [(after - before) / consumerCount, (before - start) / consumerCount]
  await inParallel(names, atOnce, async (name) => {
    for (const one of ['first', 'likebinding']) await all.json('DELETE', `${configMapsOf(name)}/${one}`)
  })
  say(
    `bound: ${JSON.stringify(bound)}, ${kibEach.toFixed(2)} KiB each of ${bytes} bytes, ` +
      `${kibOfObject.toFixed(2)} KiB for a ConfigMap of that size`,
  )
  await inParallel(names, atOnce, async (name) => {
    for (let i = 0; i < objectsEach; i++) await createWidget(all, name, i)
  })
  say(`${consumerCount * objectsEach} objects`)
  return {
    ...bound,
    'KiB of live heap per binding': rounded(kibEach),
    'KiB of live heap per ConfigMap of its size': rounded(kibOfObject),
    'KiB of live heap per binding beyond an object of its size': rounded(kibEach - kibOfObject),
    'bytes of a binding': bytes,
    ...(await listsOf(own)),
    ...(await lagsOf(kcp, all, names)),
    ...(await changeOf(all, names, signal)),
    'MiB at the end': rounded(residentMiB(pids)),
  }
}

/**
 * The same after a restart, which leaves all consumers asleep, that is, not in memory: the provider's list and watch must
 * not wake them.
 */
async function whileAsleep(dir: string, { signal }: MeasureContext): Promise<Numbers> {
  await using kcp = await startKcpUnderTest({ dir })
  await using own = openEndpoint(kcp.adminKubeconfig, { connections: 2, base: '' })
  const inMemory = async (): Promise<number> =>
    Number(/^kcp_loaded_logical_clusters (\d+)/m.exec(await own.text('GET', '/metrics'))?.[1] ?? NaN)
  await sleep(settleMs, signal)
  const before = await inMemory()
  const began = performance.now()
  const { items, metadata } = (await own.json('GET', `${view}${allWidgets}`)) as {
    items: unknown[]
    metadata: { resourceVersion: string }
  }
  if (items.length !== consumerCount * objectsEach) throw new Error(`the view has ${items.length} objects`)
  const listed = (performance.now() - began) / 1000
  const seen = new Map<string, number>()
  using watch = watchOf(kcp, `${view}${allWidgets}?watch=1&resourceVersion=${metadata.resourceVersion}`, seen)
  await watch.opened
  const after = await inMemory()
  const mark = `mark-${Math.random()}`
  const sent = performance.now()
  const patch = JSON.stringify({ spec: { text: mark } })
  await own.request('PATCH', `/clusters${widgetsOf('consumer-7')}/w-0`, patch, 'application/merge-patch+json')
  await until(async () => Promise.resolve(seen.has(mark)), 'the event of a consumer that was asleep', signal)
  return {
    'consumers asleep': consumerCount - Math.max(0, before - 2),
    's to list through the view, consumers asleep': rounded(listed),
    'logical clusters that the list and watch woke': after - before,
    'ms from a write in a consumer asleep to its event': rounded((seen.get(mark) ?? 0) - sent),
  }
}

const definition = (properties: object) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.bench.example.com' },
  spec: {
    group: 'bench.example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } } },
      },
    ],
  },
})
const text = { type: 'string' }

async function publish(all: Endpoint): Promise<void> {
  const definitions = '/provider/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  await all.json('POST', definitions, JSON.stringify(definition({ text, size: { type: 'integer' } })))
  const resources = [{ name: 'widgets', group: 'bench.example.com', crd: 'widgets.bench.example.com' }]
  const object = {
    apiVersion: 'apis.kcp.io/v1alpha2',
    kind: 'APIExport',
    metadata: { name: 'widgets' },
    spec: { resources },
  }
  await all.json('POST', `/provider${apis}/apiexports`, JSON.stringify(object))
  await until(async () => (await statusOf(all, 'provider', 'apiexports')).revision === 1, 'the first revision')
}

const binding = JSON.stringify({
  apiVersion: 'apis.kcp.io/v1alpha2',
  kind: 'APIBinding',
  metadata: { name: 'widgets' },
  spec: { reference: { export: { path: 'provider', name: 'widgets' } } },
})

async function bindAll(all: Endpoint, names: readonly string[], signal: AbortSignal): Promise<Numbers> {
  const began = performance.now()
  const elapsed: number[] = []
  await inParallel(names, atOnce, async (name) => {
    const started = performance.now()
    await all.json('POST', `/${name}${apis}/apibindings`, binding)
    await until(async () => (await all.request('GET', widgetsOf(name))).status === 200, `a binding of ${name}`)
    elapsed.push(performance.now() - started)
  })
  const seconds = (performance.now() - began) / 1000
  await until(
    async () => (await statusOf(all, 'provider', 'apiexports')).updatedConsumers === names.length,
    'the count of consumers',
    signal,
  )
  return {
    'bind to served p50 ms': rounded(median(elapsed)),
    'bind to served p99 ms': rounded(quantile(elapsed, 0.99)),
    'bindings/s': rounded(names.length / seconds),
  }
}

const configMapsOf = (cluster: string): string => `/${cluster}/api/v1/namespaces/default/configmaps`

/** With the default size, a ConfigMap is as large as a binding. */
function configMap(name: string, size = 2350): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { text: 'x'.repeat(size) } })
}

async function createConfigMap(all: Endpoint, cluster: string, name: string, size?: number): Promise<void> {
  await all.json('POST', configMapsOf(cluster), configMap(name, size))
}

async function createWidget(all: Endpoint, cluster: string, index: number): Promise<void> {
  const spec = { text: 'x'.repeat(200), size: index }
  const object = { apiVersion: 'bench.example.com/v1', kind: 'Widget', metadata: { name: `w-${index}` }, spec }
  await all.json('POST', widgetsOf(cluster), JSON.stringify(object))
}

/** The provider's list through its view, and the same list over all logical clusters. */
async function listsOf(own: Endpoint): Promise<Numbers> {
  const timed = async (path: string): Promise<number> => {
    const elapsed: number[] = []
    for (let i = 0; i < 3; i++) {
      const began = performance.now()
      const { items } = (await own.json('GET', path)) as { items: unknown[] }
      if (items.length !== consumerCount * objectsEach) throw new Error(`${path} has ${items.length} objects`)
      elapsed.push((performance.now() - began) / 1000)
    }
    return median(elapsed)
  }
  const through = await timed(`${view}${allWidgets}`)
  const direct = await timed(`/clusters/*${allWidgets}`)
  return {
    's to list through the view': rounded(through),
    's to list over all logical clusters': rounded(direct),
    'times as long': rounded(through / direct),
  }
}

/** From a write in a consumer to its event in a watch through the view, and in one over all logical clusters. */
async function lagsOf(kcp: KcpUnderTest, all: Endpoint, names: readonly string[]): Promise<Numbers> {
  const seen = { view: new Map<string, number>(), all: new Map<string, number>() }
  await using own = openEndpoint(kcp.adminKubeconfig, { connections: 1, base: '' })
  const { metadata } = (await own.json('GET', `${view}${allWidgets}?limit=1`)) as {
    metadata: { resourceVersion: string }
  }
  const query = `watch=1&resourceVersion=${metadata.resourceVersion}`
  using through = watchOf(kcp, `${view}${allWidgets}?${query}`, seen.view)
  using direct = watchOf(kcp, `/clusters/*${allWidgets}?${query}`, seen.all)
  await Promise.all([through.opened, direct.opened])
  const sent = new Map<string, number>()
  for (let i = 0; i < lagRounds; i++) {
    const mark = `mark-${i}-${Math.random()}`
    sent.set(mark, performance.now())
    const patch = JSON.stringify({ spec: { text: mark } })
    const name = names[(i * 37) % names.length] ?? ''
    await all.request('PATCH', `${widgetsOf(name)}/w-0`, patch, 'application/merge-patch+json')
    await sleep(10, AbortSignal.timeout(60_000))
  }
  await until(async () => Promise.resolve(seen.view.size === lagRounds && seen.all.size === lagRounds), 'all events')
  const lags = (of: Map<string, number>): number[] => [...of].map(([mark, at]) => at - (sent.get(mark) ?? at))
  return {
    'write to event through the view p50 ms': rounded(median(lags(seen.view))),
    'write to event through the view p99 ms': rounded(quantile(lags(seen.view), 0.99)),
    'write to event over all p50 ms': rounded(median(lags(seen.all))),
    'write to event over all p99 ms': rounded(quantile(lags(seen.all), 0.99)),
  }
}

function watchOf({ adminKubeconfig }: KcpUnderTest, path: string, seen: Map<string, number>) {
  const { host, port, ca, cert, key } = connectionOf(adminKubeconfig)
  const session = connect(`https://${host}:${port}`, { ca, cert, key })
  const stream = session.request({ ':path': path })
  const opened = new Promise<void>((resolve, reject) => {
    stream.on('response', ({ ':status': status }) => {
      if (status === 200) resolve()
      else reject(new Error(`watch ${path}: ${String(status)}`))
    })
    stream.on('error', reject)
  })
  let rest = ''
  stream.setEncoding('utf8')
  stream.on('data', (piece: string) => {
    const lines = (rest + piece).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const mark = /mark-[^"]+/.exec(line)?.[0]
      if (mark !== undefined && !seen.has(mark)) seen.set(mark, performance.now())
    }
  })
  return { opened, [Symbol.dispose]: () => session.destroy() }
}

/** A compatible change of the schema: how long until every consumer has it; then one that every consumer's objects break. */
async function changeOf(all: Endpoint, names: readonly string[], signal: AbortSignal): Promise<Numbers> {
  const path = '/provider/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.bench.example.com'
  const change = async (properties: object): Promise<number> => {
    const current = (await all.json('GET', path)) as object
    await all.json('PUT', path, JSON.stringify({ ...current, spec: definition(properties).spec }))
    return performance.now()
  }
  const status = () => statusOf(all, 'provider', 'apiexports')
  const began = await change({ text, size: { type: 'integer' }, color: text })
  await until(
    async () => {
      const { revision, updatedConsumers } = await status()
      return revision === 2 && updatedConsumers === names.length
    },
    'the second revision',
    signal,
  )
  const compatible = (performance.now() - began) / 1000
  const broke = await change({ text, color: text })
  await until(async () => ((await status()).heldConsumers?.length ?? 0) > 0, 'a held consumer', signal)
  return {
    's until all consumers have a new revision': rounded(compatible),
    's until a breaking revision is held': rounded((performance.now() - broke) / 1000),
    'consumers with the breaking revision': (await status()).updatedConsumers ?? 0,
  }
}

interface ExportStatus {
  readonly revision?: number
  readonly updatedConsumers?: number
  readonly heldConsumers?: readonly unknown[]
}

async function statusOf(all: Endpoint, cluster: string, resource: string): Promise<ExportStatus> {
  const { status = {} } = (await all.json('GET', `/${cluster}${apis}/${resource}/widgets`)) as { status?: ExportStatus }
  return status
}

async function until(probe: () => Promise<boolean>, what: string, signal?: AbortSignal): Promise<void> {
  const end = performance.now() + 300_000
  while (!(await probe())) {
    if (performance.now() > end) throw new Error(`${what} did not come within 300 s`)
    await sleep(5, signal ?? AbortSignal.timeout(300_000))
  }
}
