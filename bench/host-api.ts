// The time that one client waits for a tenant's API: through the host's aggregator, of `kcp apiserver` directly, and of
// the host's own API for the same verb.
import { startHostedTenant } from './hosted-tenant.ts'
import { openEndpoint, type Endpoint } from './load.ts'
import type { Measurement } from './measurement.ts'
import { median, quantile, rounded } from './statistics.ts'

const warmUp = 200
const turns = 1000
const listed = 100
const mergePatch = 'application/merge-patch+json'
const configMaps = '/api/v1/namespaces/api/configmaps'

const configMap = (name: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, labels: { app: 'bench' } },
    data: { text: 'x'.repeat(512) },
  })

/** `name` is of an object that no other turn or way has. */
type Verb = (endpoint: Endpoint, name: string) => Promise<{ status: number }>

const verbs: Readonly<Record<string, Verb>> = {
  GET: (endpoint) => endpoint.request('GET', `${configMaps}/listed-0`),
  [`LIST ${listed}`]: (endpoint) => endpoint.request('GET', configMaps),
  create: (endpoint, name) => endpoint.request('POST', configMaps, configMap(name)),
  patch: (endpoint, name) => {
    const patch = JSON.stringify({ data: { text: name.padEnd(512, 'x') } })
    return endpoint.request('PATCH', `${configMaps}/listed-0`, patch, mergePatch)
  },
  delete: (endpoint, name) => endpoint.request('DELETE', `${configMaps}/${name}`),
}

/** Each verb by turns over the three ways, one request at a time. */
export const hostApi: Measurement = {
  name: 'host-api',
  describes: `latency for a tenant of kcp apiserver through the host's aggregator and directly, beside the host's own API`,
  async run({ signal, say }) {
    await using tenant = await startHostedTenant(signal)
    await using stack = new AsyncDisposableStack()
    const open = (kubeconfig: string, base?: string): Endpoint =>
      stack.use(openEndpoint(kubeconfig, { connections: 1, ...(base !== undefined && { base }) }))
    const aggregated = `/apis/virtual.kcp.dev/v1alpha1/logicalclusters/${tenant.name}/proxy`
    const ways = {
      aggregated: open(tenant.ownerKubeconfig, aggregated),
      direct: open(tenant.kubeconfig),
      host: open(tenant.host.kubeconfig),
    }
    // The first two lead to the same objects.
    for (const endpoint of [ways.direct, ways.host]) await prepare(endpoint)
    const numbers: Record<string, number> = {}
    for (const [verb, send] of Object.entries(verbs)) {
      const elapsed = { aggregated: [] as number[], direct: [] as number[], host: [] as number[] }
      for (let turn = -warmUp; turn < turns; turn++)
        for (const way of ['aggregated', 'direct', 'host'] as const) {
          signal.throwIfAborted()
          const began = performance.now()
          const { status } = await send(ways[way], `${way}-${turn + warmUp}`)
          if (status >= 300) throw new Error(`${verb} (${way}): answered ${status}`)
          if (turn >= 0) elapsed[way].push(performance.now() - began)
        }
      for (const [way, values] of Object.entries(elapsed)) {
        numbers[`${verb}: ${way} p50 ms`] = rounded(median(values))
        numbers[`${verb}: ${way} p99 ms`] = rounded(quantile(values, 0.99))
      }
      say(`${verb}: ${turns} requests each way`)
    }
    return numbers
  },
}

async function prepare(endpoint: Endpoint): Promise<void> {
  await endpoint.json('POST', '/api/v1/namespaces', '{"metadata":{"name":"api"}}')
  for (let n = 0; n < listed; n++) await endpoint.json('POST', configMaps, configMap(`listed-${n}`))
}
