// Keeps objects of logical clusters as Records in the host's etcd. The host's resourceVersion is the revision, and the
// host does the compare-and-swap.
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
  /** A client with admin rights for Records and the bucket namespaces in the host. */
  readonly client: KubeClient
  /** 32 bytes, kept by the installation. */
  readonly sealKey: Uint8Array
  /** Resources whose payloads host users must not read. Default: only `secrets`. */
  readonly sealResource?: (resource: string) => boolean
  /** 256 namespaces `PREFIX00` to `PREFIXff`, each created on first use. Default `kcp-records-`. */
  readonly namespacePrefix?: string
  /** The host's deadline for one write; keep it below the remaining lease of an owner. Default 10 s. */
  readonly writeTimeoutMs?: number
  /** Called for broken watches and unreadable Records; the store goes on. */
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
/** Timeout of such a request; the host deletes one Record after the other. */
const deleteBatchTimeoutMs = 60_000
/** How long a read is retried while the host answers 429. */
const busyMs = 10_000

/** Lists the Records and follows them. Rejects StoreError Unavailable if the host has no Records. */
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
    // The first bucket exists as long as the data does: its uid identifies the installation.
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
  /** Before encoding. The size of the encoded Record decides; `create` and `update` check it. */
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
    const record = await this.#retryWhenBusy(() => client.tryGet<StorageRecord>(recordsGvr, place, { signal }), signal)
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
    const list = await this.#retryWhenBusy(() => client.list<StorageRecord>(recordsGvr, selected), signal)
    // The host sorts by the hashed Record name, so key order and paging are done here.
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
    // Not in the index yet: it was created a moment ago, and is still at the revision that the writer saw.
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
      // The host's response has no revision of the deletion; our own watch has.
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
      const left = await this.#retryWhenBusy(() => client.list(recordsGvr, one), signal)
      if (left.items.length === 0) break
      const path = `/apis/${recordsGvr.group}/${recordsGvr.version}/namespaces/${namespace}/${recordsGvr.resource}`
      await this.#retryWhenBusy(() => client.raw(`${path}?${query.toString()}`, { method: 'DELETE', signal }), signal)
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
    // This would list all Records; a reader of all logical clusters lists what it needs itself.
    if (cluster === undefined) throw new StoreError('Compacted', `changes after revision ${since} are no longer known`)
    const scope = { cluster, resource }
    const { stream } = this.#parts
    const list = await this.list(scope, { signal })
    // The watch may lag a little behind the list; the reader's own watch will deliver what it has not seen yet.
    const deletions = stream.deletions.after(scope, since)
    if (!deletions) throw new StoreError('Compacted', `changes after revision ${since} are no longer known`)
    const present = new Map(list.items.map((object) => [nameTextOf(object.key), object]))
    // An object that is present and unchanged was never deleted: the list came before the deletion.
    const gone = deletions.filter(({ key }) => (present.get(nameTextOf(key))?.revision ?? Infinity) > since)
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
