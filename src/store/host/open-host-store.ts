// Objects of logical clusters as Records in the host's etcd. The host's resourceVersion is the revision; compare-and-swap
// is the host's own.
import { abortable } from '../../async/index.ts'
import type { ClusterId, Revision } from '../../apimachinery/meta/index.ts'
import { isStatusError } from '../../apimachinery/status/index.ts'
import type { KubeClient } from '../../client/index.ts'
import { records as recordsGvr, type StorageRecord } from '../../crds/index.ts'
import { EventLog } from '../event-log.ts'
import { lastStates } from '../last-states.ts'
import {
  StoreError,
  type ListResult,
  type ListScope,
  type ObjectKey,
  type Store,
  type StoredObject,
  type StoreEvent,
  type Waiting,
} from '../store.ts'
import { retryAfter } from './retry-after.ts'
import { RecordCodec } from './record-codec.ts'
import { RecordStream } from './record-stream.ts'
import { RecordWriter, type RecordWrite } from './record-writer.ts'
import { Seal } from '../seal.ts'

export interface HostStoreOptions {
  /** Admin of Records and of the bucket namespaces in the host. */
  readonly client: KubeClient
  /** 32 bytes, kept by the installation. */
  readonly sealKey: Uint8Array
  /** Resources whose payloads host users must not read; `true` for `secrets` by default. */
  readonly sealResource?: (resource: string) => boolean
  /** 256 namespaces `PREFIX00` to `PREFIXff`, each made when first needed. Default `kcp-records-`. */
  readonly namespacePrefix?: string
  /** The host's deadline for one write; keep it below the remaining lease of an owner. Default 10 s. */
  readonly writeTimeoutMs?: number
  /** Told of broken watches and unreadable Records; the store goes on. */
  readonly onProblem?: (message: string, error: unknown) => void
  /** Throws for a value that is not one of ours: its Record was edited by hand, and is left out. Default: any will do. */
  readonly requireValue?: (value: Uint8Array) => void
  /** How long the host may tell nothing of a write that it acknowledged, until it is asked over another connection. Default 5 s. */
  readonly maxSilenceMs?: number
}

/** Records deleted in one request when a logical cluster goes. */
const deleteBatch = 200
/** A request for a batch; the host deletes one Record after the other. */
const deleteBatchTimeoutMs = 60_000
/** A host that says "later" to a read is asked again for so long. */
const busyMs = 10_000

/** Reads which Records there are and follows them. Rejects StoreError Unavailable where the host has no Records. */
export async function openHostStore(options: HostStoreOptions & Waiting): Promise<Store> {
  const {
    client,
    sealKey,
    sealResource = (resource) => resource === 'secrets',
    namespacePrefix = 'kcp-records-',
    requireValue = () => undefined,
    onProblem = () => undefined,
  } = options
  const life = new AbortController()
  const codec = new RecordCodec({ namespacePrefix, sealResource, seal: new Seal(sealKey), requireValue })
  const log = new EventLog()
  const writer = new RecordWriter({ client, signal: life.signal, writeTimeoutMs: options.writeTimeoutMs ?? 10_000 })
  const { maxSilenceMs } = options
  const stream = new RecordStream({
    client,
    codec,
    log,
    onProblem,
    ...(maxSilenceMs !== undefined && { maxSilenceMs }),
  })
  try {
    // The first bucket is there as long as the data is: its uid is the installation's.
    const first = await abortable(writer.ensureNamespace(codec.bucket(0)), options.signal)
    await stream.start(options.signal)
    return new HostStore({ client, codec, log, writer, stream, life, instanceId: first.metadata.uid ?? '' })
  } catch (error) {
    life.abort(error)
    throw toStoreError(error)
  }
}

interface Parts {
  readonly client: KubeClient
  readonly codec: RecordCodec
  readonly log: EventLog
  readonly writer: RecordWriter
  readonly stream: RecordStream
  readonly life: AbortController
  readonly instanceId: string
}

class HostStore implements Store {
  /** Before encoding; what counts is the Record's size, which `create` and `update` check. */
  readonly maxValueBytes = 1_400_000
  readonly instanceId: string
  readonly #parts: Parts
  readonly #running: Promise<void>

  constructor(parts: Parts) {
    this.#parts = parts
    this.instanceId = parts.instanceId
    this.#running = parts.stream.run(parts.life.signal)
  }

  async get(key: ObjectKey, { signal }: Waiting): Promise<StoredObject | undefined> {
    const { client, codec, writer } = this.#parts
    const name = codec.nameOf(key)
    await abortable(writer.settled(name), signal)
    const place = { namespace: codec.bucketOf(key.cluster), name }
    const record = await this.#asked(() => client.tryGet<StorageRecord>(recordsGvr, place, { signal }), signal)
    return record && codec.decode(record)
  }

  async list(scope: ListScope, options: Waiting & { limit?: number; after?: ObjectKey }): Promise<ListResult> {
    const { signal, limit, after } = options
    const { client, codec, writer, stream } = this.#parts
    await abortable(writer.settled(), signal)
    const selectors: string[] = []
    if (scope.cluster !== undefined) selectors.push(codec.clusterSelector(scope.cluster))
    if (scope.resource !== undefined) selectors.push(codec.resourceSelector(scope.resource))
    const selected = {
      signal,
      ...(scope.cluster !== undefined && { namespace: codec.bucketOf(scope.cluster) }),
      ...(selectors.length > 0 && { labelSelector: selectors.join(',') }),
    }
    const list = await this.#asked(() => client.list<StorageRecord>(recordsGvr, selected), signal)
    // The host orders by the hash that names a Record: key order and pages are made here.
    const items = list.items
      .filter((record) => codec.isBucket(record.metadata.namespace) && isIn(scope, record))
      .flatMap((record) => stream.decoded(record) ?? [])
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
    const revision = await this.#write({ do: 'create', record: this.#parts.codec.encode(key, value) }, signal)
    this.#parts.stream.expect(() => this.#parts.stream.isAt(revision))
    return { key, value, revision, createRevision: revision }
  }

  async update(
    key: ObjectKey,
    value: Uint8Array,
    { signal, ifRevision }: Waiting & { ifRevision: Revision },
  ): Promise<StoredObject> {
    signal.throwIfAborted()
    const { codec, stream } = this.#parts
    // Not known yet: it was created a moment ago, and is still at the revision that the writer saw.
    const known = stream.index.get(key.cluster, codec.nameOf(key))
    const createRevision = known?.createRevision ?? ifRevision
    const record = codec.encode(key, value, { revision: ifRevision, createRevision })
    const revision = await this.#write({ do: 'update', record }, signal)
    stream.expect(() => stream.isAt(revision))
    return { key, value, revision, createRevision }
  }

  async delete(key: ObjectKey, { signal, ifRevision }: Waiting & { ifRevision: Revision }): Promise<Revision> {
    signal.throwIfAborted()
    const { codec, stream, life } = this.#parts
    const name = codec.nameOf(key)
    const deletion = stream.nextDeletion(name)
    try {
      await this.#write({ do: 'delete', namespace: codec.bucketOf(key.cluster), name, ifRevision }, signal)
      deletion.expect()
      // The host does not say at which revision it deleted; our own stream does.
      return await abortable(deletion.revision, AbortSignal.any([signal, life.signal]))
    } finally {
      deletion.leave()
    }
  }

  async deleteCluster(cluster: ClusterId, { signal }: Waiting): Promise<void> {
    const { client, codec, writer, stream } = this.#parts
    await abortable(writer.settled(), signal)
    const namespace = codec.bucketOf(cluster)
    const labelSelector = codec.clusterSelector(cluster)
    const query = new URLSearchParams({
      labelSelector,
      limit: String(deleteBatch),
      timeout: `${deleteBatchTimeoutMs / 1000}s`,
    })
    for (;;) {
      const one = { namespace, labelSelector, limit: 1, metadataOnly: true, signal }
      const left = await this.#asked(() => client.list(recordsGvr, one), signal)
      if (left.items.length === 0) break
      const path = `/apis/${recordsGvr.group}/${recordsGvr.version}/namespaces/${namespace}/${recordsGvr.resource}`
      await this.#asked(() => client.raw(`${path}?${query.toString()}`, { method: 'DELETE', signal }), signal)
    }
    const isGone = (): boolean => !stream.index.has(cluster)
    stream.expect(isGone)
    await stream.until(isGone, signal)
  }

  async *watch({ since, signal }: Waiting & { since: Revision }): AsyncIterable<readonly StoreEvent[]> {
    const { log } = this.#parts
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
    // It would be a list of all Records; whoever reads all logical clusters lists what he wants himself.
    if (cluster === undefined) throw new StoreError('Compacted', `changes after revision ${since} are no longer known`)
    const scope = { cluster, resource }
    const { stream } = this.#parts
    const list = await this.list(scope, { signal })
    // The stream may be a moment behind the list; what it has not told yet, a watch will hear from it.
    const deletions = stream.deletions.after(scope, since)
    if (!deletions) throw new StoreError('Compacted', `changes after revision ${since} are no longer known`)
    const there = new Map(list.items.map((object) => [placeOf(object.key), object]))
    // What is there unchanged was never deleted: the list came before the deletion.
    const gone = deletions.filter(({ key }) => (there.get(placeOf(key))?.revision ?? Infinity) > since)
    const put = list.items.filter(({ revision }) => revision > since)
    return lastStates([...gone, ...put.map((object) => ({ type: 'put', object }) as const)], since)
  }

  async revision({ signal }: Waiting): Promise<Revision> {
    signal.throwIfAborted()
    return this.#parts.log.revision
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new StoreError('Closed', 'the store is closed')
    this.#parts.life.abort(closed)
    this.#parts.log.fail(closed)
    await this.#running
  }

  #write(write: RecordWrite, signal: AbortSignal): Promise<Revision> {
    if (this.#parts.life.signal.aborted) throw new StoreError('Closed', 'the store is closed')
    return abortable(this.#parts.writer.write(write), signal)
  }

  async #asked<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
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

function placeOf({ namespace, name }: ObjectKey): string {
  return `${namespace}/${name}`
}
