// One round of load on several replicas of `kcp apiserver`, while one of them is stopped and goes on, with the history
// that its clients saw and what the checker says about it.
import { setTimeout as delay } from 'node:timers/promises'
import type { ReplicaSet, RunningReplica } from '#test/integration/replicas.ts'
import { waitFor } from '#test/support/index.ts'
import { violationsOf } from './checker.ts'
import { openClient } from './client.ts'
import type { History } from './history.ts'
import { Recorder, type Place } from './recorder.ts'

/** Clients that write to each logical cluster. */
export const writersPerPlace = 2
const deadlineMs = 60_000
/** A loaded machine takes its time to start a process. */
const restartMs = 180_000

export interface Disturbance {
  /** Names of the logical clusters under load. */
  readonly clusters: readonly string[]
  readonly victim: RunningReplica
  readonly stop: (victim: RunningReplica) => unknown
  readonly resume: (victim: RunningReplica) => unknown
  /** It is killed, and may start again before another replica takes over. Default: false. */
  readonly mayForget?: boolean
  /** Resolves when the victim is to go on. It is given a place of the first logical cluster through another replica. */
  readonly whileStopped: (first: Place) => Promise<unknown>
}

export interface RecordedRound {
  readonly acknowledged: number
  /** Of these, before the victim was stopped. */
  readonly before: number
  /** Writes without a sure answer. */
  readonly unknown: number
  readonly lists: number
  /** Watches that were told 410. */
  readonly expired: number
  /** Answers that no client should see. */
  readonly unexpected: readonly unknown[]
  readonly violations: readonly unknown[]
  readonly history: History
}

/**
 * Writes, reads and watches through every replica while the victim is stopped and goes on. Ends its load in any case.
 */
export async function recordedRound(
  set: ReplicaSet,
  { clusters, victim, stop, resume, whileStopped, mayForget = false }: Disturbance,
): Promise<RecordedRound> {
  using stack = new DisposableStack()
  const placesThrough = async (replicas: readonly RunningReplica[]): Promise<Place[]> => {
    const places: Place[] = []
    for (const [index, cluster] of clusters.entries()) {
      const through = replicas[index % replicas.length]
      if (through === undefined) throw new Error('no replica')
      places.push({ cluster, client: stack.use(openClient(await set.kubeconfig(cluster, through))) })
    }
    return places
  }
  const places = await placesThrough(set.replicas.filter((replica) => replica !== victim))
  const [first] = places
  if (first === undefined) throw new Error('no place')
  await emptied(places)
  // These ask the victim itself. While it is paused they wait, and must not be told what it knew before.
  const askingVictim = await placesThrough([victim])
  const recorder = new Recorder(Date.now() % 1_000_000)
  const over = new AbortController()
  stack.defer(() => over.abort())
  const watching = places.map((place) =>
    recorder.watch(place, {
      title: place.cluster,
      query: 'allowWatchBookmarks=true',
      breaks: 0,
      signal: over.signal,
    }),
  )
  let stopped = false
  stack.defer(() => (stopped = true))
  const isStopped = (): boolean => stopped
  const always = async (what: () => Promise<unknown>): Promise<void> => {
    while (!stopped) {
      await what()
      await delay(20)
    }
  }
  const load = [...places, ...askingVictim].flatMap((place) => [
    ...Array.from({ length: writersPerPlace }, (_, writer) => always(() => recorder.write(place, writer, isStopped))),
    always(() => recorder.read(place, isStopped)),
  ])
  await waitFor(() => recorder.acknowledged >= 100, { what: 'writes under load', deadlineMs })
  const before = recorder.acknowledged
  await stop(victim)
  await whileStopped(first)
  if (mayForget) recorder.restarting()
  await resume(victim)
  await delay(3000)
  stopped = true
  await Promise.all(load)
  await settled(set, clusters)
  for (const place of places) {
    const mark = await recorder.mark(place, `s1-end`)
    await waitFor(
      () => (recorder.positions().find(({ cluster }) => cluster === place.cluster)?.revision ?? 0) >= mark,
      { what: `the watch of "${place.cluster}" to be at its end`, deadlineMs },
    )
    await recorder.list(place)
  }
  over.abort()
  await Promise.all(watching)
  const { history, acknowledged, expired, unexpected } = recorder
  const unknown = history.writes.filter(({ outcome }) => outcome.is === 'unknown').length
  const violations = violationsIn(history, clusters)
  return { acknowledged, before, unknown, lists: history.lists.length, expired, unexpected, violations, history }
}

/** Resolves once every logical cluster has one owner. */
export async function settled(set: ReplicaSet, clusters: readonly string[]): Promise<void> {
  for (const name of clusters)
    await waitFor(async () => (await set.ownerOf(name).catch(() => undefined)) !== undefined, {
      what: `one owner of "${name}"`,
      deadlineMs,
    })
}

/** Each logical cluster by itself: revisions of several, served by several processes, come in no common order. */
export function violationsIn(history: History, clusters: readonly string[]): unknown[] {
  return clusters.flatMap((cluster) => {
    const isOf = (one: { readonly cluster: string }): boolean => one.cluster === cluster
    const { writes, lists, gets, watches } = history
    return violationsOf({
      writes: writes.filter(isOf),
      lists: lists.filter(isOf),
      gets: gets.filter(isOf),
      watches: watches.filter(isOf),
    })
  })
}

/** Deletes what an earlier round has written. */
export async function emptied(places: readonly Place[]): Promise<void> {
  for (const { client, cluster } of places) {
    const path = '/api/v1/namespaces/default/configmaps?labelSelector=load'
    const isEmpty = async (): Promise<boolean> => (await client.request('DELETE', path)).status === 200
    // A host that is busy answers 504.
    await waitFor(isEmpty, { what: `"${cluster}" to be emptied`, deadlineMs })
  }
}

/** Whether a write to the logical cluster is acknowledged now. */
export async function isWritable({ client }: Place): Promise<boolean> {
  const body = { metadata: { name: 'probe' } }
  const path = '/api/v1/namespaces/default/configmaps'
  const { status } = await client.request('POST', path, { body }).catch(() => ({ status: 0 }))
  if (status !== 201) return status === 409 && (await client.request('DELETE', `${path}/probe`)).status === 200
  return true
}

/** Resolves when a replica that was started again is ready. */
export async function untilReady(set: ReplicaSet, replica: RunningReplica): Promise<void> {
  const isReady = async (): Promise<boolean> => {
    const client = openClient(await set.kubeconfig('c0', replica), '')
    try {
      return (await client.request('GET', '/readyz')).status === 200
    } catch {
      return false
    } finally {
      client[Symbol.dispose]()
    }
  }
  try {
    await waitFor(isReady, { what: 'a restarted replica to be ready', deadlineMs: restartMs })
  } catch (cause) {
    throw new Error(`it printed: ${replica.process.log().slice(-2000)}`, { cause })
  }
}
