// Measures the effect of one noisy tenant on the others: their latency with and without it.
import { setTimeout as delay } from 'node:timers/promises'
import { startClientProcess } from './client-process.ts'
import { startKcpUnderTest } from './kcp-under-test.ts'
import { openEndpoint, type Endpoint } from './load.ts'
import type { Measurement } from './measurement.ts'
import { noises, type FromNoisyClient, type Noise, type Noised, type ToNoisyClient } from './neighbour-protocol.ts'
import { median, quantile, rounded } from './statistics.ts'

const noisyConnections = 64
const quietTenants = 3
/** Rate per quiet tenant: three GETs and a create in rotation. */
const requestsPerSecond = 40
const secondsEach = 5
/**
 * Seconds to wait for responses after the last request was sent. A request without a response by then counts with the
 * time that it has waited.
 */
const maxTailSeconds = 10
const listed = 10_000

const configMaps = '/api/v1/namespaces/default/configmaps'

export const neighbours: Measurement = {
  name: 'neighbours',
  describes: 'one tenant floods (creates, LISTs of 10,000, bodies of 60,000 members, watches): p99 of three others',
  async run({ say, signal }) {
    await using kcp = await startKcpUnderTest()
    const noisy = await kcp.tenantKubeconfig('noisy')
    await using stack = new AsyncDisposableStack()
    const others: Endpoint[] = []
    for (let i = 0; i < quietTenants; i++) {
      const endpoint = stack.use(openEndpoint(await kcp.tenantKubeconfig(`quiet-${i}`), { connections: 16 }))
      await endpoint.json('POST', configMaps, configMap('read'))
      others.push(endpoint)
    }
    const began = performance.now()
    await fill(noisy)
    say(`${listed} objects created in ${rounded((performance.now() - began) / 1000)} s`)
    await steady(others, 2, signal)
    const quiet = await steady(others, 2 * secondsEach, signal)
    say(`quiet: p50 ${rounded(median(quiet))} ms, p99 ${rounded(quantile(quiet, 0.99))} ms`)
    const numbers: Record<string, number> = {
      'quiet: p50 ms': rounded(median(quiet)),
      'quiet: p99 ms': rounded(quantile(quiet, 0.99)),
    }
    for (const noise of noises) {
      const { elapsed, noised } = await withNoise(noise, noisy, others, signal)
      const p99 = quantile(elapsed, 0.99)
      numbers[`${noise}: p50 ms`] = rounded(median(elapsed))
      numbers[`${noise}: p99 ms`] = rounded(p99)
      numbers[`${noise}: times the quiet p99`] = rounded(p99 / quantile(quiet, 0.99))
      numbers[`${noise}: noisy tenant's requests/s answered`] = rounded(noised.answered / secondsEach)
      numbers[`${noise}: noisy tenant's requests/s refused`] = rounded(noised.refused / secondsEach)
      numbers[`${noise}: refused without Retry-After, failed`] = noised.withoutRetryAfter + noised.failed
      if (noised.failed > 0) say(`${noise}: ${noised.failed} failed, such as ${noised.failure}`)
      const times = rounded(p99 / quantile(quiet, 0.99))
      say(`${noise}: p50 ${rounded(median(elapsed))} ms, p99 ${rounded(p99)} ms, ${times} times the quiet p99`)
    }
    return numbers
  },
}

let created = 0

function configMap(name: string): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { text: 'x'.repeat(512) } })
}

async function fill(kubeconfig: string): Promise<void> {
  await using endpoint = openEndpoint(kubeconfig, { connections: 32 })
  let next = 0
  const client = async (): Promise<void> => {
    while (next < listed) await endpoint.json('POST', configMaps, configMap(`listed-${next++}`))
  }
  await Promise.all(Array.from({ length: 32 }, client))
}

async function withNoise(
  noise: Noise,
  kubeconfig: string,
  others: readonly Endpoint[],
  signal: AbortSignal,
): Promise<{ elapsed: readonly number[]; noised: Noised }> {
  await using client = startClientProcess<ToNoisyClient, FromNoisyClient>('./noisy-client.ts', { lowPriority: true })
  await client.ask({ start: noise, kubeconfig, connections: noisyConnections })
  await delay(1000, undefined, { signal })
  const elapsed = await steady(others, secondsEach, signal)
  const response = await client.ask('stop')
  if (!('noised' in response)) throw new Error('the noisy client did not report')
  return { elapsed, noised: response.noised }
}

/**
 * Latencies of all requests in milliseconds. The requests are sent on schedule, whether or not earlier ones were
 * answered, so slow responses do not make the measurement longer.
 */
async function steady(others: readonly Endpoint[], seconds: number, signal: AbortSignal): Promise<readonly number[]> {
  const elapsed: number[] = []
  const waiting = new Set<{ readonly began: number }>()
  const one = async (endpoint: Endpoint, number: number): Promise<void> => {
    const request = { began: performance.now() }
    waiting.add(request)
    const isCreate = number % 4 === 0
    const { status } = isCreate
      ? await endpoint.request('POST', configMaps, configMap(`quiet-${created++}`))
      : await endpoint.request('GET', `${configMaps}/read`)
    if (status >= 300) throw new Error(`a quiet tenant was answered ${status}`)
    if (waiting.delete(request)) elapsed.push(performance.now() - request.began)
  }
  const tenant = async (endpoint: Endpoint, offset: number): Promise<void> => {
    const requests: Promise<void>[] = []
    const began = performance.now() + (offset * 1000) / requestsPerSecond
    for (let number = 0; number < seconds * requestsPerSecond; number++) {
      const wait = began + (number * 1000) / requestsPerSecond - performance.now()
      if (wait > 0) await delay(wait, undefined, { signal })
      requests.push(one(endpoint, number))
    }
    const answered = new AbortController()
    const tail = delay(maxTailSeconds * 1000, undefined, { signal: answered.signal }).catch(() => undefined)
    await Promise.race([Promise.all(requests), tail])
    answered.abort()
  }
  await Promise.all(others.map((endpoint, index) => tenant(endpoint, index / others.length)))
  const now = performance.now()
  for (const { began } of waiting) elapsed.push(now - began)
  waiting.clear()
  return elapsed
}
