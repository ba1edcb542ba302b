// The host's stream of all Records: lists once, then watches forever. If the host no longer has the events in between,
// a new list is compared with the index and the differences become ordinary events: tenants must relist only if
// something was deleted meanwhile.
import { abortable, childSignal, isAborted, sleep, type ChildSignal } from '#async/index.ts'
import type { KubeList, Revision } from '#apimachinery/meta/index.ts'
import { internalError, isStatusError } from '#apimachinery/status/index.ts'
import { SilentConnection, type KubeClient } from '#client/index.ts'
import { records as recordsGvr, type StorageRecord } from '#crds/index.ts'
import type { EventLog } from '#store/event-log.ts'
import type { ObjectKey, StoredObject, StoreEvent } from '#store/store.ts'
import {
  deletedRecords,
  type Deletion,
  DeletionLog,
  type DeletionSummary,
  DeletionWaiters,
  isSavedDeletions,
  readSavedDeletions,
} from './deletion-log.ts'
import { OwnWrites } from './own-writes.ts'
import type { RecordCodec } from './record-codec.ts'
import { RecordIndex } from './record-index.ts'
import type { Renewals } from './renewals.ts'
import { isRevisionRecord } from './revision-record.ts'

type Change = Exclude<StoreEvent, { type: 'progress' }>

const pageSize = 500
const firstRetryMs = 100
const lastRetryMs = 5000
const lastSilenceMs = 60_000

export interface RecordStreamOptions {
  readonly client: KubeClient
  readonly codec: RecordCodec
  readonly log: EventLog
  /** Called once for each unreadable Record, which is then skipped. */
  readonly onProblem: (message: string, error: unknown) => void
  /** Aborts when the store is closed. */
  readonly signal: AbortSignal
  readonly renewals: Pick<Renewals, 'at' | 'changed' | 'interrupted'>
  /** How long the watch may stay silent after the host acknowledged a write of ours. Default 5 s. */
  readonly maxSilenceMs?: number
}

/** `start` resolves when the first list is read; then `run` follows until the signal. */
export class RecordStream {
  readonly index = new RecordIndex()
  readonly deletions = new DeletionLog()
  readonly ownWrites = new OwnWrites()
  readonly #options: RecordStreamOptions
  readonly #waiters = new Set<() => boolean>()
  readonly #deletionWaiters = new DeletionWaiters()
  #revision = 0
  #found: DeletionSummary | undefined
  #changedAt = 0
  #savedAt = 0
  #remembering: Promise<void> = Promise.resolve()
  #attempt: ChildSignal | undefined
  /** Whether the last acknowledged write has appeared on the watch; undefined if none is expected. */
  #wasTold: (() => boolean) | undefined
  #silence: NodeJS.Timeout | undefined
  readonly #maxSilenceMs: number

  constructor(options: RecordStreamOptions) {
    this.#options = options
    this.#maxSilenceMs = options.maxSilenceMs ?? 5000
  }

  async start(signal: AbortSignal): Promise<void> {
    // The payloads are not decoded: they are most of the data.
    const texts = new Texts()
    for await (const { record, key } of this.#list(signal)) {
      const { resource, namespace } = key
      const own = {
        ...key,
        cluster: texts.one(key.cluster),
        resource: texts.one(resource),
        namespace: texts.one(namespace),
      }
      const bytes = Buffer.byteLength(record.data)
      this.index.put(record.metadata.name, { key: own, ...this.#options.codec.revisionsOf(record), bytes })
    }
    this.#options.log.start(this.#revision as Revision)
    this.deletions.start(this.#revision as Revision)
    this.#remembering = this.#remember(this.#revision as Revision)
  }

  /** Resolves when `deletions` has everything that can be known about deletions before the start. */
  remembered(signal: AbortSignal): Promise<void> {
    return abortable(this.#remembering, signal)
  }

  /** The revision up to which every change was delivered. */
  get revision(): Revision {
    return this.#revision as Revision
  }

  async #remember(startedAt: Revision): Promise<void> {
    const { client, signal } = this.#options
    const saved = this.#found
    this.#changedAt = startedAt
    if (saved === undefined) return
    try {
      const deleted = await deletedRecords(client, { since: saved.revision, until: startedAt, signal })
      const since = deleted?.flatMap((record) => this.#deletion(record) ?? [])
      if (since !== undefined) this.deletions.extend(saved, since, startedAt)
    } catch (error) {
      if (!signal.aborted && !isStatusError(error, 'Expired') && !isStatusError(error, 'Gone'))
        this.#options.onProblem('deletions from before the start are not known: watches from then begin again', error)
    }
  }

  /** Follows the host's watch until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#follow(signal)
    } finally {
      clearTimeout(this.#silence)
      this.#attempt = undefined
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    let retryMs = firstRetryMs
    while (!signal.aborted) {
      const before = this.#revision
      using attempt = childSignal(signal)
      this.#attempt = attempt
      try {
        await this.#watch(attempt.signal)
      } catch (error) {
        if (isAborted(signal)) return
        if (isStatusError(error) && (error.code === 410 || error.reason === 'Expired')) await this.#compare(signal)
        else this.#options.onProblem('the watch on Records broke and is started again', error)
      }
      retryMs = this.#revision > before ? firstRetryMs : Math.min(retryMs * 2, lastRetryMs)
      await sleep(retryMs, signal).catch(() => undefined)
    }
  }

  /** Whether every event up to this revision was delivered. */
  isAt(revision: Revision): boolean {
    return this.#revision >= revision
  }

  /**
   * Call this when the host has acknowledged a write of this process: the watch must report the write soon. If the
   * watch reports nothing at all, its connection is dead without a reset (a proxy, a firewall), and the watch
   * reconnects. `wasTold` returns whether the write was reported.
   */
  expect(wasTold: () => boolean): void {
    if (this.#attempt === undefined || wasTold()) return
    // The previous write was reported: the silence begins only now.
    if (this.#wasTold?.() !== false) this.#silence?.refresh()
    this.#wasTold = wasTold
    this.#silence ??= this.#armSilenceTimer(this.#maxSilenceMs)
  }

  /** The limit doubles after each reconnect: a host may take long to begin a watch. */
  #armSilenceTimer(ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.#silence = undefined
      if (this.#wasTold === undefined || this.#wasTold()) {
        this.#wasTold = undefined
        return
      }
      this.#attempt?.abort(new SilentConnection(`the host told nothing for ${ms} ms after a write`))
      this.#silence = this.#armSilenceTimer(Math.min(ms * 2, lastSilenceMs))
    }, ms)
  }

  /** Resolves once `done` returns true; it is checked after every batch of events. Rejects with signal.reason. */
  until(done: () => boolean, signal: AbortSignal): Promise<void> {
    if (done()) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const settle = (): boolean => {
        if (!done()) return false
        signal.removeEventListener('abort', abort)
        resolve()
        return true
      }
      const abort = (): void => {
        this.#waiters.delete(settle)
        reject(signal.reason as Error)
      }
      if (signal.aborted) {
        abort()
        return
      }
      this.#waiters.add(settle)
      signal.addEventListener('abort', abort, { once: true })
    })
  }

  /**
   * The revision at which this Record is deleted when it is at `ifRevision`. Call it before deleting; then call
   * `expect` when the host has acknowledged the deletion, or `leave` when nothing was deleted.
   */
  nextDeletion(
    record: string,
    ifRevision: Revision,
  ): { revision: Promise<Revision>; expect: () => void; leave: () => void } {
    const { promise: revision, resolve } = Promise.withResolvers<Revision>()
    const leave = this.#deletionWaiters.add(record, { ifRevision, resolve })
    return { revision, expect: () => this.expect(() => !this.#deletionWaiters.has(record, resolve)), leave }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { client, codec } = this.#options
    const events = client.watch<StorageRecord>(recordsGvr, { resourceVersion: String(this.#revision), signal })
    for await (const { type, object } of events) {
      this.#silence?.refresh()
      const revision = Number(object.metadata.resourceVersion) as Revision
      if (!(revision > 0)) throw internalError('the host told of a change without its revision')
      // Bookmarks are a minute apart. The event of the saved deletions, a second after a start, shows earlier that
      // nothing else has changed.
      if (type === 'BOOKMARK' || isSavedDeletions(object)) this.#options.log.progress(revision)
      else if (isRevisionRecord(object)) this.#tellRenewals(object.data, revision)
      else if (codec.isBucket(object.metadata.namespace)) this.#tell(object, this.#change(type, object, revision))
      this.#revision = Math.max(this.#revision, revision)
    }
  }

  /**
   * The object in a Record; undefined if the Record is unreadable, which is reported: one damaged Record must not
   * affect the others.
   */
  decoded(record: StorageRecord): StoredObject | undefined {
    try {
      return this.#options.codec.decode(record)
    } catch (error) {
      this.#options.onProblem('a Record cannot be read and is left out', error)
      return undefined
    }
  }

  #change(type: 'ADDED' | 'MODIFIED' | 'DELETED', record: StorageRecord, revision: Revision): Change | undefined {
    if (type !== 'DELETED') {
      const own = this.ownWrites.take(record)
      const object = own ? this.#options.codec.objectOf(record, own) : this.decoded(record)
      return object && { type: 'put', object }
    }
    try {
      const key = this.#options.codec.keyOf(record)
      const { revision: last = revision, createRevision = revision } =
        this.index.get(key.cluster, record.metadata.name) ?? {}
      return { type: 'delete', key, revision, ...this.#last(record, { revision: last, createRevision }) }
    } catch {
      // The Record was skipped when it was edited by hand. The index may still have its last readable state.
      const known = this.index.find(record.metadata.name)
      return known && { type: 'delete', key: known.key, revision }
    }
  }

  /** The deletion of a Record before the start; undefined if it held no object of ours. */
  #deletion(record: StorageRecord): Deletion | undefined {
    try {
      const { codec } = this.#options
      if (!codec.isBucket(record.metadata.namespace)) return undefined
      const revision = Number(record.metadata.resourceVersion) as Revision
      // The create revision is unknown. A reader that never saw the object ignores its deletion.
      const before = { revision: 0 as Revision, createRevision: 0 as Revision }
      return { type: 'delete', key: codec.keyOf(record), revision, ...this.#last(record, before) }
    } catch {
      return undefined
    }
  }

  #last(
    record: StorageRecord,
    revisions: Pick<StoredObject, 'revision' | 'createRevision'>,
  ): { previous?: StoredObject } {
    try {
      return { previous: { ...this.#options.codec.decode(record), ...revisions } }
    } catch {
      // The Record was skipped when it was written; its deletion is reported without the last state.
      return {}
    }
  }

  #tell(record: StorageRecord, change: Change | undefined): void {
    if (!change) return
    this.#note(record.metadata.name, change)
    this.#options.log.flush()
    this.#wake()
  }

  #tellRenewals(text: string, revision: Revision): void {
    const renewed = this.#options.renewals.at(text, revision)
    if (renewed === undefined) return
    for (const change of renewed.changes) this.#options.log.add(change)
    this.#options.log.afterFlush(renewed.told)
    this.#options.log.flush()
  }

  /** Whether something changed since deletions were saved. */
  get hasUnsaved(): boolean {
    return this.#changedAt > this.#savedAt
  }

  get hasSaved(): boolean {
    return this.#savedAt > 0
  }

  /** Notes that the deletions up to this revision are saved. */
  saved(revision: number): void {
    this.#savedAt = revision
  }

  #note(record: string, change: Change): void {
    this.#changedAt = revisionOf(change)
    this.index.apply(record, change)
    this.#options.renewals.changed(record)
    this.#options.log.add(change)
    if (change.type === 'put') return
    this.deletions.add(change)
    this.#answerDeletions(record, change.revision)
  }

  #answerDeletions(record: string, revision: Revision): void {
    const waiters = this.#deletionWaiters.take(record, revision)
    // Resolves after the event was delivered: the caller of the deletion gets its response last.
    if (waiters.length > 0) this.#options.log.afterFlush(() => waiters.forEach(({ resolve }) => resolve(revision)))
  }

  #wake(): void {
    for (const waiter of this.#waiters) if (waiter()) this.#waiters.delete(waiter)
  }

  /** After lost events: compares a new list with the index and adds the differences as events. */
  async #compare(signal: AbortSignal): Promise<void> {
    const { log, onProblem } = this.#options
    const missing = new Map(this.index.all())
    const changes: { record: string; change: Change }[] = []
    try {
      for await (const { record } of this.#list(signal)) {
        const { name, resourceVersion } = record.metadata
        const isKnown = missing.get(name)?.revision === Number(resourceVersion)
        const object = isKnown ? undefined : this.decoded(record)
        if (isKnown || object) missing.delete(name)
        if (object) changes.push({ record: name, change: { type: 'put', object } })
      }
    } catch (error) {
      onProblem('Records cannot be listed', error)
      return
    }
    const revision = this.#revision as Revision
    changes.sort((a, b) => revisionOf(a.change) - revisionOf(b.change))
    // The revisions of these deletions are unknown; the list's revision is an upper bound.
    for (const [record, { key }] of missing)
      changes.push({ record, change: { type: 'delete', key, revision, missed: true } })
    for (const { record, change } of changes) {
      this.#note(record, change)
    }
    log.progress(revision)
    // No event reports a Record that was both created and deleted while the watch was broken.
    for (const record of this.#deletionWaiters.records())
      if (this.index.find(record) === undefined) this.#answerDeletions(record, revision)
    this.#options.renewals.interrupted()
    // No watch of these resources may resume from before this list, because several deletions share its revision.
    if (missing.size > 0) this.deletions.shorten(revision)
    this.#wake()
  }

  /**
   * Lists every Record of an object at one revision, which becomes `#revision`. The next page is requested before the
   * current one is read.
   */
  async *#list(signal: AbortSignal): AsyncGenerator<{ record: StorageRecord; key: ObjectKey }> {
    let next: Promise<KubeList<StorageRecord>> | undefined = this.#page(undefined, signal)
    while (next !== undefined) {
      const list: KubeList<StorageRecord> = await next
      const token: string | undefined = list.metadata.continue
      next = token ? this.#page(token, signal) : undefined
      // Prevents an unhandled rejection: a reader that stops early does not await the next page.
      next?.catch(() => undefined)
      for (const record of list.items) {
        if (isSavedDeletions(record)) this.#found = readSavedDeletions(record)
        else if (!isRevisionRecord(record)) {
          const key = this.#keyOf(record)
          if (key) yield { record, key }
        }
      }
      if (next === undefined) this.#revision = Number(list.metadata.resourceVersion)
    }
  }

  #page(token: string | undefined, signal: AbortSignal): Promise<KubeList<StorageRecord>> {
    const page = token === undefined ? {} : { continue: token }
    return this.#options.client.list<StorageRecord>(recordsGvr, { limit: pageSize, signal, ...page })
  }

  /** The key of a Record's object; undefined if the Record is in a foreign namespace or not where its key belongs. */
  #keyOf(record: StorageRecord): ObjectKey | undefined {
    const { codec, onProblem } = this.#options
    if (!codec.isBucket(record.metadata.namespace)) return undefined
    try {
      return codec.keyOf(record)
    } catch (error) {
      onProblem('a Record cannot be read and is left out', error)
      return undefined
    }
  }
}

function revisionOf(change: Change): number {
  return change.type === 'put' ? change.object.revision : change.revision
}

/** Makes equal texts share one string: each response contains its own copies. */
class Texts {
  readonly #all = new Map<string, string>()

  one<T extends string>(text: T): T {
    const known = this.#all.get(text)
    if (known !== undefined) return known as T
    this.#all.set(text, text)
    return text
  }
}
