// Keeps objects of logical clusters as Records in the host's etcd. The host's resourceVersion is the revision, and the
// host does the compare-and-swap.
import { abortable } from '#async/index.ts'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { records as recordsGvr, type StorageRecord } from '#crds/index.ts'
import { EventLog, lastStates } from '#store/event-log.ts'
import { StorageBudget } from '#store/quota-account.ts'
import {
  isStoreError,
  StoreError,
  type ListResult,
  type ListScope,
  type ObjectKey,
  type Store,
  type StoredObject,
  type StoreEvent,
  type Updating,
  type Waiting,
} from '#store/store.ts'
import { isSavedDeletions, saveDeletions } from './deletion-log.ts'
import { type RecordWrite, RecordWriter, retryAfter, WaitingWrites } from './record-writer.ts'
import { defaultNamespacePrefix, isSealedResource, RecordCodec } from './record-codec.ts'
import { RecordStream } from './record-stream.ts'
import { Renewals, type Kept } from './renewals.ts'
import { isRevisionRecord, takeRevision } from './revision-record.ts'
import { Seal } from '#store/seal.ts'

export interface HostStoreOptions {
  /** A client with admin rights for Records and the bucket namespaces in the host. */
  readonly client: KubeClient
  /** 32 bytes, kept by the installation. */
  readonly sealKey: Uint8Array
  /** Former and future keys. They open Records but never seal any. */
  readonly otherSealKeys?: readonly Uint8Array[]
  /** Resources whose payloads host users must not read. Default: only `secrets`. */
  readonly sealResource?: (resource: string) => boolean
  /** 256 namespaces `PREFIX00` to `PREFIXff`, each created on first use. Default `kcp-records-`. */
  readonly namespacePrefix?: string
  /** The host's deadline for one write; keep it below the remaining lease of an owner. Default 10 s. */
  readonly writeTimeoutMs?: number
  /**
   * Milliseconds for which this process may still write to a bucket; 0 if it may not. The host aborts a write that
   * takes longer. Default: no limit.
   */
  readonly mayWriteForMs?: (bucket: number) => number
  /** Resources whose renewals need not all be written to the host. Default: Leases and Events. */
  readonly mayLoseRenewals?: (resource: string) => boolean
  /** How long renewals of an object may be kept in memory alone. Default 30 s. */
  readonly keepRenewalsMs?: number
  /**
   * Maximum size of all logical clusters together, in bytes. Each object counts half a KiB more than its value.
   * Default: no limit.
   */
  readonly maxBytes?: number
  /** Called when a watch breaks or a Record is unreadable; the store continues. */
  readonly onProblem?: (message: string, error: unknown) => void
  /**
   * Throws for a value that this program cannot have written: the Record was edited by hand and is skipped. Default:
   * accepts all.
   */
  readonly requireValue?: (value: Uint8Array) => void
  /**
   * If the host's watch reports nothing for this long after it acknowledged a write, the watch reconnects. Default 5 s.
   */
  readonly maxSilenceMs?: number
}

/** Records deleted in one request when a logical cluster is deleted. */
const deleteBatch = 200
/** Timeout of a request that deletes Records: the host deletes them one after the other. */
const deleteBatchTimeoutMs = 60_000
/** Minimum time for a write, in milliseconds: with less time left, a write is not begun. */
const minWriteMs = 500
/** Maximum size of a tombstone, in bytes. A tombstone stands for a deletion, so it is not charged as a new object. */
const noValueBytes = 4
/**
 * Milliseconds between two saves of deletions while Records change. The host itself still reports the deletions of the
 * last 75 s.
 */
const saveEveryMs = 30_000
/**
 * Milliseconds between two attempts until the first save has succeeded. If a process ends before its first save, the
 * next one may not know its deletions.
 */
const firstSaveEveryMs = 1000
const saveTimeoutMs = 5000
/** Milliseconds between two searches for renewals that no client repeated. */
const sweepMs = 5000
/** Number of renewals that are written to the host at the same time. */
const savers = 16
/** The stored resource of Events, of both API groups. */
const eventsResource = 'events'
/**
 * Milliseconds that a repeated Event may wait for its revision. Clients wait for the response to each Event before they
 * report the next.
 */
const eventGapMs = 50
const leaseGapMs = 250
/** Milliseconds for which a read is retried while the host responds with 429. */
const busyMs = 10_000

/** A Store that several processes share. */
export interface SharedStore extends Store {
  /**
   * Writes the renewals of these logical clusters that are only in memory to the host. Stops when the signal aborts.
   */
  saveRenewals(of: (cluster: ClusterId) => boolean, options: Waiting): Promise<void>
  /** Forgets the renewals of these logical clusters: another process may have changed their objects. */
  forgetRenewals(of: (cluster: ClusterId) => boolean): void
}

/** Lists the Records and follows them. Rejects StoreError Unavailable if the host has no Records. */
export async function openHostStore(options: HostStoreOptions & Waiting): Promise<SharedStore> {
  const {
    client,
    sealKey,
    otherSealKeys = [],
    sealResource = isSealedResource,
    namespacePrefix = defaultNamespacePrefix,
    requireValue = () => undefined,
    onProblem = () => undefined,
  } = options
  const life = new AbortController()
  const seal = new Seal(sealKey, { otherKeys: otherSealKeys })
  const codec = new RecordCodec({ namespacePrefix, sealResource, seal, requireValue })
  const log = new EventLog()
  const { writeTimeoutMs = 10_000, mayWriteForMs = () => Infinity } = options
  /** How long a write to this bucket's namespace may take, in milliseconds. Throws Unavailable if it may not begin. */
  const timeoutOf = (namespace: string, wantedMs = writeTimeoutMs): number => {
    const leftMs = mayWriteForMs(codec.numberOf(namespace))
    if (leftMs < minWriteMs)
      throw new StoreError('Unavailable', 'this process may not write to the logical cluster now')
    return Math.floor(Math.min(wantedMs, leftMs))
  }
  const writer = new RecordWriter({ client, signal: life.signal, timeoutOf })
  const { maxSilenceMs, keepRenewalsMs, mayLoseRenewals = isRenewed } = options
  const renewals: Renewals = new Renewals({
    takeRevision: async (cluster, text) => {
      const namespace = codec.bucketOf(cluster)
      const limit = AbortSignal.any([life.signal, AbortSignal.timeout(timeoutOf(namespace))])
      const revision = await takeRevision(client, { namespace, text }, limit)
      stream.expect(() => stream.isAt(revision))
    },
    known: (cluster, record) => stream.index.get(cluster, record),
    mayWrite: (cluster) => mayWriteForMs(codec.numberOf(codec.bucketOf(cluster))) > 0,
    ...(keepRenewalsMs !== undefined && { keepMs: keepRenewalsMs }),
    gapMsOf: (resource) => (resource === eventsResource ? eventGapMs : leaseGapMs),
  })
  const stream: RecordStream = new RecordStream({
    renewals,
    client,
    codec,
    log,
    onProblem,
    signal: life.signal,
    ...(maxSilenceMs !== undefined && { maxSilenceMs }),
  })
  try {
    // The first bucket exists as long as the data does: its uid identifies the installation.
    const first = await abortable(writer.ensureNamespace(codec.bucket(0)), options.signal)
    await stream.start(options.signal)
    const instanceId = first.metadata.uid ?? ''
    const budget = new StorageBudget(options.maxBytes ?? Infinity, 'all logical clusters')
    const parts = { client, codec, log, writer, stream, renewals, mayLoseRenewals, life, timeoutOf, instanceId, budget }
    return new HostStore({ ...parts, onProblem })
  } catch (error) {
    life.abort(error)
    throw toStoreError(error)
  }
}

interface Dependencies {
  readonly client: KubeClient
  readonly codec: RecordCodec
  readonly log: EventLog
  readonly writer: RecordWriter
  readonly stream: RecordStream
  readonly renewals: Renewals
  readonly mayLoseRenewals: (resource: string) => boolean
  readonly life: AbortController
  readonly timeoutOf: (namespace: string, wantedMs?: number) => number
  readonly instanceId: string
  readonly budget: StorageBudget
  readonly onProblem: (message: string, error: unknown) => void
}

class HostStore implements SharedStore {
  /** Size limit before encoding. `create` and `update` check the size of the encoded Record. */
  readonly maxValueBytes = 1_400_000
  readonly instanceId: string
  readonly #dependencies: Dependencies
  readonly #running: Promise<void>
  #saving: NodeJS.Timeout | undefined
  readonly #sweeping: NodeJS.Timeout
  readonly #waiting = new WaitingWrites()

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
    this.instanceId = dependencies.instanceId
    this.#running = dependencies.stream.run(dependencies.life.signal)
    this.#saveSoon(firstSaveEveryMs)
    const sweep = (): void => void this.#save(dependencies.renewals.unsaved(), dependencies.life.signal)
    this.#sweeping = setInterval(sweep, sweepMs).unref()
  }

  mayLoseRenewals(resource: string): boolean {
    return this.#dependencies.mayLoseRenewals(resource)
  }

  async get(key: ObjectKey, { signal }: Waiting): Promise<StoredObject | undefined> {
    const { client, codec, writer, renewals } = this.#dependencies
    const name = codec.nameOf(key)
    await abortable(writer.settled(name), signal)
    const place = { namespace: codec.bucketOf(key.cluster), name }
    const record = await this.#retryWhenBusy(() => client.tryGet<StorageRecord>(recordsGvr, place, { signal }), signal)
    return record && renewals.newest(name, codec.decode(record))
  }

  async list(scope: ListScope, options: Waiting & { limit?: number; after?: ObjectKey }): Promise<ListResult> {
    const { signal, limit, after } = options
    const { client, codec, writer, stream, renewals } = this.#dependencies
    await abortable(writer.settled(), signal)
    const selectors: string[] = []
    if (scope.cluster !== undefined) selectors.push(codec.clusterSelector(scope.cluster))
    if (scope.resource !== undefined) selectors.push(codec.resourceSelector(scope.resource))
    const selected = {
      signal,
      ...(scope.cluster !== undefined && { namespace: codec.bucketOf(scope.cluster) }),
      ...(selectors.length > 0 && { labelSelector: selectors.join(',') }),
    }
    const list = await this.#retryWhenBusy(() => client.list<StorageRecord>(recordsGvr, selected), signal)
    // The list may be newer than a revision that was taken for renewals and is not reported yet.
    await abortable(renewals.reported(), signal)
    // The host sorts by the hashed Record name, so key order and paging are done here.
    const items = list.items
      .filter((record) => codec.isBucket(record.metadata.namespace) && isIn(scope, record) && !isOwn(record))
      .flatMap((record) => {
        const object = stream.decoded(record)
        return object === undefined ? [] : [renewals.newest(record.metadata.name, object)]
      })
      .filter(({ key, value }) => (!after || compareKeys(key, after) > 0) && hasOneOf(value, scope.containing))
      .sort((a, b) => compareKeys(a.key, b.key))
    const revision = Number(list.metadata.resourceVersion) as Revision
    if (limit === undefined || items.length <= limit) return { items, revision }
    items.length = limit
    const last = items.at(-1)
    return { items, revision, ...(last && { next: last.key }) }
  }

  async create(key: ObjectKey, value: Uint8Array, { signal }: Waiting): Promise<StoredObject> {
    signal.throwIfAborted()
    const { codec, stream, budget } = this.#dependencies
    const write = { do: 'create', record: codec.encode(key, value) } as const
    const growth = { bytes: value.length, creates: value.length > noValueBytes }
    const revision = await budget.admit(stream.index, growth, () => this.#put(write, { key, value, signal }))
    return { key, value, revision, createRevision: revision }
  }

  async update(key: ObjectKey, value: Uint8Array, options: Updating): Promise<StoredObject> {
    const { signal, ifRevision, renewal = false } = options
    signal.throwIfAborted()
    const { codec, renewals } = this.#dependencies
    if (!this.mayLoseRenewals(key.resource)) return this.#replace(key, value, options)
    const record = codec.nameOf(key)
    const asked = { key, record, value, ifRevision }
    if (renewal && renewals.takes(asked)) return await abortable(renewals.keep(asked), signal)
    return await renewals.around(record, ifRevision, (base) => this.#replace(key, value, { signal, ifRevision: base }))
  }

  async #replace(key: ObjectKey, value: Uint8Array, { signal, ifRevision }: Updating): Promise<StoredObject> {
    const { codec, stream, budget } = this.#dependencies
    // An object that is not in the index was created a moment ago and is still at the revision that the writer saw.
    const known = stream.index.get(key.cluster, codec.nameOf(key))
    const createRevision = known?.createRevision ?? ifRevision
    const write = { do: 'update', record: codec.encode(key, value, { revision: ifRevision, createRevision }) } as const
    const growth = { bytes: value.length - (known?.bytes ?? 0), creates: false }
    const revision = await budget.admit(stream.index, growth, () => this.#put(write, { key, value, signal }))
    return { key, value, revision, createRevision }
  }

  async delete(key: ObjectKey, options: Waiting & { ifRevision: Revision }): Promise<Revision> {
    const { signal, ifRevision } = options
    signal.throwIfAborted()
    if (!this.mayLoseRenewals(key.resource)) return this.#delete(key, options)
    const { codec, renewals } = this.#dependencies
    return await renewals.around(codec.nameOf(key), ifRevision, (base) =>
      this.#delete(key, { signal, ifRevision: base }),
    )
  }

  async #delete(key: ObjectKey, { signal, ifRevision }: Waiting & { ifRevision: Revision }): Promise<Revision> {
    const { codec, stream, life } = this.#dependencies
    const name = codec.nameOf(key)
    const deletion = stream.nextDeletion(name, ifRevision)
    try {
      const write = { do: 'delete', namespace: codec.bucketOf(key.cluster), name, ifRevision } as const
      await this.#write(key.cluster, write, signal).catch(async (error: unknown) => {
        // Another deletion came first. A caller that gets KeyMissing must not find the object afterwards.
        const isShown = stream.index.get(key.cluster, name)?.revision === ifRevision
        if (isStoreError(error, 'KeyMissing') && isShown) {
          deletion.expect()
          await abortable(deletion.revision, AbortSignal.any([signal, life.signal]))
        }
        throw error
      })
      deletion.expect()
      // The host's response does not contain the revision of the deletion; our watch reports it.
      return await abortable(deletion.revision, AbortSignal.any([signal, life.signal]))
    } finally {
      deletion.leave()
    }
  }

  async saveRenewals(of: (cluster: ClusterId) => boolean, { signal }: Waiting): Promise<void> {
    await this.#save(this.#dependencies.renewals.unsaved(of), signal)
  }

  forgetRenewals(of: (cluster: ClusterId) => boolean): void {
    this.#dependencies.renewals.forget(of)
  }

  /** Writes these renewals to the host. Ignores errors: the client renews again soon, and a renewal may be lost. */
  async #save(unsaved: Generator<Kept>, signal: AbortSignal): Promise<void> {
    const save = async (): Promise<void> => {
      for (const { key, value, revision: ifRevision } of unsaved) {
        if (signal.aborted) return
        await this.update(key, value, { signal, ifRevision }).catch(() => undefined)
      }
    }
    await Promise.all(Array.from({ length: savers }, save))
  }

  async deleteCluster(cluster: ClusterId, { signal }: Waiting): Promise<void> {
    const { client, codec, writer, stream, timeoutOf } = this.#dependencies
    await abortable(writer.settled(), signal)
    const namespace = codec.bucketOf(cluster)
    const labelSelector = codec.clusterSelector(cluster)
    for (;;) {
      const one = { namespace, labelSelector, limit: 1, metadataOnly: true, signal }
      const left = await this.#retryWhenBusy(() => client.list(recordsGvr, one), signal)
      if (left.items.length === 0) break
      const timeout = `${timeoutOf(namespace, deleteBatchTimeoutMs)}ms`
      const query = new URLSearchParams({ labelSelector, limit: String(deleteBatch), timeout })
      const path = `/apis/${recordsGvr.group}/${recordsGvr.version}/namespaces/${namespace}/${recordsGvr.resource}`
      await this.#retryWhenBusy(() => client.raw(`${path}?${query.toString()}`, { method: 'DELETE', signal }), signal)
    }
    const isGone = (): boolean => !stream.index.has(cluster)
    stream.expect(isGone)
    await stream.until(isGone, signal)
  }

  async *watch({ since, signal }: Waiting & { since: Revision }): AsyncIterable<readonly StoreEvent[]> {
    const { log } = this.#dependencies
    if (signal.aborted) return
    if (!log.knows(since)) throw new StoreError('Compacted', `changes after revision ${since} are no longer known`)
    const live = log.watch(since, signal)
    try {
      yield* live
    } finally {
      live.end()
    }
  }

  async changes(
    { cluster, resource }: { cluster?: ClusterId; resource: string },
    { signal, since }: Waiting & { since: Revision },
  ): Promise<readonly StoreEvent[]> {
    // Without a cluster, this method would list all Records. Its callers then list the objects that they need.
    if (cluster === undefined) throw new StoreError('Compacted', `changes after revision ${since} are no longer known`)
    const scope = { cluster, resource }
    const { stream } = this.#dependencies
    await stream.remembered(signal)
    const list = await this.list(scope, { signal })
    // The watch may lag a little behind the list; the reader's own watch will deliver the missing events.
    const deletions = stream.deletions.after(scope, since)
    if (!deletions) throw new StoreError('Compacted', `changes after revision ${since} are no longer known`)
    const present = new Map(list.items.map((object) => [nameTextOf(object.key), object]))
    // If the list has the object unchanged, the list is older than the deletion: the reader's own watch reports the
    // deletion.
    const gone = deletions.filter(({ key }) => (present.get(nameTextOf(key))?.revision ?? Infinity) > since)
    const put = list.items.filter(({ revision }) => revision > since)
    return lastStates([...gone, ...put.map((object) => ({ type: 'put', object }) as const)], since)
  }

  async revision({ signal }: Waiting): Promise<Revision> {
    signal.throwIfAborted()
    return this.#dependencies.log.revision
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#saving)
    clearInterval(this.#sweeping)
    const closed = new StoreError('Closed', 'the store is closed')
    if (!this.#dependencies.life.signal.aborted) await this.#saveDeletions()
    this.#dependencies.life.abort(closed)
    this.#dependencies.renewals[Symbol.dispose]()
    this.#dependencies.log.fail(closed)
    await this.#running
  }

  #saveSoon(ms: number): void {
    const { life, stream } = this.#dependencies
    const save = async (): Promise<void> => {
      if (life.signal.aborted) return
      await this.#saveDeletions()
      this.#saveSoon(stream.hasSaved ? saveEveryMs : firstSaveEveryMs)
    }
    this.#saving = setTimeout(() => void save(), ms).unref()
  }

  /** Saves the summary of deletions, if this replica may write to the first bucket. */
  async #saveDeletions(): Promise<void> {
    const { client, codec, stream, life, timeoutOf, onProblem } = this.#dependencies
    const namespace = codec.bucket(0)
    if (!stream.hasUnsaved) return
    try {
      const timeoutMs = timeoutOf(namespace, saveTimeoutMs)
      await stream.remembered(life.signal)
      const summary = stream.deletions.summary(stream.revision)
      await saveDeletions(summary, { client, namespace }, { timeoutMs, signal: life.signal })
      stream.saved(summary.revision)
    } catch (error) {
      if (!isStoreError(error)) onProblem('deletions are not saved: watches from before a restart begin again', error)
    }
  }

  async #put(
    write: Exclude<RecordWrite, { do: 'delete' }>,
    { key, value, signal }: { key: ObjectKey; value: Uint8Array; signal: AbortSignal },
  ): Promise<Revision> {
    const { stream } = this.#dependencies
    stream.ownWrites.add(write.record, key, value)
    try {
      const revision = await this.#write(key.cluster, write, signal)
      stream.expect(() => stream.isAt(revision))
      return revision
    } catch (error) {
      stream.ownWrites.forget(write.record)
      throw error
    }
  }

  async #write(cluster: ClusterId, write: RecordWrite, signal: AbortSignal): Promise<Revision> {
    const { life, writer } = this.#dependencies
    if (life.signal.aborted) throw new StoreError('Closed', 'the store is closed')
    // The write continues when its caller has gone.
    return await abortable(
      this.#waiting.admit(cluster, () => writer.write(write)),
      signal,
    )
  }

  async #retryWhenBusy<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
    try {
      return await retryAfter(ask, { withinMs: busyMs, signal })
    } catch (error) {
      throw toStoreError(error)
    }
  }
}

function toStoreError(error: unknown): unknown {
  if (!isStatusError(error)) return error
  const message = error.code === 404 ? `the host has no Records: ${error.message}` : `the host: ${error.message}`
  return new StoreError('Unavailable', message, { cause: error })
}

/** Whether this Record holds data of the store itself instead of an object. */
function isOwn(record: StorageRecord): boolean {
  return isSavedDeletions(record) || isRevisionRecord(record)
}

function isRenewed(resource: string): boolean {
  return resource === 'leases.coordination.k8s.io' || resource === eventsResource
}

function isIn(scope: ListScope, record: StorageRecord): boolean {
  if (scope.cluster !== undefined && record.cluster !== scope.cluster) return false
  if (scope.resource !== undefined && record.resource !== scope.resource) return false
  return scope.namespace === undefined || (record.namespace ?? '') === scope.namespace
}

function hasOneOf(value: Uint8Array, texts: readonly string[] | undefined): boolean {
  if (texts === undefined) return true
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  return texts.some((text) => bytes.includes(text))
}

function compareKeys(a: ObjectKey, b: ObjectKey): number {
  for (const part of ['cluster', 'resource', 'namespace', 'name'] as const) {
    if (a[part] !== b[part]) return a[part] < b[part] ? -1 : 1
  }
  return 0
}

function nameTextOf({ namespace, name }: ObjectKey): string {
  return `${namespace}/${name}`
}
