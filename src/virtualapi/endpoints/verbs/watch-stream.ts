// An open watch: first the initial state, then the events of the watch cache, written to a sink when `Deliveries` calls
// `deliver`. An idle watch costs this object, the watch cache's watcher and the sink: no promise, generator or timer is
// pending for it.
import { expired, isStatusError, type StatusError } from '#apimachinery/status/index.ts'
import type { Revision } from '#apimachinery/meta/index.ts'
import { isStoreError } from '#store/index.ts'
import type { CacheWatch, WatchReader } from '#store/watch-cache/index.ts'
import type { Deliveries, PendingDelivery } from '#virtualapi/flowcontrol/deliveries.ts'
import type { Push, Sink } from '#virtualapi/request/exchange.ts'
import type { TimedWatch, WatchClock } from '#virtualapi/endpoints/call/watch-clock.ts'
import type { WatchEncoder } from './watch-encoder.ts'

/** How many bytes of events are encoded at once if each event may be slow to encode. */
const costlyBytes = 4 * 1024

export interface WatchStreamOptions {
  readonly watch: CacheWatch
  readonly encoder: WatchEncoder
  /** Chunks of the initial state, sent before anything else. */
  readonly initial: Iterator<Uint8Array> | undefined
  readonly since: Revision
  readonly timeoutMs: number
  readonly bookmarks: boolean
  /** The fairness key, by which deliveries take turns; undefined for our own controllers, which never wait. */
  readonly flow: string | undefined
  readonly clock: WatchClock
  readonly deliveries: Deliveries
  readonly sink: Sink
}

export class WatchStream implements Push, WatchReader, TimedWatch, PendingDelivery {
  readonly endsAt: number
  readonly #watch: CacheWatch
  readonly #encoder: WatchEncoder
  readonly #since: Revision
  readonly #bookmarks: boolean
  readonly #flow: string | undefined
  readonly #clock: WatchClock
  readonly #deliveries: Deliveries
  readonly #sink: Sink
  #initial: Iterator<Uint8Array> | undefined
  /** Bytes written in the current delivery. */
  #delivered = 0
  #isFull = false
  #isQueued = false
  #isBookmarkDue = false
  #isTimeOver = false
  #isClosed = false

  constructor(options: WatchStreamOptions) {
    this.#watch = options.watch
    this.#encoder = options.encoder
    this.#initial = options.initial
    this.#since = options.since
    this.#bookmarks = options.bookmarks
    this.#flow = options.flow
    this.#clock = options.clock
    this.#deliveries = options.deliveries
    this.#sink = options.sink
    this.endsAt = performance.now() + options.timeoutMs
    this.#clock.add(this)
    this.#watch.read(this)
    if (this.#initial !== undefined) this.ready()
  }

  ready(): void {
    if (this.#isQueued || this.#isFull || this.#isClosed) return
    this.#isQueued = true
    this.#deliveries.add(this.#flow, this)
  }

  onBookmarkDue(): void {
    if (!this.#bookmarks) return
    this.#isBookmarkDue = true
    this.ready()
  }

  onTimeout(): void {
    this.#isTimeOver = true
    this.ready()
  }

  resume(): void {
    this.#isFull = false
    this.ready()
  }

  end(): void {
    this.#clock.remove(this)
    this.#watch[Symbol.dispose]()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#initial = undefined
    this.end()
  }

  deliver(): number {
    this.#isQueued = false
    this.#delivered = 0
    if (this.#isFull || this.#isClosed) return 0
    try {
      this.#step()
    } catch (error) {
      this.close()
      const status = errorToSend(error)
      if (status === undefined) this.#sink.fail(error)
      else {
        this.#sink.write(this.#encoder.error(status))
        this.#sink.end()
      }
    }
    return this.#delivered
  }

  /** Writes at most once, so that other watches are served in between. */
  #step(): void {
    if (this.#initial !== undefined) {
      const { done, value } = this.#initial.next() as IteratorResult<Uint8Array, undefined>
      if (done === true) this.#initial = undefined
      else if (value.length > 0) this.#write(value)
    } else if (this.#watch.waits) {
      // Events come before bookmarks: a bookmark promises that all earlier events were sent.
      const events = this.#watch.take(this.#encoder.isCostly ? costlyBytes : undefined)
      const chunk = events && this.#encoder.batch(events)
      if (chunk !== undefined) this.#write(chunk)
      if (events === undefined) {
        this.#finish()
        return
      }
    } else if (this.#isTimeOver) {
      if (this.#bookmarks) this.#bookmark()
      this.#finish()
      return
    } else if (this.#isBookmarkDue) this.#bookmark()
    if (this.#initial !== undefined || this.#watch.waits || this.#isTimeOver || this.#isBookmarkDue) this.ready()
  }

  #bookmark(): void {
    this.#isBookmarkDue = false
    this.#write(this.#encoder.bookmark(Math.max(this.#watch.progress(), this.#since) as Revision))
  }

  #write(chunk: Uint8Array): void {
    this.#delivered += chunk.length
    if (!this.#sink.write(chunk)) this.#isFull = true
  }

  #finish(): void {
    this.close()
    this.#sink.end()
  }
}

/** The error to send as the last event; undefined: the connection is cut. */
function errorToSend(error: unknown): StatusError | undefined {
  if (isStoreError(error, 'Compacted')) return expired('too old resource version: the watch fell behind; list again')
  return isStatusError(error) ? error : undefined
}
