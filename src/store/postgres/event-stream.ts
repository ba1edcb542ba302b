// The order of changes: those of this process as its own batches tell them, those of others as they are read from the
// table `log`.
import type { Revision } from '#apimachinery/meta/index.ts'
import { isAborted, sleep } from '#async/index.ts'
import { keyOf, revisionOf, type Change, type EventLog } from '#store/event-log.ts'
import { DeliveryWaiters } from '#store/shared-server.ts'
import { isStoreError, StoreError, type ObjectKey } from '#store/store.ts'

/** A page of changes in the order of revisions. */
export interface Page {
  readonly changes: readonly Change[]
  /** The page has all changes up to here. Above the last of `changes` if values cannot be read. */
  readonly upTo: Revision
  /** There are more changes. */
  readonly hasMore: boolean
}

interface EventStreamOptions {
  readonly log: EventLog
  /** Reads the first changes after `since`. Rejects StoreError Compacted if they are no longer known. */
  readonly read: (since: Revision) => Promise<Page>
  /** Called with each change before it is delivered. */
  readonly seen: (change: Change) => void
  readonly onProblem: (message: string, error: unknown) => void
  readonly signal: AbortSignal
}

const [firstRetryMs, lastRetryMs] = [50, 2000]

export class EventStream {
  readonly #options: EventStreamOptions
  readonly #waiters: DeliveryWaiters
  #reading: Promise<void> | undefined
  #isAsked = false
  #last: { readonly revision: Revision; readonly key: ObjectKey } | undefined

  constructor(options: EventStreamOptions) {
    this.#options = options
    this.#waiters = new DeliveryWaiters(options.log)
  }

  /** The last change that was delivered. */
  get last(): { readonly revision: Revision; readonly key: ObjectKey } | undefined {
    return this.#last
  }

  /** Delivers changes that directly follow the revision `before`. Resolves after all up to the last of them. */
  async own(before: number, changes: readonly Change[]): Promise<void> {
    const last = changes.at(-1)
    if (last === undefined) return
    const { log } = this.#options
    if (before === log.revision) this.#deliver(changes)
    else if (revisionOf(last) <= log.revision && !this.#hasDelivered(last)) throw this.#wentBack()
    await this.reached(revisionOf(last))
  }

  #hasDelivered(change: Change): boolean {
    return this.#last !== undefined && this.#last.revision >= revisionOf(change)
  }

  #wentBack(): StoreError {
    const error = new StoreError(
      'Unavailable',
      'PostgreSQL has gone back to an earlier state: restart the program, and make its standbys synchronous',
    )
    this.fail(error)
    return error
  }

  /** Reads what is new; for a change that another process has told. */
  ask(): void {
    this.#isAsked = true
    this.#reading ??= this.#readAll()
  }

  /** Resolves when every change up to this revision was delivered. */
  reached(revision: number): Promise<undefined> {
    return this.#waiters.reached(revision, () => this.ask())
  }

  /** Ends the log and all that wait for it. */
  fail(error: StoreError): void {
    this.#waiters.fail(error)
  }

  async ended(): Promise<void> {
    await this.#reading
  }

  async #readAll(): Promise<void> {
    const { log, read, onProblem, signal } = this.#options
    let retryMs = firstRetryMs
    while (this.#isAsked && !signal.aborted && this.#waiters.failure === undefined) {
      this.#isAsked = false
      try {
        const { changes, upTo, hasMore } = await read(log.revision)
        this.#deliver(changes.filter((change) => revisionOf(change) > log.revision))
        if (upTo > log.revision) log.progress(upTo)
        this.#waiters.tell()
        retryMs = firstRetryMs
        if (this.#wasAsked()) continue
        this.#isAsked = hasMore || this.#waiters.size > 0
        // A change that a waiter was told of is there at the next reading, unless the database has gone back.
        if (changes.length === 0 && this.#isAsked) await sleep(firstRetryMs, signal).catch(() => undefined)
      } catch (error) {
        if (isAborted(signal)) break
        if (isStoreError(error)) {
          this.fail(error)
          break
        }
        onProblem('the changes in PostgreSQL cannot be read and are asked for again', error)
        this.#isAsked = true
        await sleep(retryMs, signal).catch(() => undefined)
        retryMs = Math.min(retryMs * 2, lastRetryMs)
      }
    }
    // In the same turn as the last look at the question, so that none is lost.
    this.#reading = undefined
  }

  /** A call, because TypeScript does not see that a question may come during an `await`. */
  #wasAsked(): boolean {
    return this.#isAsked
  }

  #deliver(changes: readonly Change[]): void {
    const last = changes.at(-1)
    if (last === undefined) return
    const { log, seen } = this.#options
    for (const change of changes) {
      seen(change)
      log.add(change)
    }
    this.#last = { revision: revisionOf(last), key: keyOf(last) }
    log.flush()
    this.#waiters.tell()
  }
}
