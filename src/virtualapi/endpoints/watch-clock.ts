// One timer for all watches: tells each when a bookmark is due, and when its time is over. Nothing ticks per watch or per
// logical cluster.

/** A watch as the clock knows it. */
export interface Clocked {
  /** When it is over: `performance.now()` then. */
  readonly endsAt: number
  bookmarkDue(): void
  timeIsOver(): void
}

/** Watches are told in so many groups, one after the other: not all bookmarks are due at once. */
const groupCount = 60

export class WatchClock implements Disposable {
  readonly #groups: readonly Set<Clocked>[] = Array.from({ length: groupCount }, () => new Set<Clocked>())
  /** Those that are over before their group's next turn. */
  readonly #ending = new Map<Clocked, NodeJS.Timeout>()
  readonly #intervalMs: number
  readonly #timer: NodeJS.Timeout
  #at = 0
  #size = 0

  /** @param intervalMs between bookmarks of one watch; a real server sends about one a minute. */
  constructor({ intervalMs = 60_000 }: { intervalMs?: number } = {}) {
    this.#intervalMs = intervalMs
    this.#timer = setInterval(() => this.#tick(), intervalMs / groupCount)
    this.#timer.unref()
  }

  /** From now on it is told, until it leaves; first after a whole interval. */
  add(watch: Clocked): void {
    this.#groups[this.#at]?.add(watch)
    this.#size++
    this.#mindEnd(watch)
  }

  /** Tells it no more. Leaving twice is harmless. */
  remove(watch: Clocked): void {
    clearTimeout(this.#ending.get(watch))
    this.#ending.delete(watch)
    for (const group of this.#groups) {
      if (!group.delete(watch)) continue
      this.#size--
      return
    }
  }

  get watches(): number {
    return this.#size
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    for (const timer of this.#ending.values()) clearTimeout(timer)
    this.#ending.clear()
    for (const group of this.#groups) group.clear()
    this.#size = 0
  }

  #tick(): void {
    this.#at = (this.#at + 1) % groupCount
    for (const watch of this.#groups[this.#at] ?? []) {
      watch.bookmarkDue()
      this.#mindEnd(watch)
    }
  }

  #mindEnd(watch: Clocked): void {
    const leftMs = watch.endsAt - performance.now()
    if (leftMs > this.#intervalMs * 2 || this.#ending.has(watch)) return
    const timer = setTimeout(() => {
      this.#ending.delete(watch)
      watch.timeIsOver()
    }, leftMs)
    this.#ending.set(watch, timer)
  }
}
