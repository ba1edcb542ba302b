// etcd's watch on all objects: fills the event log, and tells writers when their events were delivered.
import { isAborted, sleep } from '#async/index.ts'
import type { Revision } from '#apimachinery/meta/index.ts'
import type { Change, EventLog } from '#store/event-log.ts'
import { isStoreError, StoreError } from '#store/store.ts'
import type { EtcdClient, EtcdWatch } from './etcd-client.ts'
import type { KeyRange } from '#store/key-bytes.ts'
import { closedStore, DeliveryWaiters } from '#store/shared-server.ts'
import type { WatchEvent, WatchResponse } from './messages.ts'

interface EventStreamOptions {
  readonly client: EtcdClient
  readonly range: KeyRange
  readonly log: EventLog
  /** The event of a change; undefined for a key or a value that cannot be read. */
  readonly read: (event: WatchEvent) => Change | undefined
  /** Called with each change before it is delivered. */
  readonly seen: (change: Change) => void
  readonly onProblem: (message: string, error: unknown) => void
  readonly signal: AbortSignal
}

/** Milliseconds until etcd is asked how far the stream is: our own events come sooner by themselves. */
const askMs = 5
const askAgainMs = 100
const [firstRetryMs, lastRetryMs] = [50, 2000]
/** Milliseconds without an answer to a question after which the connection counts as dead. */
const silentMs = 5000

export class EventStream {
  readonly #options: EventStreamOptions
  readonly #waiters: DeliveryWaiters
  #watch: EtcdWatch | undefined
  #asking: NodeJS.Timeout | undefined
  #askedAt: number | undefined

  constructor(options: EventStreamOptions) {
    this.#options = options
    this.#waiters = new DeliveryWaiters(options.log)
  }

  /** Follows the watch until the signal aborts, or until etcd no longer knows the changes to be delivered next. */
  async run(): Promise<void> {
    const { signal, client, log, onProblem } = this.#options
    let retryMs = firstRetryMs
    while (!signal.aborted) {
      const before = log.revision
      try {
        await this.#follow()
      } catch (error) {
        if (isAborted(signal)) break
        if (isStoreError(error)) {
          this.fail(error)
          return
        }
        onProblem('the watch on etcd broke and is started again', error)
        client.leaveEndpoint()
      }
      retryMs = log.revision > before ? firstRetryMs : Math.min(retryMs * 2, lastRetryMs)
      await sleep(retryMs, signal).catch(() => undefined)
    }
    this.fail(closedStore())
  }

  /** Ends the log and all that wait for it. */
  fail(error: StoreError): void {
    clearTimeout(this.#asking)
    this.#waiters.fail(error)
  }

  /** Resolves when every event up to this revision was delivered. */
  reached(revision: number): Promise<undefined> {
    return this.#waiters.reached(revision, () => this.#ask(askMs))
  }

  async #follow(): Promise<void> {
    const { client, range, log, signal } = this.#options
    const watch = await client.watch()
    const abort = (): void => watch.cancel()
    signal.addEventListener('abort', abort, { once: true })
    try {
      signal.throwIfAborted()
      // Without a listener, an error after the loop has ended would end the process.
      watch.on('error', () => undefined)
      watch.write({
        createRequest: {
          key: range.start,
          rangeEnd: range.end,
          startRevision: log.revision + 1,
          prevKv: true,
          fragment: true,
        },
      })
      for await (const answer of watch as AsyncIterable<WatchResponse>) this.#take(answer, watch)
      throw new Error('etcd ended the watch')
    } finally {
      this.#watch = undefined
      this.#askedAt = undefined
      signal.removeEventListener('abort', abort)
      watch.cancel()
    }
  }

  #take({ header, created, canceled, compactRevision, cancelReason, events }: WatchResponse, watch: EtcdWatch): void {
    const { log, read, seen } = this.#options
    this.#askedAt = undefined
    if (compactRevision > 0)
      throw new StoreError('Compacted', `etcd has dropped changes that were not delivered yet: restart the program`)
    if (canceled) throw new Error(`etcd ended the watch: ${cancelReason}`)
    if (created) {
      this.#watch = watch
      if (this.#waiters.size > 0) this.#ask(askMs)
      return
    }
    for (const event of events) {
      const change = read(event)
      if (change === undefined) continue
      seen(change)
      log.add(change)
    }
    log.flush()
    // A response without events answers a question: everything up to its revision was delivered.
    const delivered = events.at(-1)?.kv.modRevision ?? header.revision
    if (delivered > log.revision) log.progress(delivered as Revision)
    this.#waiters.tell()
  }

  /** Asks etcd how far the stream is, as long as anything waits for more. */
  #ask(ms: number): void {
    this.#asking ??= setTimeout(() => {
      this.#asking = undefined
      if (this.#waiters.size === 0 || this.#watch === undefined) return
      if (this.#askedAt !== undefined && performance.now() - this.#askedAt > silentMs) {
        this.#watch.cancel()
        return
      }
      this.#askedAt ??= performance.now()
      this.#watch.write({ progressRequest: {} })
      this.#ask(askAgainMs)
    }, ms)
  }
}
