// The same load on kcp and on kube-apiserver with etcd, in turns, on one machine: only the ratio means something elsewhere.
import { startCluster } from '../test/support/index.ts'
import { startKcpUnderTest } from './kcp-under-test.ts'
import { load, openEndpoint, type Endpoint } from './load.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { cpuSeconds, withChildren } from './process-usage.ts'
import { median, rounded } from './statistics.ts'

const clients = 32
const rounds = 5
const secondsPerRound = 3

interface Contender {
  readonly name: 'kcp' | 'kube-apiserver'
  readonly endpoint: Endpoint
  readonly pids: readonly number[]
}

interface Work {
  readonly name: string
  next(): readonly [string, string, string?]
}

const configMaps = '/api/v1/namespaces/bench/configmaps'
const configMap = (name: string): string =>
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
  { name: 'create', next: () => ['POST', '/api/v1/namespaces/writes/configmaps', configMap(`c-${++created}`)] },
]

/** Requests per second and per CPU-second of the server's processes, and our part of theirs. */
export const sideBySide: Measurement = {
  name: 'ratios',
  describes: `GET, LIST of 500 and durable create by ${clients} clients, as ratios to kube-apiserver + etcd`,
  async run({ signal, say }) {
    await using cluster = await startCluster({ name: 'bench', durable: true, signal })
    await using kcp = await startKcpUnderTest()
    await using theirs = openEndpoint(cluster.kubeconfig, { connections: clients })
    await using ours = openEndpoint(await kcp.tenantKubeconfig('bench'), { connections: clients })
    const contenders: readonly Contender[] = [
      { name: 'kcp', endpoint: ours, pids: withChildren(kcp.pid) },
      { name: 'kube-apiserver', endpoint: theirs, pids: [...cluster.processes.values()].map(({ pid }) => pid) },
    ]
    for (const { endpoint } of contenders) await prepare(endpoint)
    const numbers: Record<string, number> = {}
    for (const work of works) Object.assign(numbers, await compare(work, contenders, say))
    return numbers
  },
}

async function prepare(endpoint: Endpoint): Promise<void> {
  for (const name of ['bench', 'writes'])
    await endpoint.json('POST', '/api/v1/namespaces', JSON.stringify({ metadata: { name } }))
  for (let i = 0; i < 500; i++) await endpoint.json('POST', configMaps, configMap(`list-${i}`))
}

async function compare(work: Work, contenders: readonly Contender[], say: (line: string) => void): Promise<Numbers> {
  const perSecond = new Map<string, number[]>(contenders.map(({ name }) => [name, []]))
  const perCpuSecond = new Map<string, number[]>(contenders.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    // Each begins as often as the other: what one leaves behind (heat, page cache) is not always the same one's gain.
    for (const { name, endpoint, pids } of round % 2 === 0 ? contenders : contenders.toReversed()) {
      const cpuBefore = cpuSeconds(pids)
      const { requests, seconds } = await load(endpoint, { clients, seconds: secondsPerRound, next: () => work.next() })
      const cpu = cpuSeconds(pids) - cpuBefore
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
