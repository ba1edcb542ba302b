// The controller of LogicalClusterSnapshots: takes each once, and deletes what is stored with its object.
import { systemClock, timestamp, type Clock } from '#async/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import type { DeepReadonly, Informer } from '#client/index.ts'
import {
  areVolumesEnding,
  deletingVolumesReason,
  fillingOf,
  logicalClusters,
  logicalClusterSnapshots,
  restoredFromAnnotation,
  setCondition,
  snapshotFinalizer,
  snapshotStores,
  transferOf,
  volumeSourceOf,
  type ConditionUpdate,
  type LogicalCluster,
  type LogicalClusterSnapshot,
  type LogicalClusterSnapshotStatus,
  type SnapshotStore,
  type SnapshotVolume,
} from '#crds/index.ts'
import { runLoop } from '#operator/framework/loop.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { recordEvent } from '#operator/framework/record-event.ts'
import { StoreProblem, type StoreAccess } from '#operator/snapshot-stores/open-store.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import { isStorageError, SnapshotError } from '#snapshot/index.ts'
import { deleteStored, takeSnapshot } from './take-snapshot.ts'

/** Snapshots that are taken or deleted at a time: each holds two parts of an upload, 10 MiB, in memory. */
const workers = 4
/** The longest time of one attempt. */
const timeoutMs = 2 * 3_600_000
/** Attempts until a snapshot has failed for good: with the pauses between them, some 40 minutes. */
const maxAttempts = 10
const [firstPauseSeconds, maxPauseSeconds] = [10, 600]
/** Seconds until a snapshot looks again whether its logical cluster is whole. */
const wholeAgainSeconds = 10
/** Seconds until a deletion that its store has refused is tried again. */
const deleteAgainSeconds = 30
/** Seconds until a deletion looks again whether members have ended theirs. */
const workingSeconds = 2
/** The most seconds until a deletion looks again whether restores have ended: a look asks for all claims. */
const maxUseSeconds = 30
/** The reason of condition Complete while storages take their snapshots, and seconds between two looks at them. */
const takingReason = 'TakingVolumes'
const volumesLookSeconds = 1
/** Seconds between two looks at the volumes of a complete snapshot: an admin of a member can delete them. */
const volumesAgainSeconds = 3600
/** Timers have an upper bound. */
const maxWaitSeconds = 3600

const claims = { group: '', version: 'v1', resource: 'persistentvolumeclaims' } as const

type Seen = DeepReadonly<LogicalClusterSnapshot>

/** What takes the volumes of claims in members, and deletes them: src/operator/volumes. */
export interface SnapshotVolumes {
  /** The volumes of all claims, before anything is made in a member: Pending, or LeftOut. */
  plan(
    snapshot: Seen,
    context: Pick<OperatorContext, 'informers' | 'virtual'>,
    signal: AbortSignal,
  ): Promise<SnapshotVolume[]>
  /** Goes on with those that are Pending, for at most some seconds, and resolves with all. */
  take(snapshot: Seen, volumes: readonly SnapshotVolume[], signal: AbortSignal): Promise<SnapshotVolume[]>
  /** Deletes what was needed only while they were taken. */
  tidy(snapshot: Seen, volumes: readonly SnapshotVolume[], signal: AbortSignal): Promise<void>
  /** Deletes them. Resolves with what is waited for; undefined: nothing is left. */
  delete(
    snapshot: Seen,
    volumes: readonly SnapshotVolume[],
    context: Pick<OperatorContext, 'informers'>,
    signal: AbortSignal,
  ): Promise<Problem | undefined>
  /** Those that the members do not have any more. */
  missing(volumes: readonly DeepReadonly<SnapshotVolume>[], signal: AbortSignal): Promise<SnapshotVolume[]>
}

interface Problem {
  readonly reason: string
  readonly message: string
}

/** Takes and deletes snapshots. Without `volumes`, snapshots have no volumes. */
export function snapshotsController({
  clock = systemClock,
  volumes,
}: { readonly clock?: Clock; readonly volumes?: SnapshotVolumes } = {}): OperatorController {
  return {
    name: 'snapshots',
    async run(context, { signal, started }) {
      const snapshots = context.informers.of<LogicalClusterSnapshot>(logicalClusterSnapshots)
      const stores = context.informers.of<SnapshotStore>(snapshotStores)
      const clusters = context.informers.of<LogicalCluster>(logicalClusters)
      started()
      let again = (_name: string): void => undefined
      const keeper = new Snapshots(context, {
        ...{ snapshots, stores, clusters, clock },
        ...(volumes !== undefined && { volumes }),
        again: (name) => again(name),
      })
      await runLoop(
        {
          name: 'snapshots',
          workers,
          timeoutMs,
          informers: [snapshots, stores, clusters],
          fairnessKey: (name) => snapshots.store.get(name)?.spec.logicalCluster ?? '',
          follow: (add) => {
            again = add
            return [
              snapshots.onChange(({ key, before, after }) => {
                if (after === undefined) keeper.forget(key)
                else if (before === undefined || isOther(before, after)) add(key)
              }),
              stores.onChange(({ key }) => {
                for (const one of snapshots.store.list())
                  if (one.spec.store === key && (!isOver(one) || isDeleting(one))) add(one.metadata.name)
              }),
            ]
          },
          reconcile: (name, life) => keeper.reconcile(name, life),
        },
        context,
        signal,
      )
    },
  }
}

interface Dependencies {
  readonly snapshots: Informer<LogicalClusterSnapshot>
  readonly stores: Informer<SnapshotStore>
  readonly clusters: Informer<LogicalCluster>
  readonly clock: Clock
  readonly volumes?: SnapshotVolumes
  readonly again: (name: string) => void
}

class Snapshots {
  readonly #context: OperatorContext
  readonly #deps: Dependencies
  /** Logical clusters of which a snapshot is being taken, with the snapshots that wait for its end. */
  readonly #busy = new Map<string, Set<string>>()
  /** When members were asked for the volumes of complete snapshots, in Unix milliseconds. */
  readonly #lookedAt = new Map<string, number>()

  constructor(context: OperatorContext, deps: Dependencies) {
    this.#context = context
    this.#deps = deps
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const cached = this.#deps.snapshots.store.get(name)
    if (cached === undefined) return {}
    if (isOver(cached) && !isDeleting(cached)) return await this.#expire(cached, signal)
    // A cache behind the own last write would begin again what has ended.
    const object = await this.#context.clusters.tryGet<LogicalClusterSnapshot>(
      logicalClusterSnapshots,
      { name },
      { signal },
    )
    if (object === undefined) return {}
    if (isDeleting(object)) return await this.#delete(object, signal)
    if (isOver(object)) return await this.#expire(object, signal)
    return await this.#take(object, signal)
  }

  forget(name: string): void {
    this.#lookedAt.delete(name)
    for (const waiting of this.#busy.values()) waiting.delete(name)
  }

  /** Deletes the object when its time is over. */
  async #expire(object: Seen, signal: AbortSignal): Promise<ReconcileResult> {
    const { metadata, spec, status } = object
    const { name, uid = '' } = metadata
    if (metadata.finalizers?.includes(snapshotFinalizer) !== true) await this.#setFinalizer(object, true, signal)
    const lookSeconds = await this.#lookAtVolumes(object, signal)
    const ended = Date.parse(status?.completionTime ?? '')
    if (spec.ttlSecondsAfterFinished === undefined || Number.isNaN(ended))
      return lookSeconds === Infinity ? {} : { requeueAfterSeconds: lookSeconds }
    const left = ended / 1000 + spec.ttlSecondsAfterFinished - this.#deps.clock.now() / 1000
    if (left > 0) return { requeueAfterSeconds: Math.min(left, lookSeconds, maxWaitSeconds) }
    await this.#context.clusters
      .delete(logicalClusterSnapshots, { name }, { uid, signal })
      .catch(tolerate('NotFound', 'Conflict'))
    return {}
  }

  /** Tells of volumes that have gone from their members. Resolves with the seconds until the next look. */
  async #lookAtVolumes(object: Seen, signal: AbortSignal): Promise<number> {
    const { volumes: taker, clock } = this.#deps
    const { name } = object.metadata
    const { phase, claims: count = 0, conditions = [] } = object.status ?? {}
    const volumes = (object.status?.volumes ?? []) as readonly SnapshotVolume[]
    if (taker === undefined || phase !== 'Completed' || volumes.length === 0) return Infinity
    const left = (this.#lookedAt.get(name) ?? -Infinity) / 1000 + volumesAgainSeconds - clock.now() / 1000
    if (left > 0) return left
    const gone = await taker.missing(volumes, signal)
    const [update] = gone.length === 0 ? includedCondition(count, volumes) : [missingCondition(gone)]
    const before = conditions.find(({ type }) => type === 'VolumesIncluded')
    if (update !== undefined && (before?.reason !== update.reason || before.message !== update.message)) {
      await this.#write(object, {}, [update], signal)
      const { reason, message } = update
      if (gone.length > 0) await this.#event(object, { type: 'Warning', reason, message }, signal)
    }
    this.#lookedAt.set(name, clock.now())
    return volumesAgainSeconds
  }

  async #take(object: Seen, signal: AbortSignal): Promise<ReconcileResult> {
    const { name } = object.metadata
    const { logicalCluster } = object.spec
    const store = this.#deps.stores.store.get(object.spec.store)
    if (store === undefined) {
      const message = `there is no SnapshotStore "${object.spec.store}"; the snapshot is taken when there is one`
      await this.#wait(object, { reason: 'StoreMissing', message }, signal)
      return {}
    }
    const busy = this.#busy.get(logicalCluster)
    if (busy !== undefined) {
      busy.add(name)
      // A snapshot whose storage takes its time looks again in the same attempt.
      if (completeOf(object)?.reason === takingReason) return {}
      const message = `another snapshot of "${logicalCluster}" is taken first`
      await this.#wait(object, { reason: 'Queued', message }, signal)
      return {}
    }
    const cluster = this.#deps.clusters.store.get(logicalCluster)
    const note = cluster && transferOf(cluster)
    if (note?.moved === true) {
      const message = `"${logicalCluster}" has moved to ${note.with}: take the snapshot there`
      const update = { status: 'False', reason: 'LogicalClusterMoved', message } as const
      const updates = [
        { type: 'Complete', ...update },
        { type: 'Failed', ...update, status: 'True' },
      ] as const
      await this.#write(object, { phase: 'Failed', completionTime: this.#now() }, updates, signal)
      await this.#event(object, { type: 'Warning', reason: update.reason, message }, signal)
      return {}
    }
    const filling = this.#fillingOf(logicalCluster)
    if (filling !== undefined) {
      const message = `"${logicalCluster}" is not whole: ${filling}`
      await this.#wait(object, { reason: 'LogicalClusterNotWhole', message }, signal)
      return { requeueAfterSeconds: wholeAgainSeconds }
    }
    const waiting = new Set<string>()
    this.#busy.set(logicalCluster, waiting)
    try {
      return await this.#attempt(object, store, signal)
    } finally {
      this.#busy.delete(logicalCluster)
      for (const one of waiting) this.#deps.again(one)
    }
  }

  async #attempt(object: Seen, store: DeepReadonly<SnapshotStore>, signal: AbortSignal): Promise<ReconcileResult> {
    const { logicalCluster } = object.spec
    const paused = this.#pauseLeft(object)
    if (paused > 0) return { requeueAfterSeconds: paused }
    // Another look at the volumes that are being taken is no other attempt.
    const isTaking = completeOf(object)?.reason === takingReason
    const attempts = (object.status?.attempts ?? 0) + (isTaking ? 0 : 1)
    const kept =
      object.metadata.finalizers?.includes(snapshotFinalizer) === true
        ? object
        : await this.#setFinalizer(object, true, signal)
    const begun = isTaking ? kept : await this.#begin(kept, attempts, signal)
    try {
      if (this.#deps.clusters.store.get(logicalCluster) === undefined)
        throw new SnapshotError(`there is no LogicalCluster "${logicalCluster}"`)
      const virtual = this.#context.virtual(`/clusters/${logicalCluster}`)
      // Volumes first: the objects of the snapshot then know all claims that it has volumes of.
      const ready = await this.#takeVolumes(begun, signal)
      if (completeOf(ready)?.reason === takingReason) return { requeueAfterSeconds: volumesLookSeconds }
      const taken = await takeSnapshot(ready, { ...this.#access(), store, virtual, signal })
      const { objects, revision, location, claims } = taken
      const volumes = ready.status?.volumes as readonly SnapshotVolume[] | undefined
      const without = claims === 0 ? '' : `; ${volumesText(claims, volumes)}`
      const message = `${objects} objects at revision ${revision} are in ${location}${without}`
      await this.#write(
        ready,
        { ...taken, phase: 'Completed', completionTime: this.#now() },
        [{ type: 'Complete', status: 'True', reason: 'Completed', message }, ...includedCondition(claims, volumes)],
        signal,
      )
      await this.#event(begun, { type: 'Normal', reason: 'Completed', message }, signal)
      return {}
    } catch (error) {
      signal.throwIfAborted()
      // Somebody else has written the object, or has deleted it: the next reconcile sees that.
      if (isStatusError(error, 'Conflict') || (isStatusError(error, 'NotFound') && !this.#isThere(begun))) throw error
      return await this.#failed(begun, error, attempts, signal)
    }
  }

  async #begin(object: Seen, attempts: number, signal: AbortSignal): Promise<LogicalClusterSnapshot> {
    const message = `attempt ${attempts} of ${maxAttempts}`
    return await this.#write(
      object,
      { phase: 'InProgress', attempts, startTime: this.#now() },
      [{ type: 'Complete', status: 'False', reason: 'InProgress', message }],
      signal,
    )
  }

  /**
   * Takes the volumes, once for all attempts. What is going to be made in members is written down before, so that no
   * crash leaves anything there that nobody knows of. While a storage takes its time, condition Complete has reason
   * `takingReason`, and other snapshots have the worker.
   */
  async #takeVolumes(object: Seen, signal: AbortSignal): Promise<Seen> {
    const { volumes: taker } = this.#deps
    if (object.spec.volumes !== 'Include' || taker === undefined) return object
    let now = object
    let volumes = now.status?.volumes as readonly SnapshotVolume[] | undefined
    if (volumes === undefined) {
      volumes = await taker.plan(now, this.#context, signal)
      now = await this.#write(now, { volumes: [...volumes] }, [], signal)
    }
    if (volumes.some(({ state }) => state === 'Pending')) {
      const after = await taker.take(now, volumes, signal)
      const waits = after.filter(({ state }) => state === 'Pending').length
      const message =
        waits === 0 ? '' : `the storage of member clusters takes snapshots of volumes: ${waits} are missing`
      const reason = waits === 0 ? 'InProgress' : takingReason
      const isSame = JSON.stringify(after) === JSON.stringify(volumes)
      const update = { type: 'Complete', status: 'False', reason, message } as const
      if (!isSame || completeOf(now)?.reason !== reason)
        now = await this.#write(now, { volumes: after }, [update], signal)
      if (waits > 0) return now
      volumes = after
    }
    await taker.tidy(now, volumes, signal)
    return now
  }

  async #failed(object: Seen, error: unknown, attempts: number, signal: AbortSignal): Promise<ReconcileResult> {
    const { reason, message } = this.#reasonOf(object, error)
    const isLast = attempts >= maxAttempts
    const pause = pauseSeconds(attempts)
    const text = isLast
      ? `${message}; ${attempts} attempts have failed, so make another LogicalClusterSnapshot when this is repaired`
      : `${message}; attempt ${attempts} of ${maxAttempts}, the next one in ${pause} s`
    const conditions: ConditionUpdate[] = [{ type: 'Complete', status: 'False', reason, message: text }]
    if (isLast) conditions.push({ type: 'Failed', status: 'True', reason, message: text })
    await this.#write(
      object,
      isLast ? { phase: 'Failed', completionTime: this.#now() } : { phase: 'Waiting' },
      conditions,
      signal,
    )
    await this.#event(object, { type: 'Warning', reason, message: text }, signal)
    if (!isLast) return { requeueAfterSeconds: pause }
    // What the last attempt has left would stay until the object is deleted.
    const store = this.#deps.stores.store.get(object.spec.store)
    if (store !== undefined) await deleteStored(object, store, this.#access(), signal).catch(() => undefined)
    return {}
  }

  #reasonOf({ spec }: Seen, error: unknown): { reason: string; message: string } {
    const message = error instanceof Error ? error.message : String(error)
    if (this.#deps.clusters.store.get(spec.logicalCluster) === undefined)
      return { reason: 'LogicalClusterMissing', message }
    if (error instanceof StoreProblem || isStorageError(error))
      return { reason: error.reason, message: `store "${spec.store}": ${message}` }
    return { reason: 'NotRead', message: `"${spec.logicalCluster}" was not read: ${message}` }
  }

  /** Seconds until the next attempt may begin. */
  #pauseLeft({ status }: Seen): number {
    const began = Date.parse(status?.startTime ?? '')
    if (status?.phase !== 'Waiting' || Number.isNaN(began)) return 0
    const failed = status.conditions?.find(({ type }) => type === 'Complete')
    const isPaused =
      failed !== undefined && !['StoreMissing', 'Queued', 'LogicalClusterNotWhole'].includes(failed.reason)
    const until = began / 1000 + pauseSeconds(status.attempts ?? 1)
    return isPaused ? Math.max(0, until - this.#deps.clock.now() / 1000) : 0
  }

  async #delete(object: Seen, signal: AbortSignal): Promise<ReconcileResult> {
    const { metadata, spec, status } = object
    if (metadata.finalizers?.includes(snapshotFinalizer) !== true) return {}
    if (spec.deletionPolicy !== 'Retain' && (status?.attempts ?? 0) > 0) {
      const isBegun = areVolumesEnding(object)
      const use = isBegun ? undefined : await this.#useOf(object, signal)
      if (use === undefined && !isBegun && this.#hasVolumes(object)) {
        // From here no claim gets a volume from it any more.
        const message = 'members delete the snapshots of its volumes'
        const update = { type: 'VolumesIncluded', status: 'False', reason: deletingVolumesReason, message } as const
        await this.#write(object, {}, [update], signal)
        return { requeueAfterSeconds: 0.05 }
      }
      const problem = use ?? (await this.#deleteVolumes(object, signal)) ?? (await this.#deleteStored(object, signal))
      if (problem !== undefined) {
        const isWorking = problem.reason === deletingVolumesReason || problem.reason === 'InUse'
        const advice = isWorking
          ? problem.message
          : `${problem.message}; spec.deletionPolicy: Retain leaves it there and lets this object go`
        const isTold = status?.conditions?.some((one) => one.type === 'Deleted' && one.message === advice) === true
        if (!isTold) {
          const { reason } = problem
          await this.#write(object, {}, [{ type: 'Deleted', status: 'False', reason, message: advice }], signal)
          if (!isWorking) await this.#event(object, { type: 'Warning', reason, message: advice }, signal)
        }
        if (use !== undefined) return { requeueAfterSeconds: this.#useSeconds(object) }
        return { requeueAfterSeconds: isWorking ? workingSeconds : deleteAgainSeconds }
      }
    }
    await this.#setFinalizer(object, false, signal)
    return {}
  }

  #hasVolumes({ status }: Seen): boolean {
    return this.#deps.volumes !== undefined && (status?.volumes ?? []).length > 0
  }

  /** Seconds until the next look whether restores have ended: the longer the deletion has waited, the later. */
  #useSeconds({ metadata }: Seen): number {
    const waited = (this.#deps.clock.now() - Date.parse(metadata.deletionTimestamp ?? '')) / 1000
    return Math.min(maxUseSeconds, Math.max(workingSeconds, waited / 10))
  }

  /** Why it is not deleted yet: restores need it. */
  async #useOf(object: Seen, signal: AbortSignal): Promise<Problem | undefined> {
    const { name, uid } = object.metadata
    const clusters = this.#deps.clusters.store.list()
    const held = `${name}/${uid ?? ''}`
    const restored = clusters.find(({ metadata }) => metadata.annotations?.[restoredFromAnnotation] === held)
    if (restored !== undefined) {
      const message = `"${restored.metadata.name}" is restored from it; if that was broken off, run the same command again`
      return { reason: 'InUse', message }
    }
    if (!this.#hasVolumes(object)) return undefined
    const filling = clusters.find((one) => one.spec?.source?.snapshot?.name === name && fillingOf(one) !== undefined)
    if (filling !== undefined)
      return { reason: 'InUse', message: `"${filling.metadata.name}" is being filled from its objects and volumes` }
    const all = this.#context.virtual('/clusters/*')
    const { items } = await all.list<KubeObject>(claims, { metadataOnly: true, signal })
    const users = items.filter((claim) => volumeSourceOf(claim)?.uid === uid).length
    return users > 0 ? { reason: 'InUse', message: `${users} claims get their volumes from it` } : undefined
  }

  async #deleteVolumes(object: Seen, signal: AbortSignal): Promise<Problem | undefined> {
    if (!this.#hasVolumes(object)) return undefined
    const volumes = (object.status?.volumes ?? []) as readonly SnapshotVolume[]
    return await this.#deps.volumes?.delete(object, volumes, this.#context, signal)
  }

  async #deleteStored(object: Seen, signal: AbortSignal): Promise<Problem | undefined> {
    const store = this.#deps.stores.store.get(object.spec.store)
    if (store === undefined)
      return { reason: 'StoreMissing', message: `there is no SnapshotStore "${object.spec.store}" to delete it from` }
    try {
      await deleteStored(object, store, this.#access(), signal)
      return undefined
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof StoreProblem) && !isStorageError(error)) throw error
      return { reason: error.reason, message: `store "${object.spec.store}": ${error.message}` }
    }
  }

  /** Tells what the snapshot waits for, once. */
  async #wait(
    object: Seen,
    { reason, message }: { readonly reason: string; readonly message: string },
    signal: AbortSignal,
  ): Promise<void> {
    const now = object.status?.conditions?.find(({ type }) => type === 'Complete')
    if (now?.reason === reason && now.message === message) return
    const update = { type: 'Complete', status: 'False', reason, message } as const
    await this.#write(object, { phase: 'Waiting' }, [update], signal)
    await this.#event(object, { type: 'Normal', reason, message }, signal)
  }

  /** Rejects with Conflict if the object is not as it was read. */
  async #write(
    { metadata, status = {} }: Seen,
    change: LogicalClusterSnapshotStatus,
    updates: readonly ConditionUpdate[],
    signal: AbortSignal,
  ): Promise<LogicalClusterSnapshot> {
    const { name, generation = 0, resourceVersion } = metadata
    const conditions = updates.reduce<ReturnType<typeof setCondition> | undefined>(
      (list, update) => setCondition(list, { observedGeneration: generation, ...update }, this.#now()),
      status.conditions,
    )
    const patch = { metadata: { resourceVersion }, status: { ...change, observedGeneration: generation, conditions } }
    return await this.#context.clusters.patch<LogicalClusterSnapshot>(
      logicalClusterSnapshots,
      { name },
      'merge',
      patch,
      { subresource: 'status', signal },
    )
  }

  async #setFinalizer({ metadata }: Seen, isSet: boolean, signal: AbortSignal): Promise<LogicalClusterSnapshot> {
    const { name, resourceVersion, finalizers = [] } = metadata
    const others = finalizers.filter((one) => one !== snapshotFinalizer)
    const patch = { metadata: { resourceVersion, finalizers: isSet ? [...others, snapshotFinalizer] : others } }
    return await this.#context.clusters.patch<LogicalClusterSnapshot>(
      logicalClusterSnapshots,
      { name },
      'merge',
      patch,
      { signal },
    )
  }

  async #event(
    object: Seen,
    text: { readonly type: 'Normal' | 'Warning'; readonly reason: string; readonly message: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { clusters: client, log } = this.#context
    await recordEvent(object, text, { client, component: 'kcp-snapshots', now: this.#now(), log }, signal)
  }

  #fillingOf(logicalCluster: string): string | undefined {
    const object = this.#deps.clusters.store.get(logicalCluster)
    return object && fillingOf(object)
  }

  #isThere({ spec }: Seen): boolean {
    return this.#deps.clusters.store.get(spec.logicalCluster) !== undefined
  }

  #access(): StoreAccess {
    const { clusters, snapshotDirectory: directory } = this.#context
    return { clusters, ...(directory !== undefined && { directory }) }
  }

  #now(): string {
    return timestamp(this.#deps.clock.now())
  }
}

/** What the snapshot has of the data of its claims. */
function volumesText(claims: number, volumes: readonly SnapshotVolume[] | undefined): string {
  if (volumes === undefined)
    return `the data of its ${claims} PersistentVolumeClaims are not in it (spec.volumes: Include keeps them in their member clusters)`
  const included = volumes.filter(({ state }) => state === 'Included')
  const times = included.flatMap(({ time }) => time ?? []).sort()
  const [first = ''] = times
  const last = times.at(-1) ?? ''
  const when = times.length < 2 || first === last ? '' : `, each taken on its own, between ${first} and ${last}`
  return `of its ${claims} PersistentVolumeClaims, the volumes of ${included.length} are kept in the storage of their member clusters${when}`
}

/** How many volumes that are left out a message names. */
const maxNamed = 5

function includedCondition(claims: number, volumes: readonly SnapshotVolume[] | undefined): ConditionUpdate[] {
  if (volumes === undefined) return []
  const type = 'VolumesIncluded'
  const out = volumes.filter(({ state }) => state !== 'Included')
  const missing = claims - (volumes.length - out.length)
  if (missing <= 0 && out.length === 0)
    return [
      { type, status: 'True', reason: 'AllIncluded', message: `the volumes of ${volumes.length} claims are kept` },
    ]
  const named = out
    .slice(0, maxNamed)
    .map(({ namespace, claim, reason = '', message = '' }) => `${namespace}/${claim}: ${reason} (${message})`)
  const text = [`${Math.max(missing, out.length)} claims are without their volume`, ...named].join('; ')
  return [{ type, status: 'False', reason: 'SomeLeftOut', message: text }]
}

function missingCondition(gone: readonly SnapshotVolume[]): ConditionUpdate {
  const named = gone.slice(0, maxNamed).map((one) => `${one.namespace}/${one.claim} (${one.member ?? ''})`)
  const message = `member clusters do not have the snapshots of ${gone.length} volumes any more: ${named.join(', ')}`
  return { type: 'VolumesIncluded', status: 'False', reason: 'VolumesMissing', message }
}

function pauseSeconds(attempts: number): number {
  return Math.min(maxPauseSeconds, firstPauseSeconds * 2 ** (attempts - 1))
}

function completeOf({ status }: Seen) {
  return status?.conditions?.find(({ type }) => type === 'Complete')
}

function isOver({ status }: Seen): boolean {
  return status?.phase === 'Completed' || status?.phase === 'Failed'
}

function isDeleting({ metadata }: Seen): boolean {
  return metadata.deletionTimestamp !== undefined
}

/** Whether something has changed besides the status, which the controller itself writes. */
function isOther(before: Seen, after: Seen): boolean {
  return (
    before.metadata.generation !== after.metadata.generation ||
    before.metadata.deletionTimestamp !== after.metadata.deletionTimestamp ||
    before.metadata.uid !== after.metadata.uid ||
    isOver(before) !== isOver(after)
  )
}
