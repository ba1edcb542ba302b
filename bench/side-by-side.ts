// Runs the same load on kcp and on kube-apiserver with etcd in alternating rounds on one machine: only the ratio is
// valid elsewhere.
import type { StoreServerKind } from '#test/support/index.ts'
import { startContenders, type Contender } from './contenders.ts'
import { load, openEndpoint, type Endpoint, type LoadRequest } from './load.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { cpuSeconds } from './process-usage.ts'
import { median, rounded } from './statistics.ts'

const manyClients = 32
const rounds = 5
const secondsPerRound = 3

interface Opened extends Contender {
  readonly endpoint: Endpoint
}

export interface Work {
  readonly name: string
  /** Default 32. */
  readonly clients?: number
  next(): LoadRequest
}

const configMaps = '/api/v1/namespaces/bench/configmaps'
const manyConfigMaps = '/api/v1/namespaces/many/configmaps'
/** The body of a ConfigMap of 0.8 KB. */
export const configMap = (name: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, labels: { app: 'bench' } },
    data: { text: 'x'.repeat(512) },
  })

let created = 0
const works: readonly Work[] = [
  { name: 'GET', next: () => ['GET', `${configMaps}/list-0`] },
  { name: 'LIST 500', next: () => ['GET', configMaps] },
  // Fewer clients: an answer has 8 MB, and 32 unread ones exceed the limit of one tenant.
  { name: 'LIST 10,000', clients: 8, next: () => ['GET', manyConfigMaps] },
  { name: 'create', next: () => ['POST', '/api/v1/namespaces/writes/configmaps', configMap(`c-${++created}`)] },
]

/** Requests per second and per CPU-second of the server's processes, and the ratio of the two servers. */
export const sideBySide: Measurement = {
  name: 'ratios',
  describes: `GET, LIST of 500 and of 10,000, durable create by ${manyClients} clients, as ratios to kube-apiserver + etcd`,
  async run({ signal, say }) {
    return await compareAll(works, { name: 'bench', prepare, signal, say })
  },
}

/** The same with kcp on a server of its own, whose CPU counts as kcp's. */
function onServer(store: StoreServerKind): Measurement {
  return {
    name: store,
    describes: `the same for kcp start --store ${store}: GET and durable create by ${manyClients} clients`,
    async run({ signal, say }) {
      const some = works.filter(({ name }) => name === 'GET' || name === 'create')
      return await compareAll(some, { name: 'bench', prepare, store, signal, say })
    },
  }
}

export const onEtcd = onServer('etcd')
export const onPostgres = onServer('postgres')

/** Starts both, prepares each, and runs all the work on them. */
export async function compareAll(
  all: readonly Work[],
  {
    name,
    prepare: prepareOne,
    store,
    signal,
    say,
  }: Parameters<Measurement['run']>[0] & {
    name: string
    prepare: (endpoint: Endpoint) => Promise<void>
    store?: StoreServerKind
  },
): Promise<Numbers> {
  await using contenders = await startContenders(name, signal, store)
  await using stack = new AsyncDisposableStack()
  const opened: Opened[] = contenders.both.map((contender) => ({
    ...contender,
    endpoint: stack.use(openEndpoint(contender.kubeconfig, { connections: manyClients })),
  }))
  for (const { endpoint } of opened) await prepareOne(endpoint)
  const numbers: Record<string, number> = {}
  for (const work of all) Object.assign(numbers, await compare(work, opened, say))
  return numbers
}

async function prepare(endpoint: Endpoint): Promise<void> {
  for (const name of ['bench', 'many', 'writes'])
    await endpoint.json('POST', '/api/v1/namespaces', JSON.stringify({ metadata: { name } }))
  await fill(endpoint, configMaps, 500)
  await fill(endpoint, manyConfigMaps, 10_000)
}

/** Creates `count` ConfigMaps `list-0` and on in this collection. */
export async function fill(endpoint: Endpoint, collection: string, count: number): Promise<void> {
  let next = 0
  const client = async (): Promise<void> => {
    while (next < count) await endpoint.json('POST', collection, configMap(`list-${next++}`))
  }
  await Promise.all(Array.from({ length: manyClients }, client))
}

async function compare(work: Work, contenders: readonly Opened[], say: (line: string) => void): Promise<Numbers> {
  const perSecond = new Map<string, number[]>(contenders.map(({ name }) => [name, []]))
  const perCpuSecond = new Map<string, number[]>(contenders.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    // The order alternates, so that effects of the previous load (heat, page cache) do not favour one server.
    for (const { name, endpoint, pids } of round % 2 === 0 ? contenders : contenders.toReversed()) {
      const { clients = manyClients } = work
      const cpuBefore = cpuSeconds(pids())
      const { requests, seconds } = await load(endpoint, { clients, seconds: secondsPerRound, next: () => work.next() })
      const cpu = cpuSeconds(pids()) - cpuBefore
      perSecond.get(name)?.push(requests / seconds)
      perCpuSecond.get(name)?.push(requests / cpu)
    }
  }
  const of = (values: Map<string, number[]>, name: Contender['name']): number => median(values.get(name) ?? [])
  const result = {
    [`${work.name}: kcp requests/s`]: rounded(of(perSecond, 'kcp')),
    [`${work.name}: kube-apiserver requests/s`]: rounded(of(perSecond, 'kube-apiserver')),
    [`${work.name}: ratio of requests/s`]: rounded(of(perSecond, 'kcp') / of(perSecond, 'kube-apiserver')),
    [`${work.name}: kcp requests/CPU-s`]: rounded(of(perCpuSecond, 'kcp')),
    [`${work.name}: kube-apiserver requests/CPU-s`]: rounded(of(perCpuSecond, 'kube-apiserver')),
    [`${work.name}: ratio of requests/CPU-s`]: rounded(of(perCpuSecond, 'kcp') / of(perCpuSecond, 'kube-apiserver')),
  }
  say(`${work.name}: ${String(result[`${work.name}: ratio of requests/CPU-s`])} times the requests per CPU-second`)
  return result
}
