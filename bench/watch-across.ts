// Measures a controller over 1,000 logical clusters: with one watch for all of them, and with a watch for each.
import { setTimeout as delay } from 'node:timers/promises'
import {
  label,
  noisyCluster,
  noisyObjects,
  objectName,
  type AcrossResponses,
  type FromAcrossClient,
  type Lags,
  type ToAcrossClient,
} from './across-protocol.ts'
import { startClientProcess, type ClientProcess } from './client-process.ts'
import { startKcpUnderTest, type KcpUnderTest } from './kcp-under-test.ts'
import { openEndpoint, type Endpoint } from './load.ts'
import { inParallel } from './in-parallel.ts'
import { firstNamespaces, logicalCluster, logicalClusters } from './logical-clusters.ts'
import type { Measurement, Numbers } from './measurement.ts'
import type { FromNoisyClient, ToNoisyClient } from './neighbour-protocol.ts'
import { cpuSeconds } from './process-usage.ts'
import { median, quantile, rounded } from './statistics.ts'
import { eventText } from './watch-protocol.ts'

const clusterCount = 1000
const objectsEach = 10
const allObjects = (clusterCount - 1) * objectsEach + noisyObjects
const writesPerSecond = 100
const writeSeconds = 15
/** So many that no write waits for another one in this process. */
const writeConnections = 64
const noisyConnections = 32
const settleMs = 2000

export const watchAcrossMany: Measurement = {
  name: 'watch-across',
  describes: `a controller over ${clusterCount} logical clusters: one watch for all of them, and a watch for each`,
  async run({ signal, say }) {
    await using kcp = await startKcpUnderTest()
    const names = Array.from({ length: clusterCount }, (_, i) => `lc-${i}`)
    const noisy = await kcp.tenantKubeconfig(noisyCluster)
    await using all = openEndpoint(kcp.adminKubeconfig, { connections: writeConnections, base: '/clusters' })
    await fill(kcp, all, names)
    say(`${clusterCount} logical clusters have ${allObjects} objects`)
    const bench = { kcp, all, noisy, signal, say }
    return {
      ...(await controllerOver('one watch', '*', bench)),
      ...(await controllerOver('a watch each', names, bench)),
    }
  },
}

interface Bench {
  readonly kcp: KcpUnderTest
  readonly all: Endpoint
  readonly noisy: string
  readonly signal: AbortSignal
  readonly say: (line: string) => void
}

type Client = ClientProcess<ToAcrossClient, FromAcrossClient>

async function fill(kcp: KcpUnderTest, all: Endpoint, names: readonly string[]): Promise<void> {
  await using root = openEndpoint(kcp.adminKubeconfig, { connections: 16 })
  await inParallel(names, 16, async (name) => {
    if (name !== noisyCluster) await root.json('POST', logicalClusters, logicalCluster(name))
    await firstNamespaces(all, name)
    for (let i = 0; i < objectsEach; i++) await create(all, name, i)
  })
  const more = Array.from({ length: noisyObjects - objectsEach }, (_, i) => String(objectsEach + i))
  await inParallel(more, 16, (index) => create(all, noisyCluster, Number(index)))
}

async function create(all: Endpoint, cluster: string, index: number): Promise<void> {
  const metadata = { name: objectName(index), labels: { [label]: 'yes' } }
  const data = { at: eventText(0), text: 'x'.repeat(512) }
  await all.json('POST', configMaps(cluster), JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data }))
}

const configMaps = (cluster: string): string => `/${cluster}/api/v1/namespaces/default/configmaps`

async function controllerOver(
  title: string,
  logicalClustersOf: '*' | readonly string[],
  bench: Bench,
): Promise<Numbers> {
  const { kcp, all, signal, say } = bench
  await using root = openEndpoint(kcp.adminKubeconfig, { connections: 1, base: '' })
  await using client: Client = startClientProcess<ToAcrossClient, FromAcrossClient>('./across-client.ts')
  const before = await counted(root)
  const start = { kubeconfig: kcp.adminKubeconfig, logicalClusters: logicalClustersOf, objects: allObjects }
  const { synced } = await ask(client, { start }, 'synced')
  const after = await counted(root)
  say(`${title}: ${JSON.stringify(synced)}`)
  const quiet = await lagsOf(client, all, signal)
  const noise = logicalClustersOf === '*' ? await withNoise(client, quiet, bench) : {}
  const cpu = cpuSeconds([client.pid])
  const { wrote } = await ask(client, 'write', 'wrote')
  if (wrote.failed > 0) throw new Error(`${wrote.failed} patches of the controller failed`)
  return under(title, {
    's until synced': synced.syncedSeconds,
    's until each object was visited': synced.reconciledSeconds,
    'MiB more resident memory': synced.residentMiB,
    'MiB more heap': synced.heapMiB,
    'KiB of heap per logical cluster': (synced.heapMiB * 1024) / clusterCount,
    connections: synced.connections,
    'lists until synced': after.lists - before.lists,
    watches: after.watches - before.watches,
    'a write p50 ms': median(quiet.writes),
    'a write p99 ms': quantile(quiet.writes, 0.99),
    'write to visit p50 ms': median(quiet.others),
    'write to visit p99 ms': quantile(quiet.others, 0.99),
    ...noise,
    'visits/s with a patch each': allObjects / wrote.seconds,
    'CPU ms of the controller per visit with a patch': ((cpuSeconds([client.pid]) - cpu) * 1000) / allObjects,
  })
}

async function withNoise(client: Client, quiet: Elapsed, { all, noisy, signal }: Bench): Promise<Numbers> {
  await using noise = startClientProcess<ToNoisyClient, FromNoisyClient>('./noisy-client.ts', { lowPriority: true })
  await noise.ask({ start: 'updates', kubeconfig: noisy, connections: noisyConnections })
  const lags = await lagsOf(client, all, signal)
  const response = await noise.ask('stop')
  if (!('noised' in response) || response.noised.failed > 0)
    throw new Error(`the noisy client failed: ${JSON.stringify(response)}`)
  // What it left.
  await delay(settleMs, undefined, { signal })
  await client.ask('lags')
  return {
    'with a noisy logical cluster: its writes/s': response.noised.answered / writeSeconds,
    'with a noisy logical cluster: its visits/s': lags.noisy.length / writeSeconds,
    'with a noisy logical cluster: a write of others p99 ms': quantile(lags.writes, 0.99),
    'with a noisy logical cluster: write to visit of others p50 ms': median(lags.others),
    'with a noisy logical cluster: write to visit of others p99 ms': quantile(lags.others, 0.99),
    'with a noisy logical cluster: times the p99': quantile(lags.others, 0.99) / quantile(quiet.others, 0.99),
  }
}

/** From before a write is sent to its answer and to its reconcile, milliseconds. */
interface Elapsed extends Lags {
  readonly writes: readonly number[]
}

async function lagsOf(client: Client, all: Endpoint, signal: AbortSignal): Promise<Elapsed> {
  await client.ask('lags')
  const writes = await steadyWrites(all, signal)
  await delay(settleMs, undefined, { signal })
  return { writes, ...(await ask(client, 'lags', 'lags')).lags }
}

let written = 0

/** Writes to quiet logical clusters on schedule, whether or not earlier writes were answered. */
async function steadyWrites(all: Endpoint, signal: AbortSignal): Promise<readonly number[]> {
  const writes: Promise<number>[] = []
  const began = performance.now()
  for (let n = 0; n < writesPerSecond * writeSeconds; n++) {
    const wait = began + (n * 1000) / writesPerSecond - performance.now()
    if (wait > 0) await delay(wait, undefined, { signal })
    writes.push(write(all, written++))
  }
  return await Promise.all(writes)
}

async function write(all: Endpoint, number: number): Promise<number> {
  const began = performance.now()
  const cluster = `lc-${1 + (number % (clusterCount - 1))}`
  const path = `${configMaps(cluster)}/${objectName(number % objectsEach)}`
  const patch = JSON.stringify({ data: { at: eventText(number) } })
  const { status } = await all.request('PATCH', path, patch, 'application/merge-patch+json')
  if (status !== 200) throw new Error(`a write was answered ${status}`)
  return performance.now() - began
}

/** What the server counts: answered lists and open watches. */
async function counted(root: Endpoint): Promise<{ readonly lists: number; readonly watches: number }> {
  const text = await root.text('GET', '/metrics')
  const sum = (pattern: RegExp): number =>
    [...text.matchAll(pattern)].reduce((total, [, value]) => total + Number(value), 0)
  return {
    lists: sum(/^kcp_request_duration_seconds_count\{[^}]*verb="list"[^}]*\} (\S+)$/gm),
    watches: sum(/^kcp_watches (\S+)$/gm),
  }
}

/** The answer, which has this field. */
async function ask<Field extends keyof AcrossResponses>(
  client: Client,
  message: ToAcrossClient,
  field: Field,
): Promise<Pick<AcrossResponses, Field>> {
  const response = await client.ask(message)
  if (!(field in response)) throw new Error(`the controller answered ${JSON.stringify(response).slice(0, 500)}`)
  return response as Pick<AcrossResponses, Field>
}

function under(title: string, numbers: Numbers): Numbers {
  return Object.fromEntries(Object.entries(numbers).map(([name, value]) => [`${title}: ${name}`, rounded(value)]))
}
