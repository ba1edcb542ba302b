// What a second core brings: `kcp apiserver --workers 1` and `2` on an etcd of its own, each beside the kube-apiserver
// of its host. The clients are on the same machine: with two cores, they and not the server limit requests per second,
// so the CPU time of a request says more.
import { setTimeout as delay } from 'node:timers/promises'
import { startReplicas } from '#test/integration/replicas.ts'
import { startEtcd } from '#test/support/index.ts'
import { load, openEndpoint, type Endpoint, type LoadRequest } from './load.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { cpuSeconds, residentMiB, withChildren } from './process-usage.ts'
import { configMap, fill } from './side-by-side.ts'
import { median, rounded } from './statistics.ts'

const counts = [1, 2]
const names = ['w0', 'w1', 'w2', 'w3']
const clientsOfEach = 8
const rounds = 5
const secondsPerRound = 3
const settleMs = 12_000
/** In this time, connections are led to the workers that answer, and each worker compiles what it runs often. */
const warmUpSeconds = 8

let created = 0
const works: readonly { readonly name: string; readonly next: () => LoadRequest }[] = [
  { name: 'GET', next: () => ['GET', '/api/v1/namespaces/bench/configmaps/list-0'] },
  { name: 'LIST 500', next: () => ['GET', '/api/v1/namespaces/bench/configmaps'] },
  { name: 'create', next: () => ['POST', '/api/v1/namespaces/writes/configmaps', configMap(`c-${++created}`)] },
]

interface Contender {
  readonly endpoints: readonly Endpoint[]
  readonly pids: readonly number[]
}

/** Requests per second and per CPU-second of all processes of the server and its store, as ratios to kube-apiserver. */
export const workers: Measurement = {
  name: 'workers',
  describes: `GET, LIST, create in ${names.length} logical clusters of kcp apiserver --store etcd with 1 and 2 workers, beside kube-apiserver`,
  async run({ signal, say }) {
    const numbers: Record<string, number> = {}
    for (const count of counts) Object.assign(numbers, await measure(count, { signal, say }))
    return numbers
  },
}

async function measure(count: number, { signal, say }: Parameters<Measurement['run']>[0]): Promise<Numbers> {
  await using stack = new AsyncDisposableStack()
  const etcd = stack.use(await startEtcd({ durable: true }))
  const store = ['--store', 'etcd', '--etcd-servers', etcd.urls.join()]
  const set = stack.use(
    await startReplicas(1, { durable: true, apiserverArgs: [...store, '--workers', String(count)] }),
  )
  const [server] = set.replicas
  if (server === undefined) throw new Error('no server')
  await Promise.all(names.map((name) => set.create(name)))
  await delay(settleMs, undefined, { signal })
  const owners = new Set(await Promise.all(names.map((name) => set.ownerPidOf(name))))
  const open = (kubeconfig: string, connections: number): Endpoint =>
    stack.use(openEndpoint(kubeconfig, { connections }))
  const ours = await Promise.all(names.map(async (name) => open(await set.kubeconfig(name, server), clientsOfEach)))
  const theirs = open(set.host.kubeconfig, names.length * clientsOfEach)
  const kcp = withChildren(server.process.pid)
  const contenders: Readonly<Record<'kcp' | 'kube-apiserver', Contender>> = {
    kcp: { endpoints: ours, pids: [...kcp, ...etcd.members.map(({ pid }) => pid)] },
    // As many clients, all of the one cluster.
    'kube-apiserver': {
      endpoints: names.map(() => theirs),
      pids: [...set.host.processes.values()].map(({ pid }) => pid),
    },
  }
  for (const endpoint of [...ours, theirs]) await prepare(endpoint)
  const what = `${count} worker${count === 1 ? '' : 's'}`
  const numbers: Record<string, number> = {
    [`${what}: that own one of ${names.length} logical clusters`]: owners.size,
    [`${what}: memory MiB`]: rounded(residentMiB(kcp)),
    [`${what}: memory of their own MiB`]: rounded(residentMiB(kcp, 'RssAnon')),
  }
  for (const work of works) {
    const seen = { kcp: [] as Rates[], 'kube-apiserver': [] as Rates[] }
    await rates(work.next, contenders.kcp, warmUpSeconds)
    for (let round = 0; round < rounds; round++)
      for (const name of round % 2 === 0
        ? (['kcp', 'kube-apiserver'] as const)
        : (['kube-apiserver', 'kcp'] as const)) {
        signal.throwIfAborted()
        seen[name].push(await rates(work.next, contenders[name], secondsPerRound))
      }
    const of = (name: keyof typeof seen, rate: keyof Rates): number => median(seen[name].map((one) => one[rate]))
    for (const [rate, unit] of [
      ['perSecond', 'requests/s'],
      ['perCpuSecond', 'requests/CPU-s'],
    ] as const) {
      numbers[`${what}: ${work.name} ${unit}`] = rounded(of('kcp', rate))
      numbers[`${what}: ${work.name} ratio of ${unit}`] = rounded(of('kcp', rate) / of('kube-apiserver', rate))
    }
    numbers[`${what}: ${work.name} cores of the clients`] = rounded(of('kcp', 'clientCores'))
    say(`${what}: ${work.name} ${String(numbers[`${what}: ${work.name} requests/s`])} requests/s`)
  }
  return numbers
}

interface Rates {
  readonly perSecond: number
  readonly perCpuSecond: number
  /** Of this process, which has the clients. */
  readonly clientCores: number
}

async function rates(next: () => LoadRequest, { endpoints, pids }: Contender, seconds: number): Promise<Rates> {
  const [server, own] = [cpuSeconds(pids), cpuSeconds([process.pid])]
  const began = performance.now()
  const results = await Promise.all(
    endpoints.map((endpoint) => load(endpoint, { clients: clientsOfEach, seconds, next })),
  )
  const elapsed = (performance.now() - began) / 1000
  const requests = results.reduce((sum, result) => sum + result.requests, 0)
  return {
    perSecond: requests / elapsed,
    perCpuSecond: requests / (cpuSeconds(pids) - server),
    clientCores: (cpuSeconds([process.pid]) - own) / elapsed,
  }
}

async function prepare(endpoint: Endpoint): Promise<void> {
  for (const name of ['bench', 'writes'])
    await endpoint.json('POST', '/api/v1/namespaces', JSON.stringify({ metadata: { name } }))
  await fill(endpoint, '/api/v1/namespaces/bench/configmaps', 500)
}
