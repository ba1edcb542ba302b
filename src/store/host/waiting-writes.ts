// Refuses writes while the host is slow and many wait for it: each takes a slot of its logical cluster's concurrent requests, and
// reads, which need no host, would be refused with them.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { StoreError } from '#store/store.ts'

/** The host is slow when a write has waited for so long. */
const slowMs = 1000
/** Writes that may wait for a slow host: of one logical cluster, and of all. A quarter of what fairness lets in. */
const maxOfCluster = 50
const maxOfAll = 500

export class WaitingWrites {
  readonly #now: () => number
  /** When each began, oldest first. */
  readonly #began = new Set<{ readonly at: number }>()
  readonly #byCluster = new Map<ClusterId, number>()

  /** `now` is a monotonic clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Runs a write. Throws StoreError Busy if it would wait with too many others. */
  async admit<T>(cluster: ClusterId, write: () => Promise<T>): Promise<T> {
    const at = this.#now()
    const waiting = this.#byCluster.get(cluster) ?? 0
    const [oldest] = this.#began
    const isSlow = oldest !== undefined && at - oldest.at >= slowMs
    if (isSlow && (waiting >= maxOfCluster || this.#began.size >= maxOfAll))
      throw new StoreError('Busy', `the host is slow, and ${this.#began.size} writes wait for it`)
    const began = { at }
    this.#began.add(began)
    this.#byCluster.set(cluster, waiting + 1)
    try {
      return await write()
    } finally {
      this.#began.delete(began)
      const left = (this.#byCluster.get(cluster) ?? 1) - 1
      if (left === 0) this.#byCluster.delete(cluster)
      else this.#byCluster.set(cluster, left)
    }
  }
}
