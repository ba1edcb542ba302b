// The cost of a request that reaches another replica of `kcp apiserver` than the owner of its logical cluster.
import { setTimeout as delay } from 'node:timers/promises'
import { startReplicas } from '#test/integration/replicas.ts'
import { openEndpoint, type Endpoint } from './load.ts'
import type { Measurement } from './measurement.ts'
import { median, quantile, rounded } from './statistics.ts'

const replicaCount = 3
const warmUp = 200
const requests = 2000
const settleMs = 5000

const configMaps = '/api/v1/namespaces/default/configmaps'
const configMap = JSON.stringify({ metadata: { name: 'one' }, data: { text: 'x'.repeat(512) } })

/** Time that one client waits for a GET, asked of the owner and of another replica by turns. */
export const hop: Measurement = {
  name: 'hop',
  describes: `latency of a GET that another of ${replicaCount} replicas of kcp apiserver passes on to the owner`,
  async run({ signal, say }) {
    await using stack = new AsyncDisposableStack()
    const set = stack.use(await startReplicas(replicaCount))
    await set.create('bench')
    await delay(settleMs, undefined, { signal })
    const owner = await set.ownerOf('bench')
    const other = set.replicas.find((replica) => replica !== owner) ?? owner
    const open = async (through: typeof owner): Promise<Endpoint> =>
      stack.use(openEndpoint(await set.kubeconfig('bench', through), { connections: 1 }))
    const direct = await open(owner)
    const through = await open(other)
    await direct.json('POST', configMaps, configMap)
    const elapsed = { direct: [] as number[], through: [] as number[] }
    for (let n = -warmUp; n < requests; n++)
      for (const way of ['direct', 'through'] as const) {
        const began = performance.now()
        await (way === 'direct' ? direct : through).json('GET', `${configMaps}/one`)
        if (n >= 0) elapsed[way].push(performance.now() - began)
      }
    say(`${requests} requests each way`)
    return {
      'GET of the owner p50 ms': rounded(median(elapsed.direct)),
      'GET of the owner p99 ms': rounded(quantile(elapsed.direct, 0.99)),
      'GET of another p50 ms': rounded(median(elapsed.through)),
      'GET of another p99 ms': rounded(quantile(elapsed.through, 0.99)),
    }
  },
}
