// Counts the requests and open watches of users by logical cluster, for bills. A logical cluster takes memory here only
// after a request, until the next `take`, and while it has open watches.
import type { ClusterId } from '#apimachinery/meta/index.ts'

/** What was counted since the last time. */
export interface Metered {
  requests: number
  watchSeconds: number
}

interface OpenWatches {
  count: number
  /** Monotonic milliseconds until which the time of these watches is counted. */
  countedAt: number
  seconds: number
}

export class UsageMeter {
  readonly #now: () => number
  readonly #requests = new Map<ClusterId, number>()
  readonly #watches = new Map<ClusterId, OpenWatches>()

  /** `now`: monotonic milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  request(id: ClusterId): void {
    this.#requests.set(id, (this.#requests.get(id) ?? 0) + 1)
  }

  /** Counts a watch until the returned function is called. */
  watch(id: ClusterId): () => void {
    const watches = this.#counted(id)
    watches.count++
    this.#watches.set(id, watches)
    let isOpen = true
    return () => {
      if (!isOpen) return
      isOpen = false
      this.#counted(id).count--
    }
  }

  /** What was counted since the last call, by logical cluster. */
  take(): Map<ClusterId, Metered> {
    const taken = new Map<ClusterId, Metered>()
    for (const [id, requests] of this.#requests) taken.set(id, { requests, watchSeconds: 0 })
    this.#requests.clear()
    for (const id of [...this.#watches.keys()]) {
      const watches = this.#counted(id)
      const metered = taken.get(id) ?? { requests: 0, watchSeconds: 0 }
      metered.watchSeconds = watches.seconds
      taken.set(id, metered)
      watches.seconds = 0
      if (watches.count === 0) this.#watches.delete(id)
    }
    return taken
  }

  /** Requests since the last call of `take`, by logical cluster. */
  get requests(): ReadonlyMap<ClusterId, number> {
    return this.#requests
  }

  /** Open watches of users of a logical cluster. */
  watchesOf(id: ClusterId): number {
    return this.#watches.get(id)?.count ?? 0
  }

  #counted(id: ClusterId): OpenWatches {
    const now = this.#now()
    const watches = this.#watches.get(id) ?? { count: 0, countedAt: now, seconds: 0 }
    watches.seconds += (watches.count * (now - watches.countedAt)) / 1000
    watches.countedAt = now
    return watches
  }
}
