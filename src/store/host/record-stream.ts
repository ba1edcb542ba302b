// The host's stream of all Records: lists once, then watches forever. If the host no longer has the events in between,
// a new list is compared with the index and the differences become ordinary events: tenants must relist only if
// something was deleted meanwhile.
import { childSignal, sleep, type ChildSignal } from '../../async/index.ts'
import type { Revision } from '../../apimachinery/meta/index.ts'
import { internalError, isStatusError } from '../../apimachinery/status/index.ts'
import { SilentConnection, type KubeClient } from '../../client/index.ts'
import { records as recordsGvr, type StorageRecord } from '../../crds/index.ts'
import type { EventLog } from '../event-log.ts'
import type { StoredObject, StoreEvent } from '../store.ts'
import { DeletionLog } from './deletion-log.ts'
import type { RecordCodec } from './record-codec.ts'
import { RecordIndex } from './record-index.ts'

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
  /** How long the watch may stay silent after the host acknowledged a write of ours. Default 5 s. */
  readonly maxSilenceMs?: number
}

/** `start` resolves when the first list is read; then `run` follows until the signal. */
export class RecordStream {
  readonly index = new RecordIndex()
  readonly deletions = new DeletionLog()
  readonly #options: RecordStreamOptions
  readonly #waiters = new Set<() => boolean>()
  /** Callers that wait for the revision of a deletion, by Record name. */
  readonly #deletionWaiters = new Map<string, Set<(revision: Revision) => void>>()
  #revision = 0
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
    for await (const { record, change } of this.#list(signal)) this.index.apply(record, change)
    this.#options.log.start(this.#revision as Revision)
    this.deletions.start(this.#revision as Revision)
  }

  /** Ends only with the signal. */
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
   * The host has acknowledged a write of ours, so the watch must report it soon. If it reports nothing at all, its
   * connection is dead without a reset (a proxy, a firewall), and the watch reconnects.
   */
  expect(wasTold: () => boolean): void {
    if (this.#attempt === undefined || wasTold()) return
    // The previous write was reported: the silence begins only now.
    if (this.#wasTold?.() !== false) this.#silence?.refresh()
    this.#wasTold = wasTold
    this.#silence ??= this.#armSilenceTimer(this.#maxSilenceMs)
  }

  /** The limit doubles after each reconnect: a host may need long to begin a watch. */
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
   * The revision of this Record's next deletion. Call it before deleting; then call `expect` when the host has
   * acknowledged the deletion, or `leave` when nothing was deleted.
   */
  nextDeletion(record: string): { revision: Promise<Revision>; expect: () => void; leave: () => void } {
    const { promise, resolve } = Promise.withResolvers<Revision>()
    const waiters = this.#deletionWaiters.get(record) ?? new Set()
    this.#deletionWaiters.set(record, waiters.add(resolve))
    return {
      revision: promise,
      expect: () => this.expect(() => this.#deletionWaiters.get(record) !== waiters),
      leave: () => {
        waiters.delete(resolve)
        if (waiters.size === 0 && this.#deletionWaiters.get(record) === waiters) this.#deletionWaiters.delete(record)
      },
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { client, codec } = this.#options
    const events = client.watch<StorageRecord>(recordsGvr, { resourceVersion: String(this.#revision), signal })
    for await (const { type, object } of events) {
      this.#silence?.refresh()
      const revision = Number(object.metadata.resourceVersion) as Revision
      if (!(revision > 0)) throw internalError('the host told of a change without its revision')
      if (type === 'BOOKMARK') this.#options.log.progress(revision)
      else if (codec.isBucket(object.metadata.namespace)) this.#tell(object, this.#change(type, object, revision))
      this.#revision = Math.max(this.#revision, revision)
    }
  }

  /** Undefined if the Record is unreadable, which is reported: one damaged Record must not affect the others. */
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
      const object = this.decoded(record)
      return object && { type: 'put', object }
    }
    try {
      const key = this.#options.codec.keyOf(record)
      const known = this.index.get(key.cluster, record.metadata.name)
      return { type: 'delete', key, revision, ...this.#last(record, known?.revision ?? revision) }
    } catch {
      // It was skipped when it was edited; its old state left the index then.
      const known = this.index.find(record.metadata.name)
      return known && { type: 'delete', key: known.key, revision }
    }
  }

  #last(record: StorageRecord, revision: Revision): { previous?: StoredObject } {
    try {
      return { previous: { ...this.#options.codec.decode(record), revision } }
    } catch {
      // It was skipped when it was written; its deletion can be reported all the same.
      return {}
    }
  }

  #tell(record: StorageRecord, change: Change | undefined): void {
    if (!change) return
    this.#note(record.metadata.name, change)
    this.#options.log.flush()
    this.#wake()
  }

  #note(record: string, change: Change): void {
    this.index.apply(record, change)
    this.#options.log.add(change)
    if (change.type === 'put') return
    this.deletions.add(change)
    const { revision } = change
    const waiters = this.#deletionWaiters.get(record)
    this.#deletionWaiters.delete(record)
    // After delivery of the event: the deleting caller is answered last.
    if (waiters) this.#options.log.afterFlush(() => waiters.forEach((resolve) => resolve(revision)))
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
      for await (const { record, change } of this.#list(signal)) {
        const known = missing.get(record)
        missing.delete(record)
        if (change.object.revision !== known?.revision) changes.push({ record, change })
      }
    } catch (error) {
      onProblem('Records cannot be listed', error)
      return
    }
    const revision = this.#revision as Revision
    changes.sort((a, b) => revisionOf(a.change) - revisionOf(b.change))
    // The revisions of these deletions are unknown; that of the list is an upper bound.
    for (const [record, { key }] of missing)
      changes.push({ record, change: { type: 'delete', key, revision, missed: true } })
    for (const { record, change } of changes) {
      this.#note(record, change)
    }
    log.progress(revision)
    // No watch may resume from before this list: several deletions share its revision.
    if (missing.size > 0) this.deletions.start(revision)
    this.#wake()
  }

  /** Lists every readable Record at one revision, which becomes `#revision`. */
  async *#list(signal: AbortSignal): AsyncGenerator<{ record: string; change: Extract<Change, { type: 'put' }> }> {
    const { client, codec } = this.#options
    let page: string | undefined
    do {
      const list = await client.list<StorageRecord>(recordsGvr, {
        limit: pageSize,
        signal,
        ...(page !== undefined && { continue: page }),
      })
      for (const record of list.items) {
        const object = codec.isBucket(record.metadata.namespace) ? this.decoded(record) : undefined
        if (object) yield { record: record.metadata.name, change: { type: 'put', object } }
      }
      page = list.metadata.continue === '' ? undefined : list.metadata.continue
      if (page === undefined) this.#revision = Number(list.metadata.resourceVersion)
    } while (page !== undefined)
  }
}

function revisionOf(change: Change): number {
  return change.type === 'put' ? change.object.revision : change.revision
}

/** A function, because the compiler assumes that a signal's state does not change between two reads. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted
}
