// One interval timer for all watches: tells each watch when a bookmark is due and when its timeout is over. A watch
// gets a timer of its own only shortly before its end.

/** A watch as the clock sees it. */
export interface TimedWatch {
  /** When the timeout of the watch is over, on the scale of `performance.now()`. */
  readonly endsAt: number
  onBookmarkDue(): void
  onTimeout(): void
}

/** Watches are spread over this many groups, so that not all bookmarks are due at once. */
const groupCount = 60

export class WatchClock implements Disposable {
  readonly #groups: readonly Set<TimedWatch>[] = Array.from({ length: groupCount }, () => new Set<TimedWatch>())
  /** Timers of the watches that end soon. */
  readonly #ending = new Map<TimedWatch, NodeJS.Timeout>()
  readonly #intervalMs: number
  readonly #timer: NodeJS.Timeout
  #group = 0
  #size = 0

  /** `intervalMs`: the time between two bookmarks of a watch; kube-apiserver sends about one a minute. */
  constructor({ intervalMs = 60_000 }: { intervalMs?: number } = {}) {
    this.#intervalMs = intervalMs
    this.#timer = setInterval(() => this.#tick(), intervalMs / groupCount)
    this.#timer.unref()
  }

  /** Adds a watch; its first bookmark is due after a whole interval. */
  add(watch: TimedWatch): void {
    this.#groups[this.#group]?.add(watch)
    this.#size++
    this.#scheduleEnd(watch)
  }

  /** Removes a watch. Removing it twice is harmless. */
  remove(watch: TimedWatch): void {
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
    this.#group = (this.#group + 1) % groupCount
    for (const watch of this.#groups[this.#group] ?? []) {
      watch.onBookmarkDue()
      this.#scheduleEnd(watch)
    }
  }

  #scheduleEnd(watch: TimedWatch): void {
    const leftMs = watch.endsAt - performance.now()
    if (leftMs > this.#intervalMs * 2 || this.#ending.has(watch)) return
    const timer = setTimeout(() => {
      this.#ending.delete(watch)
      watch.onTimeout()
    }, leftMs)
    this.#ending.set(watch, timer)
  }
}
