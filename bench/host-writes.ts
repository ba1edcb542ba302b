// Writes of a tenant of `kcp apiserver`, which become Records of the host, beside writes of raw custom resources and of
// ConfigMaps in the same host. Each CPU time is that of etcd, kube-apiserver and kcp together, because the
// host also works for our watch.
import { kubectl } from '#test/support/index.ts'
import { programs, startHostedTenant, type HostedTenant, type Program } from './hosted-tenant.ts'
import { load, openEndpoint, type Endpoint } from './load.ts'
import type { Measurement } from './measurement.ts'
import { cpuSeconds } from './process-usage.ts'
import { median, rounded } from './statistics.ts'

const manyClients = 32
const rounds = 3
const secondsPerRound = 3
/** Objects that patches change, one after the other. */
const patched = 200
const mergePatch = 'application/merge-patch+json'

interface Contender {
  readonly name: string
  readonly endpoint: Endpoint
  readonly collection: string
  readonly object: (name: string) => object
}

const data = { text: 'x'.repeat(512) }
const labels = { app: 'bench' }
const configMap = (name: string): object => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels }, data })
const widget = (name: string): object => ({
  apiVersion: 'bench.kcp.dev/v1',
  kind: 'Widget',
  metadata: { name, labels },
  data,
})

const widgetCrd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.bench.kcp.dev' },
  spec: {
    group: 'bench.kcp.dev',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { data: { type: 'object', additionalProperties: { type: 'string' } } },
          },
        },
      },
    ],
  },
}

/** Requests per second and per CPU-second of all processes, and the time that one client waits. */
export const hostWrites: Measurement = {
  name: 'host-writes',
  describes: `create and patch of a tenant of kcp apiserver beside raw custom resources and ConfigMaps of its host`,
  async run({ signal, say }) {
    await using tenant = await startHostedTenant(signal)
    await using stack = new AsyncDisposableStack()
    const { host } = tenant
    await kubectl(host.kubeconfig, ['create', '-f', '-'], { input: widgetCrd })
    await kubectl(host.kubeconfig, ['wait', '--for=condition=Established', 'crd/widgets.bench.kcp.dev'])
    const open = (kubeconfig: string): Endpoint => stack.use(openEndpoint(kubeconfig, { connections: manyClients }))
    const configMaps = '/api/v1/namespaces/bench/configmaps'
    const contenders: readonly Contender[] = [
      { name: 'kcp', endpoint: open(tenant.kubeconfig), collection: configMaps, object: configMap },
      {
        name: 'raw custom resource',
        endpoint: open(host.kubeconfig),
        collection: '/apis/bench.kcp.dev/v1/namespaces/bench/widgets',
        object: widget,
      },
      { name: 'host ConfigMap', endpoint: open(host.kubeconfig), collection: configMaps, object: configMap },
    ]
    const numbers: Record<string, number> = {}
    for (const contender of contenders) await prepare(contender)
    for (const work of ['create', 'patch'] as const) {
      Object.assign(numbers, await compare(work, contenders, tenant, say))
    }
    return numbers
  },
}

async function prepare({ name, endpoint, collection, object }: Contender): Promise<void> {
  if (name !== 'host ConfigMap') await endpoint.json('POST', '/api/v1/namespaces', '{"metadata":{"name":"bench"}}')
  for (let n = 0; n < patched; n++) await endpoint.json('POST', collection, JSON.stringify(object(`patched-${n}`)))
}

type Request = readonly [method: string, path: string, body: string, contentType?: string]

let made = 0
function requestOf(work: 'create' | 'patch', { collection, object }: Contender): Request {
  const n = ++made
  if (work === 'create') return ['POST', collection, JSON.stringify(object(`c-${n}`))]
  const patch = { data: { text: `${n}`.padEnd(512, 'x') } }
  return ['PATCH', `${collection}/patched-${n % patched}`, JSON.stringify(patch), mergePatch]
}

async function compare(
  work: 'create' | 'patch',
  contenders: readonly Contender[],
  tenant: HostedTenant,
  say: (line: string) => void,
): Promise<Record<string, number>> {
  const seen = contenders.map((contender) => ({
    contender,
    perSecond: [] as number[],
    perCpu: [] as number[],
    alone: [] as number[],
    /** CPU time of one request, milliseconds. */
    spent: { etcd: [] as number[], 'kube-apiserver': [] as number[], kcp: [] as number[] },
  }))
  for (let round = 0; round < rounds; round++) {
    for (const { contender, perSecond, perCpu, alone, spent } of round % 2 === 0 ? seen : seen.toReversed()) {
      const next = (): Request => requestOf(work, contender)
      const before = cpuOf(tenant)
      const { requests, seconds } = await load(contender.endpoint, {
        clients: manyClients,
        seconds: secondsPerRound,
        next,
      })
      perSecond.push(requests / seconds)
      const after = cpuOf(tenant)
      let cpu = 0
      for (const program of programs) {
        const seconds = after[program] - before[program]
        cpu += seconds
        spent[program].push((seconds * 1000) / requests)
      }
      perCpu.push(requests / cpu)
      const one = await load(contender.endpoint, { clients: 1, seconds: 1, next })
      alone.push((one.seconds * 1000) / one.requests)
    }
  }
  const raw = seen.find(({ contender }) => contender.name === 'raw custom resource')
  const numbers: Record<string, number> = {}
  for (const { contender, perSecond, perCpu, alone, spent } of seen) {
    numbers[`${work}: ${contender.name} requests/s`] = rounded(median(perSecond))
    numbers[`${work}: ${contender.name} requests/CPU-s`] = rounded(median(perCpu))
    numbers[`${work}: ${contender.name} ms for one client`] = rounded(median(alone))
    for (const program of programs)
      numbers[`${work}: ${contender.name} CPU ms of ${program}`] = rounded(median(spent[program]))
    if (raw === undefined || contender === raw.contender) continue
    numbers[`${work}: ${contender.name} to raw, requests/s`] = rounded(median(perSecond) / median(raw.perSecond))
    numbers[`${work}: ${contender.name} to raw, requests/CPU-s`] = rounded(median(perCpu) / median(raw.perCpu))
  }
  say(`${work}: ${String(numbers[`${work}: kcp to raw, requests/CPU-s`])} times the requests per CPU-second`)
  return numbers
}

/** CPU seconds of each program so far. */
function cpuOf(tenant: HostedTenant): Record<Program, number> {
  const of = (program: Program): number => cpuSeconds(tenant.pids(program))
  return { etcd: of('etcd'), 'kube-apiserver': of('kube-apiserver'), kcp: of('kcp') }
}
