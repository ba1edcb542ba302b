// Measures watches: the lag of events to many watchers, and the memory of idle watches.
import { setTimeout as delay } from 'node:timers/promises'
import { startClientProcess, type ClientProcess } from './client-process.ts'
import { startContenders, type Contender } from './contenders.ts'
import { openEndpoint, type Endpoint } from './load.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { cpuSeconds, residentMiB } from './process-usage.ts'
import { rounded } from './statistics.ts'
import {
  eventText,
  type FromWatchClient,
  type Received,
  type OpenWatches,
  type ToWatchClient,
} from './watch-protocol.ts'

const configMaps = '/api/v1/namespaces/default/configmaps'
/** Number of objects, updated in rotation. */
const objects = 10

/** 1,000 watchers in the distribution of real clients: 100 connections with 10 watches each. */
const fanOut = { connections: 100, watchesEach: 10, eventsPerSecond: 100, seconds: 10 }

export const watchFanOut: Measurement = {
  name: 'fan-out',
  describes:
    '1,000 watchers (100 connections) x 100 events/s: lag from the write being sent to each watcher, and losses',
  async run({ signal }) {
    await using contenders = await startContenders('watched', signal)
    const numbers: Record<string, number> = {}
    for (const contender of contenders.both) Object.assign(numbers, await fanOutOf(contender))
    return numbers
  },
}

async function fanOutOf({ name, kubeconfig, pids: pidsNow }: Contender): Promise<Numbers> {
  const pids = pidsNow()
  await using endpoint = openEndpoint(kubeconfig, { connections: 16 })
  const version = await prepare(endpoint)
  await using client = await watching({
    kubeconfigs: [kubeconfig],
    connections: fanOut.connections,
    watchesEach: fanOut.watchesEach,
    path: `${configMaps}?watch=1&allowWatchBookmarks=true&resourceVersion=${version}`,
  })
  const total = fanOut.eventsPerSecond * fanOut.seconds
  const cpuBefore = cpuSeconds(pids)
  await writeSteadily(endpoint, total)
  const heard = await untilHeard(client, total)
  const cpu = cpuSeconds(pids) - cpuBefore
  const watchers = fanOut.connections * fanOut.watchesEach
  const lost = Math.max(0, total - heard.fewest) + heard.uneven + heard.ended.length
  return {
    [`${name}: p50 ms`]: heard.p50,
    [`${name}: p99 ms`]: heard.p99,
    [`${name}: max ms`]: rounded(heard.max),
    [`${name}: lost, doubled or ended`]: lost + Math.max(0, heard.most - total),
    [`${name}: events heard per CPU-s`]: rounded((total * watchers) / cpu),
  }
}

/** Creates the objects. Returns the resourceVersion to watch from. */
async function prepare(endpoint: Endpoint): Promise<string> {
  for (let i = 0; i < objects; i++) await endpoint.json('POST', configMaps, objectOf(i, 0))
  const list = (await endpoint.json('GET', configMaps)) as { metadata: { resourceVersion: string } }
  return list.metadata.resourceVersion
}

function objectOf(index: number, number: number): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `watched-${index}` },
    data: { at: eventText(number), text: 'x'.repeat(256) },
  })
}

async function watching(open: OpenWatches): Promise<ClientProcess<ToWatchClient, FromWatchClient>> {
  const client = startClientProcess<ToWatchClient, FromWatchClient>('./watch-client.ts')
  const response = await client.ask({ open })
  if ('opened' in response) return client
  await client[Symbol.asyncDispose]()
  throw new Error('failed' in response ? response.failed : 'the client of the watches did not open them')
}

/** Writes on schedule, whether or not earlier writes were answered: a slow server does not reduce its load. */
async function writeSteadily(endpoint: Endpoint, total: number): Promise<void> {
  const writes: Promise<unknown>[] = []
  const began = performance.now()
  for (let number = 1; number <= total; number++) {
    const due = began + ((number - 1) * 1000) / fanOut.eventsPerSecond
    const wait = due - performance.now()
    if (wait > 0) await delay(wait)
    const index = number % objects
    writes.push(endpoint.json('PUT', `${configMaps}/watched-${index}`, objectOf(index, number)))
  }
  await Promise.all(writes)
}

async function untilHeard(client: ClientProcess<ToWatchClient, FromWatchClient>, events: number): Promise<Received> {
  for (let attempt = 0; ; attempt++) {
    const response = await client.ask('report')
    if (!('heard' in response)) throw new Error('the client of the watches did not report')
    if (response.heard.fewest >= events || attempt === 100) return response.heard
    await delay(100)
  }
}

/** 4 tenants with 25 connections of 100 watches each. */
const idle = { tenants: 4, connections: 25, watchesEach: 100 }

export const idleWatches: Measurement = {
  name: 'idle',
  describes: '10,000 idle watches over 100 HTTP/2 connections: resident MiB of the server',
  async run({ signal }) {
    await using contenders = await startContenders('idle-0', signal)
    const { both, kcp } = contenders
    const numbers: Record<string, number> = {}
    const tenants = [both[0].kubeconfig]
    while (tenants.length < idle.tenants) tenants.push(await kcp.tenantKubeconfig(`idle-${tenants.length}`))
    const one = Array.from(tenants, () => both[1].kubeconfig)
    Object.assign(numbers, await idleOf(both[0], tenants, signal))
    Object.assign(numbers, await idleOf(both[1], one, signal))
    return numbers
  },
}

async function idleOf(
  { name, pids: pidsNow }: Contender,
  kubeconfigs: readonly string[],
  signal: AbortSignal,
): Promise<Numbers> {
  const pids = pidsNow()
  const before = residentMiB(pids)
  const began = performance.now()
  await using client = await watching({
    kubeconfigs,
    connections: idle.connections,
    watchesEach: idle.watchesEach,
    path: '/api/v1/configmaps?watch=1&allowWatchBookmarks=true',
  })
  const seconds = (performance.now() - began) / 1000
  await delay(5000, undefined, { signal })
  const response = await client.ask('report')
  const watches = kubeconfigs.length * idle.connections * idle.watchesEach
  const after = residentMiB(pids)
  return {
    [`${name}: MiB before`]: rounded(before),
    [`${name}: MiB with ${watches} watches`]: rounded(after),
    [`${name}: KiB per watch`]: rounded(((after - before) * 1024) / watches),
    [`${name}: seconds to open them`]: rounded(seconds),
    [`${name}: watches that ended`]: 'heard' in response ? response.heard.ended.length : watches,
  }
}
