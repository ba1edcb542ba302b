// Writes to the host. If the outcome of a write is unknown, the writer reads the Record until it is known, before the
// key is used again.
import { type ClusterId, type KubeObject, resourcePath, type Revision } from '#apimachinery/meta/index.ts'
import { isStatusError, type StatusError } from '#apimachinery/status/index.ts'
import { childSignal, sleep } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import { records as recordsGvr, type StorageRecord } from '#crds/index.ts'
import { StoreError } from '#store/store.ts'

/** Accept header that asks for metadata only, so that the host does not send the payload back. */
const metadataOnly = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json'
/** Time beyond the host's own deadline after which a write has certainly ended, clock skew and network included. */
const settleMarginMs = 1000
const lookAgainMs = 250
/** Timeout of a lookup. A longer lookup means a dead connection or a dead server. */
const lookTimeoutMs = 45_000

export type RecordWrite =
  | { readonly do: 'create'; readonly record: StorageRecord }
  | { readonly do: 'update'; readonly record: StorageRecord }
  | { readonly do: 'delete'; readonly namespace: string; readonly name: string; readonly ifRevision: Revision }

interface RecordWriterOptions {
  readonly client: KubeClient
  /** Aborts when the store is closed. A write continues when its caller has gone. */
  readonly signal: AbortSignal
  /**
   * The host's own deadline for a write to this namespace that begins now, whole milliseconds. Throws if it may not
   * begin.
   */
  readonly timeoutOf: (namespace: string) => number
}

interface Place {
  readonly namespace: string
  readonly name: string
}

export class RecordWriter {
  readonly #options: RecordWriterOptions
  /** Writes of unknown outcome by Record name. */
  readonly #unsettled = new Map<string, Promise<unknown>>()

  constructor(options: RecordWriterOptions) {
    this.#options = options
  }

  /** Resolves when no write to this Record has an unknown outcome; without a name, when this is true of all Records. */
  async settled(name?: string): Promise<void> {
    if (this.#unsettled.size === 0) return
    const pending: Promise<unknown>[] = []
    for (const [record, settling] of this.#unsettled) if (name === undefined || name === record) pending.push(settling)
    await Promise.allSettled(pending)
  }

  /**
   * Resolves with the revision of the write; with 0 for a deletion, because the host does not report it. Rejects
   * StoreError.
   */
  async write(write: RecordWrite): Promise<Revision> {
    const place = placeOf(write)
    await this.settled(place.name)
    const deadlineMs = this.#options.timeoutOf(place.namespace)
    try {
      return await this.#sendWithNamespace(write, place)
    } catch (error) {
      if (!isUnknown(error)) throw this.#storeErrorOf(error, write)
      const settling = this.#settle(write, place, { cause: error, deadlineMs })
      this.#unsettled.set(place.name, settling)
      try {
        return await settling
      } finally {
        if (this.#unsettled.get(place.name) === settling) this.#unsettled.delete(place.name)
      }
    }
  }

  /** Creates the bucket's namespace if it is missing. */
  async ensureNamespace(namespace: string): Promise<KubeObject> {
    const { client, signal } = this.#options
    const gvr = { group: '', version: 'v1', resource: 'namespaces' }
    const known = await client.tryGet(gvr, { name: namespace }, { signal })
    if (known) return known
    const labels = { 'app.kubernetes.io/managed-by': 'kcp', 'app.kubernetes.io/component': 'records' }
    const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } }
    try {
      return await client.create(gvr, object, { signal })
    } catch (error) {
      if (!isStatusError(error, 'AlreadyExists')) throw error
      return await client.get(gvr, { name: namespace }, { signal })
    }
  }

  async #sendWithNamespace(write: RecordWrite, place: Place): Promise<Revision> {
    try {
      return await this.#sendWithRetry(write, place)
    } catch (error) {
      if (write.do !== 'create' || !isStatusError(error, 'NotFound')) throw error
      await this.ensureNamespace(place.namespace)
      return await this.#sendWithRetry(write, place)
    }
  }

  async #sendWithRetry(write: RecordWrite, place: Place): Promise<Revision> {
    const { signal, timeoutOf } = this.#options
    return await retryAfter(() => this.#send(write, place), { withinMs: timeoutOf(place.namespace), signal })
  }

  async #send(write: RecordWrite, place: Place): Promise<Revision> {
    const { client, timeoutOf } = this.#options
    const timeoutMs = timeoutOf(place.namespace)
    // `fieldValidation=Ignore` saves the host a second pass over the payload to find unknown fields.
    const query = `timeout=${timeoutMs}ms&fieldManager=kcp&fieldValidation=Ignore`
    const path = resourcePath(recordsGvr, write.do === 'create' ? { namespace: place.namespace } : place)
    // This deadline is later than the host's, so that normally the host reports the timeout.
    using deadline = childSignal(this.#options.signal)
    const timer = setTimeout(() => deadline.abort(new Error('no answer in time')), timeoutMs + settleMarginMs)
    try {
      const method = ({ create: 'POST', update: 'PUT', delete: 'DELETE' } as const)[write.do]
      const body = write.do === 'delete' ? deleteOptions(write.ifRevision) : write.record
      const options = { method, body, accept: metadataOnly, signal: deadline.signal }
      const answer = await client.raw(`${path}?${query}`, options)
      return write.do === 'delete' ? (0 as Revision) : revisionOf(answer as KubeObject)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Reads the Record until the outcome of the write is known. */
  async #settle(
    write: RecordWrite,
    place: Place,
    { cause, deadlineMs }: { cause: unknown; deadlineMs: number },
  ): Promise<Revision> {
    const { client, signal } = this.#options
    const failedAt = performance.now()
    for (;;) {
      // The host began the write before it failed here, and ends it within its own deadline.
      const decided = performance.now() - failedAt > deadlineMs + settleMarginMs
      try {
        const looking = AbortSignal.any([signal, AbortSignal.timeout(lookTimeoutMs)])
        const found = await client.tryGet<StorageRecord>(recordsGvr, place, { signal: looking })
        const outcome = outcomeOf(write, found, decided)
        if (outcome === 'refused') throw this.#storeErrorOf(conflictOf(write, found), write)
        if (outcome === 'not done')
          throw new StoreError('Unavailable', 'the host did not do a write in time', { cause })
        if (outcome !== 'unknown') return outcome
      } catch (error) {
        if (error instanceof StoreError) throw error
        signal.throwIfAborted()
        // The host is not reachable: the key stays blocked until the Record can be read.
      }
      await sleep(lookAgainMs, signal)
    }
  }

  #storeErrorOf(error: unknown, write: RecordWrite): unknown {
    if (error instanceof StoreError) return error
    if (!isStatusError(error)) return new StoreError('Unavailable', 'the host cannot be reached', { cause: error })
    const what = write.do === 'delete' ? write.name : `"${write.record.resource}/${write.record.name}"`
    const say = (code: StoreError['code'], text: string): StoreError => new StoreError(code, text, { cause: error })
    if (error.reason === 'AlreadyExists') return say('KeyExists', `${what} exists already`)
    if (error.reason === 'Conflict') return say('RevisionMismatch', `${what} is at another revision`)
    if (error.reason === 'NotFound') {
      return write.do === 'create'
        ? say('Unavailable', `the host cannot keep Records: ${error.message}`)
        : say('KeyMissing', `${what} does not exist`)
    }
    if (isTooLarge(error)) return say('TooLarge', `${what} is too large for the host: ${error.message}`)
    if (isFull(error)) return say('Full', `the host takes no more objects: ${error.message}`)
    return say('Unavailable', `the host refused a write: ${error.message}`)
  }
}

/**
 * The outcome of a write as the Record shows it: its revision (0 for a deletion), `refused` if another write came
 * first, `not done` if the host can no longer do it, else `unknown`.
 */
function outcomeOf(
  write: RecordWrite,
  found: StorageRecord | undefined,
  decided: boolean,
): Revision | 'refused' | 'not done' | 'unknown' {
  const waiting = decided ? 'not done' : 'unknown'
  if (write.do === 'delete') {
    if (!found) return 0 as Revision
    return revisionOf(found) === write.ifRevision ? waiting : 'refused'
  }
  if (!found) return write.do === 'create' ? waiting : 'refused'
  // A sealed payload differs each time, and a plain one contains the uid and the change: equal data means that our
  // write succeeded.
  if (found.data === write.record.data) return revisionOf(found)
  if (write.do === 'create') return 'refused'
  return found.metadata.resourceVersion === write.record.metadata.resourceVersion ? waiting : 'refused'
}

function conflictOf(write: RecordWrite, found: StorageRecord | undefined): StoreError {
  if (write.do === 'create') return new StoreError('KeyExists', `"${write.record.name}" exists already`)
  if (!found) return new StoreError('KeyMissing', 'the object does not exist any more')
  return new StoreError('RevisionMismatch', 'the object is at another revision')
}

function placeOf(write: RecordWrite): Place {
  if (write.do === 'delete') return { namespace: write.namespace, name: write.name }
  const { namespace, name } = write.record.metadata
  return { namespace, name }
}

function deleteOptions(ifRevision: Revision): object {
  return { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { resourceVersion: String(ifRevision) } }
}

function revisionOf(object: KubeObject): Revision {
  return Number(object.metadata.resourceVersion) as Revision
}

/** Whether the outcome is unknown: there is no response, or it does not say whether etcd has the write. */
function isUnknown(error: unknown): boolean {
  if (error instanceof StoreError) return false
  if (!isStatusError(error)) return true
  return error.code >= 500 && !isTooLarge(error) && !isFull(error)
}

// The API server reports these errors as InternalError with etcd's message.
function isTooLarge(error: StatusError): boolean {
  return error.code === 413 || /request is too large|Request entity too large|larger than max/i.test(error.message)
}

function isFull(error: StatusError): boolean {
  return /database space exceeded/.test(error.message) || (error.code === 403 && /exceeded quota/.test(error.message))
}

/**
 * Retries after the time that the host's 429 response names: a request with this response had no effect. Rejects with
 * this response if the wait would exceed `withinMs`.
 */
export async function retryAfter<T>(
  ask: () => Promise<T>,
  { withinMs, signal }: { readonly withinMs: number; readonly signal: AbortSignal },
): Promise<T> {
  const began = performance.now()
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!isStatusError(error, 'TooManyRequests')) throw error
      const waitMs = 1000 * Math.max(1, error.status.details?.retryAfterSeconds ?? 1)
      if (performance.now() - began + waitMs > withinMs) throw error
      await sleep(waitMs, signal)
    }
  }
}

/** The host counts as slow when a write has waited for this many milliseconds. */
const slowMs = 1000
/**
 * Maximum number of writes that wait for a slow host, of one logical cluster and of all: a quarter of the requests that
 * fairness admits.
 */
const maxOfCluster = 50
const maxOfAll = 500

/**
 * Refuses writes while the host is slow and many writes wait for it. Each waiting write takes one of its logical
 * cluster's slots for concurrent requests: without a limit, reads would be refused too, although they do not need the
 * host.
 */
export class WaitingWrites {
  readonly #now: () => number
  /** Start times of the running writes, oldest first. */
  readonly #began = new Set<{ readonly at: number }>()
  readonly #byCluster = new Map<ClusterId, number>()

  /** `now` is a monotonic clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Runs a write. Throws StoreError Busy if it would wait with too many others. */
  async admit<T>(cluster: ClusterId, write: () => Promise<T>): Promise<T> {
    const at = this.#now()
    const waiting = this.#byCluster.get(cluster) ?? 0
    const [oldest] = this.#began
    const isSlow = oldest !== undefined && at - oldest.at >= slowMs
    if (isSlow && (waiting >= maxOfCluster || this.#began.size >= maxOfAll))
      throw new StoreError('Busy', `the host is slow, and ${this.#began.size} writes wait for it`)
    const began = { at }
    this.#began.add(began)
    this.#byCluster.set(cluster, waiting + 1)
    try {
      return await write()
    } finally {
      this.#began.delete(began)
      const left = (this.#byCluster.get(cluster) ?? 1) - 1
      if (left === 0) this.#byCluster.delete(cluster)
      else this.#byCluster.set(cluster, left)
    }
  }
}
