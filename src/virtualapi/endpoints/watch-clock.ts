// One timer for all watches: tells each when a bookmark is due. Nothing ticks per watch or per logical cluster.

export class WatchClock implements Disposable {
  private readonly listeners = new Set<() => void>()
  private readonly timer: NodeJS.Timeout

  /** @param intervalMs between bookmarks of one watch; a real server sends about one a minute. */
  constructor({ intervalMs = 60_000 }: { intervalMs?: number } = {}) {
    this.timer = setInterval(() => {
      for (const listener of this.listeners) listener()
    }, intervalMs)
    this.timer.unref()
  }

  /** Calls `listener` at every tick until the result is called. */
  onTick(listener: () => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  get watches(): number {
    return this.listeners.size
  }

  [Symbol.dispose](): void {
    clearInterval(this.timer)
    this.listeners.clear()
  }
}
