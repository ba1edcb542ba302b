// One watch: its scope, and the bounded buffer between the watch cache and the reader. There are thousands of watches,
// so an idle watch is this object alone: no closure, no promise, no list.
import type { Revision } from '#apimachinery/meta/index.ts'
import { StoreError } from '#store/store.ts'
import type { CacheEvent, CacheWatch, WatchReader, WatchScope } from './watch-cache.ts'

/** Maximum bytes of events that a slow reader takes at a time. */
const takenBytes = 256 * 1024
const nothing: readonly CacheEvent[] = []

/** The part of the watch cache where a watcher is registered. */
export interface WatcherHome {
  /** Newest revision the watch cache has applied. */
  applied(): Revision
  /** Bytes that may wait for one watcher; a single batch may exceed it. */
  readonly watcherBytes: number
  /** The watch ended, for whatever reason; called once. */
  watcherEnded(watcher: CacheWatcher): void
}

/**
 * A watch that gets events by `offer`, which never waits. `flush` after the events of one batch notifies the reader.
 */
export class CacheWatcher implements CacheWatch {
  readonly scope: WatchScope
  readonly #since: Revision
  readonly #home: WatcherHome
  #reader: WatchReader | undefined
  #waiting: CacheEvent[] | undefined
  #waitingBytes = 0
  /** Bytes that were waiting at the last flush. */
  #flushedBytes = 0
  /** Revision of the last taken event. */
  #taken: Revision
  #state: 'open' | 'ended' | Error = 'open'

  constructor(scope: WatchScope, since: Revision, home: WatcherHome) {
    this.scope = scope
    this.#since = this.#taken = since
    this.#home = home
  }

  /** Adds the event if it is in scope. Returns true for the first one since the last flush. */
  offer(event: CacheEvent): boolean {
    if (event.revision <= this.#since || this.#state !== 'open') return false
    const { namespace } = this.scope
    if (namespace !== undefined && event.entry.key.namespace !== namespace) return false
    const isFirst = this.#waitingBytes === this.#flushedBytes
    if (this.#waiting === undefined) this.#waiting = [event]
    else this.#waiting.push(event)
    this.#waitingBytes += event.entry.size
    return isFirst
  }

  flush(): void {
    if (this.#waitingBytes === this.#flushedBytes) return
    if (this.#flushedBytes > 0 && this.#waitingBytes > this.#home.watcherBytes) {
      this.fail(new StoreError('Compacted', 'the watcher did not keep up'))
      return
    }
    this.#flushedBytes = this.#waitingBytes
    this.#reader?.ready()
  }

  read(reader: WatchReader): void {
    this.#reader = reader
    if (this.waits) reader.ready()
  }

  take(maxBytes = takenBytes): readonly CacheEvent[] | undefined {
    const all = this.#waiting
    if (all === undefined) {
      if (this.#state === 'open') return nothing
      if (this.#state === 'ended') return undefined
      throw this.#state
    }
    let taken = all
    if (this.#waitingBytes <= maxBytes) this.#setWaiting(undefined, 0)
    else {
      let count = 0
      let bytes = 0
      while (count < all.length && (count === 0 || bytes < maxBytes)) bytes += all[count++]?.entry.size ?? 0
      taken = all.splice(0, count)
      this.#setWaiting(all.length > 0 ? all : undefined, this.#waitingBytes - bytes)
    }
    this.#taken = taken.at(-1)?.revision ?? this.#taken
    return taken
  }

  get waits(): boolean {
    return this.#waiting !== undefined || this.#state !== 'open'
  }

  progress(): Revision {
    if (this.#waiting !== undefined) return this.#taken
    return Math.max(this.#since, this.#home.applied()) as Revision
  }

  /** Ends the watch after the waiting events. */
  end(): void {
    this.#close('ended')
  }

  /** Ends the watch and drops the waiting events. */
  fail(error: Error): void {
    if (this.#state !== 'open') return
    this.#setWaiting(undefined, 0)
    this.#close(error)
  }

  [Symbol.dispose](): void {
    this.end()
  }

  #setWaiting(waiting: CacheEvent[] | undefined, bytes: number): void {
    this.#waiting = waiting
    this.#waitingBytes = this.#flushedBytes = bytes
  }

  #close(state: 'ended' | Error): void {
    if (this.#state !== 'open') return
    this.#state = state
    this.#home.watcherEnded(this)
    this.#reader?.ready()
  }
}
