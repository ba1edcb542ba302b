// Writes of a tenant of `kcp apiserver`, which become Records of the host, beside writes of raw custom resources and of
// ConfigMaps in the same host. CPU time is that of etcd, kube-apiserver and kcp together in each of them: the host also
// works for our watch.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, kubectl, runKcp, startCluster, startKcp, waitFor } from '../test/support/index.ts'
import { load, openEndpoint, type Endpoint } from './load.ts'
import type { Measurement } from './measurement.ts'
import { cpuSeconds, withChildren } from './process-usage.ts'
import { median, rounded } from './statistics.ts'

const manyClients = 32
const rounds = 3
const secondsPerRound = 3
/** Objects that patches change, one after the other. */
const patched = 200
const readyMs = 60_000
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
    await using stack = new AsyncDisposableStack()
    const host = stack.use(await startCluster({ name: 'benchhost', durable: true, signal }))
    const dir = mkdtempSync(join(tmpdir(), 'kcp-bench-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    const env = { KUBECONFIG: host.kubeconfig }
    const address = host.hostAddress
    const port = await freePort(address)
    const listening = ['--port', String(port), '--bind-address', address, '--advertise-address', address]
    const kcp = stack.use(await startKcp(['apiserver', ...listening], { env }))
    const operator = stack.use(await startKcp(['operator'], { env }))
    for (const program of [kcp, operator])
      await waitFor(() => program.log().includes('is ready'), { what: 'kcp to be ready', deadlineMs: readyMs })
    const pids = () => [...[...host.processes.values()].map(({ pid }) => pid), ...withChildren(kcp.pid)]
    await createTenant(host.kubeconfig, 'bench')
    const tenant = join(dir, 'bench.kubeconfig')
    writeFileSync(tenant, (await runKcp(['kubeconfig', 'bench', '--host-kubeconfig', host.kubeconfig])).stdout)
    await kubectl(host.kubeconfig, ['create', '-f', '-'], { input: widgetCrd })
    await kubectl(host.kubeconfig, ['wait', '--for=condition=Established', 'crd/widgets.bench.kcp.dev'])
    const open = (kubeconfig: string): Endpoint => stack.use(openEndpoint(kubeconfig, { connections: manyClients }))
    const configMaps = '/api/v1/namespaces/bench/configmaps'
    const contenders: readonly Contender[] = [
      { name: 'kcp', endpoint: open(tenant), collection: configMaps, object: configMap },
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
      Object.assign(numbers, await compare(work, contenders, pids, say))
    }
    return numbers
  },
}

async function createTenant(kubeconfig: string, name: string): Promise<void> {
  const object = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name } }
  await kubectl(kubeconfig, ['create', '-f', '-'], { input: object })
  await kubectl(kubeconfig, ['wait', '--for=condition=Ready', `lc/${name}`, '--timeout=60s'])
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
  pids: () => readonly number[],
  say: (line: string) => void,
): Promise<Record<string, number>> {
  const seen = contenders.map((contender) => ({
    contender,
    perSecond: [] as number[],
    perCpu: [] as number[],
    alone: [] as number[],
  }))
  for (let round = 0; round < rounds; round++) {
    for (const { contender, perSecond, perCpu, alone } of round % 2 === 0 ? seen : seen.toReversed()) {
      const next = (): Request => requestOf(work, contender)
      const before = cpuSeconds(pids())
      const { requests, seconds } = await load(contender.endpoint, {
        clients: manyClients,
        seconds: secondsPerRound,
        next,
      })
      perSecond.push(requests / seconds)
      perCpu.push(requests / (cpuSeconds(pids()) - before))
      const one = await load(contender.endpoint, { clients: 1, seconds: 1, next })
      alone.push((one.seconds * 1000) / one.requests)
    }
  }
  const raw = seen.find(({ contender }) => contender.name === 'raw custom resource')
  const numbers: Record<string, number> = {}
  for (const { contender, perSecond, perCpu, alone } of seen) {
    numbers[`${work}: ${contender.name} requests/s`] = rounded(median(perSecond))
    numbers[`${work}: ${contender.name} requests/CPU-s`] = rounded(median(perCpu))
    numbers[`${work}: ${contender.name} ms for one client`] = rounded(median(alone))
    if (raw === undefined || contender === raw.contender) continue
    numbers[`${work}: ${contender.name} to raw, requests/s`] = rounded(median(perSecond) / median(raw.perSecond))
    numbers[`${work}: ${contender.name} to raw, requests/CPU-s`] = rounded(median(perCpu) / median(raw.perCpu))
  }
  say(`${work}: ${String(numbers[`${work}: kcp to raw, requests/CPU-s`])} times the requests per CPU-second`)
  return numbers
}
