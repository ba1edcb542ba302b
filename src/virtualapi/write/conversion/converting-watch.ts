// A watch of the watch cache that converts each batch of events before it can be taken. Batches are converted one after
// the other, so events keep their order. Later events wait in the watch of the watch cache, which bounds their size.
import type { Revision } from '#apimachinery/meta/index.ts'
import { isStatusError, statusError } from '#apimachinery/status/index.ts'
import type { Entry, CacheEvent, CacheWatch, WatchReader } from '#store/watch-cache/index.ts'

/** Converts entries; the result has the same order. Rejects if a conversion fails, or with the signal's reason. */
type ConvertEntries = (entries: readonly Entry[], signal: AbortSignal) => Promise<readonly Entry[]>

const nothing: readonly CacheEvent[] = []

/** An event that cannot be converted ends the watch with a StatusError, as upstream. */
export class ConvertingWatch implements CacheWatch, WatchReader {
  readonly #source: CacheWatch
  readonly #convert: ConvertEntries
  /**
   * True if events need the previous state of their object. False for watches without selectors, which include every
   * object.
   */
  readonly #withPrevious: boolean
  readonly #life = new AbortController()
  #reader: WatchReader | undefined
  #events: readonly CacheEvent[] | undefined
  #taken: Revision | undefined
  #end: { readonly error?: unknown } | undefined
  #isBusy = false

  constructor(source: CacheWatch, convert: ConvertEntries, { withPrevious }: { withPrevious: boolean }) {
    this.#source = source
    this.#convert = convert
    this.#withPrevious = withPrevious
    this.#taken = source.progress()
  }

  read(reader: WatchReader): void {
    this.#reader = reader
    this.#source.read(this)
    if (this.waits) reader.ready()
  }

  ready(): void {
    if (this.#isBusy || this.waits) return
    this.#isBusy = true
    void this.#next()
  }

  get waits(): boolean {
    return this.#events !== undefined || this.#end !== undefined
  }

  /**
   * The converted events of one batch; empty if none are ready, undefined if the watch has ended. Throws the error that
   * ended it.
   */
  take(): readonly CacheEvent[] | undefined {
    const events = this.#events
    if (events !== undefined) {
      this.#events = undefined
      this.#taken = events.at(-1)?.revision ?? this.#taken
      if (this.#source.waits) this.ready()
      return events
    }
    if (this.#end === undefined) return nothing
    if ('error' in this.#end) throw this.#end.error
    return undefined
  }

  progress(): Revision {
    const isIdle = !this.#isBusy && !this.waits && !this.#source.waits
    return isIdle ? this.#source.progress() : (this.#taken ?? this.#source.progress())
  }

  [Symbol.dispose](): void {
    this.#life.abort(new DOMException('the watch has ended', 'AbortError'))
    this.#source[Symbol.dispose]()
  }

  async #next(): Promise<void> {
    // Waits until the watch cache's loop that applies changes, which called ready(), is done.
    await Promise.resolve()
    try {
      const events = this.#source.take()
      if (events === undefined) this.#end = {}
      else if (events.length > 0) this.#events = await this.#converted(events)
    } catch (error) {
      this.#end = { error: watchError(error) }
    }
    this.#isBusy = false
    if (this.#life.signal.aborted) return
    if (this.waits) this.#reader?.ready()
    else if (this.#source.waits) this.ready()
  }

  async #converted(events: readonly CacheEvent[]): Promise<readonly CacheEvent[]> {
    const entries = events.map(({ entry }) => entry)
    const previousEntries = this.#withPrevious
      ? events.flatMap((event) => ('previous' in event && event.previous !== undefined ? [event.previous] : []))
      : []
    const shown = await this.#convert([...entries, ...previousEntries], this.#life.signal)
    let next = events.length
    return events.map((event, i): CacheEvent => {
      const entry = shown[i] ?? event.entry
      if (event.type === 'ADDED') return { ...event, entry }
      const previous = this.#withPrevious && event.previous !== undefined ? shown[next++] : undefined
      return { ...event, entry, previous }
    })
  }
}

/** As upstream, a failed conversion ends a watch with reason InternalError. */
function watchError(error: unknown): unknown {
  if (!isStatusError(error) || error.reason !== '') return error
  return statusError(error.code, 'InternalError', error.message, { cause: error })
}
