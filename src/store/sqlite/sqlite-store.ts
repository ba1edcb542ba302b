// The embedded store: SQLite on local disk in a thread of its own. Every acknowledged write is on disk.
import { mkdirSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import {
  StoreError,
  type Creating,
  type ListResult,
  type ListScope,
  type ObjectKey,
  type Store,
  type StoredObject,
  type StoreEvent,
  type Succession,
  type Updating,
  type Waiting,
} from '#store/store.ts'
import { DatabaseThread, type PendingCall } from './database-thread.ts'
import { EventLog, lastStates, revisionOf, watchLog, type Change } from '#store/event-log.ts'
import {
  unpack,
  type DatabaseAnswer,
  type DatabaseCall,
  type PackedDeletion,
  type Slice,
  type Values,
} from './protocol.ts'

export interface SqliteStoreOptions {
  /** The database file; its directory is created if missing. SQLite keeps `-wal` beside it, and we keep `.pid`. */
  readonly file: string
  /** Size limit of one value. Default 3 MiB, the request limit of kube-apiserver. */
  readonly maxValueBytes?: number
  /** Number of deletions kept for watches that resume after a restart. Default 100,000. */
  readonly keptDeletions?: number
  /** Size limit of the database file; writes beyond it reject Full. Default: only the disk. */
  readonly maxFileBytes?: number
  /** False if data existed before: an empty or missing file is then refused instead of created. Default true. */
  readonly mayBeNew?: boolean
  /**
   * The file of the key that Secrets are sealed with. If missing, it is created (mode 0600), unless the database is
   * sealed already. Opening an older database seals the Secrets that it holds in the clear. Default: Secrets are kept
   * in the clear.
   */
  readonly sealKeyFile?: string
  /** False: writes are acknowledged before they are on the disk, and a crash of the machine may lose them. Default true. */
  readonly isDurable?: boolean
  /** For a database that does not exist yet. */
  readonly succession?: Succession
}

/** Objects deleted in one transaction when a logical cluster is deleted. */
const deleteBatch = 500

/**
 * Files open in this process. POSIX drops the database's own lock when the same process opens and closes the file
 * again.
 */
const openFiles = new Set<string>()

/**
 * Opens or creates the database. Rejects StoreError Unavailable with one line for the user when the file is in use by
 * another process, written by a newer program, not ours, or unreadable. Changes nothing in these cases.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { maxValueBytes = 3 * 1024 * 1024, keptDeletions = 100_000, maxFileBytes = 0, mayBeNew = true } = options
  const file = canonical(options.file)
  if (openFiles.has(file)) throw new StoreError('Unavailable', `${file} is in use by process ${process.pid}`)
  openFiles.add(file)
  try {
    const events = new EventLog()
    const { sealKeyFile, isDurable = true, succession } = options
    const settings = {
      file,
      keptDeletions,
      maxFileBytes,
      mayBeNew,
      isDurable,
      ...(sealKeyFile !== undefined && { sealKeyFile }),
      ...(succession !== undefined && { succession }),
    }
    // Watchers of the store must learn that no more events will come: otherwise reads from memory would return old
    // objects.
    const onLost = (error: StoreError): void => events.fail(error)
    const thread = await DatabaseThread.start(settings, { afterBatch: () => events.flush(), onLost })
    events.start(thread.firstRevision as Revision)
    return new SqliteStore(thread, events, maxValueBytes, () => openFiles.delete(file))
  } catch (error) {
    openFiles.delete(file)
    throw error
  }
}

function canonical(file: string): string {
  const path = resolve(file)
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    return join(realpathSync(dirname(path)), basename(path))
  } catch (error) {
    throw new StoreError('Unavailable', `cannot open ${path}: ${(error as Error).message}`, { cause: error })
  }
}

class SqliteStore implements Store {
  readonly maxValueBytes: number
  readonly instanceId: string
  readonly #thread: DatabaseThread
  readonly #events: EventLog
  readonly #closed: () => void

  constructor(thread: DatabaseThread, events: EventLog, maxValueBytes: number, closed: () => void) {
    this.maxValueBytes = maxValueBytes
    this.instanceId = thread.instanceId
    this.#thread = thread
    this.#events = events
    this.#closed = closed
  }

  get(key: ObjectKey, { signal }: Waiting): Promise<StoredObject | undefined> {
    return this.#ask(signal, { do: 'get', key }, 'object', ({ object }, values) => object && unpack(object, values))
  }

  list(scope: ListScope, options: Waiting & { limit?: number; after?: ObjectKey }): Promise<ListResult> {
    const { signal, limit, after } = options
    const call: DatabaseCall = { do: 'list', scope, ...(limit && { limit }), ...(after && { after }) }
    return this.#ask(signal, call, 'list', ({ objects, revision, more }, values) => {
      const items = objects.map((object) => unpack(object, values))
      const last = items.at(-1)
      return { items, revision: revision as Revision, ...(more && last && { next: last.key }) }
    })
  }

  async create(key: ObjectKey, value: Uint8Array, { signal, above }: Creating): Promise<StoredObject> {
    this.#checkSize(key, value)
    const more = above === undefined ? {} : { above }
    return this.#put(signal, key, value, (slice) => ({ do: 'create', key, value: slice, ...more }))
  }

  async update(
    key: ObjectKey,
    value: Uint8Array,
    { signal, ifRevision, deferrable = false }: Updating,
  ): Promise<StoredObject> {
    this.#checkSize(key, value)
    return this.#put(signal, key, value, (slice) => ({ do: 'update', key, value: slice, ifRevision }), deferrable)
  }

  delete(key: ObjectKey, { signal, ifRevision }: Waiting & { ifRevision: Revision }): Promise<Revision> {
    return this.#ask(signal, { do: 'delete', key, ifRevision }, 'deleted', ({ deletion }, values) => {
      this.#events.add(deleteEvent(deletion, values))
      return deletion.revision as Revision
    })
  }

  async deleteCluster(cluster: ClusterId, { signal }: Waiting): Promise<void> {
    const call: DatabaseCall = { do: 'deleteSome', cluster, limit: deleteBatch }
    let deleted: number
    do {
      deleted = await this.#ask(signal, call, 'deletedSome', ({ deletions }, values) => {
        for (const deletion of deletions) this.#events.add(deleteEvent(deletion, values))
        return deletions.length
      })
    } while (deleted === deleteBatch)
  }

  watch({ since, signal }: Waiting & { since: Revision }): AsyncIterable<readonly StoreEvent[]> {
    return watchLog(this.#events, { since, signal }, async (until) => {
      // Final states, from disk. Objects that changed again after `until` come from the log, which has every event.
      const changes = await this.#changes(signal, since, {})
      return changes.filter((event) => revisionOf(event) <= until)
    })
  }

  async changes(
    { cluster, resource }: { cluster?: ClusterId; resource: string },
    { signal, since }: Waiting & { since: Revision },
  ): Promise<readonly StoreEvent[]> {
    return this.#changes(signal, since, { resource, ...(cluster !== undefined && { cluster }) })
  }

  revision({ signal }: Waiting): Promise<Revision> {
    return this.#ask(signal, { do: 'revision' }, 'revision', ({ revision }) => revision as Revision)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#thread.close()
    this.#events.fail(new StoreError('Closed', 'the store is closed'))
    this.#closed()
  }

  #changes(
    signal: AbortSignal,
    since: Revision,
    scope: { readonly cluster?: ClusterId; readonly resource?: string },
  ): Promise<readonly Change[]> {
    return this.#ask(signal, { do: 'changes', since, ...scope }, 'changes', ({ puts, deletions }, values) => {
      const deleteEvents = deletions.map((deletion) => deleteEvent(deletion, values))
      const putEvents = puts.map((put): Change => ({ type: 'put', object: unpack(put, values) }))
      return lastStates([...deleteEvents, ...putEvents], since)
    })
  }

  #checkSize(key: ObjectKey, value: Uint8Array): void {
    if (value.length <= this.maxValueBytes) return
    const message = `"${key.resource}/${key.name}" has ${value.length} bytes, more than the limit of ${this.maxValueBytes}`
    throw new StoreError('TooLarge', message)
  }

  #put(
    signal: AbortSignal,
    key: ObjectKey,
    value: Uint8Array,
    make: (slice: Slice) => DatabaseCall,
    deferrable = false,
  ): Promise<StoredObject> {
    const read = (answer: Extract<DatabaseAnswer, { is: 'put' }>): StoredObject => {
      const revision = answer.revision as Revision
      const object: StoredObject = { key, revision, createRevision: answer.createRevision as Revision, value }
      this.#events.add({ type: 'put', object })
      return object
    }
    return this.#ask(signal, make, 'put', read, { value, deferrable })
  }

  #ask<Kind extends DatabaseAnswer['is'], T>(
    signal: AbortSignal,
    call: DatabaseCall | ((slice: Slice) => DatabaseCall),
    kind: Kind,
    read: (answer: Extract<DatabaseAnswer, { is: Kind }>, values: Values) => T,
    written: Pick<PendingCall, 'value' | 'deferrable'> = {},
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason as Error)
        return
      }
      const abort = (): void => {
        this.#thread.withdraw(pending)
        reject(signal.reason as Error)
      }
      const pending: PendingCall = {
        make: typeof call === 'function' ? call : () => call,
        ...written,
        answered: (answer, values) => {
          signal.removeEventListener('abort', abort)
          if (answer.is === 'error') {
            reject(new StoreError(answer.code, answer.message))
            return
          }
          // `read` also records events, so it runs even if the caller has gone.
          const result = read(answer as Extract<DatabaseAnswer, { is: Kind }>, values)
          this.#events.afterFlush(() => resolve(result))
        },
        failed: (error) => {
          signal.removeEventListener('abort', abort)
          reject(error)
        },
      }
      signal.addEventListener('abort', abort, { once: true })
      this.#thread.call(pending)
    })
  }
}

function deleteEvent(deletion: PackedDeletion, values: Values): Extract<StoreEvent, { type: 'delete' }> {
  const object = unpack(deletion.previous, values)
  // Copies the value: the event log keeps it for long, and a view would keep the whole buffer of the batch, such as a
  // list of megabytes.
  const previous = { ...object, value: object.value.slice() }
  return { type: 'delete', key: previous.key, revision: deletion.revision as Revision, previous }
}
