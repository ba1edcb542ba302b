// The buckets that this process serves, and the running requests of each bucket.
import type { Clock } from '#async/index.ts'
import { bucketCount } from './assign-buckets.ts'

/** A request's permission to read and write its bucket. */
export interface Tenure {
  /**
   * Whether the bucket was held without a break since the request entered, and is held now. Check this before every
   * response.
   */
  isValid(): boolean
  /** Ends the tenure after the response. Call this once. */
  leave(): void
}

/** The tenures of this process. All of them end with the Lease, by this process's own monotonic clock. */
export class Tenures {
  readonly #clock: Clock
  /** The number of each bucket's current tenure, counted over all buckets; 0 if the bucket is not held. */
  readonly #terms = new Float64Array(bucketCount)
  /** For each bucket, 1 if no more requests may enter. */
  readonly #closed = new Uint8Array(bucketCount)
  readonly #requests = new Uint32Array(bucketCount)
  #lastTerm = 0
  #validUntil = -Infinity
  #drained: (() => void) | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Milliseconds for which the Lease certainly lasts; 0 if it may have ended. */
  get leftMs(): number {
    return Math.max(0, this.#validUntil - this.#clock.monotonic())
  }

  /** Sets the end of the Lease, a time of the monotonic clock. */
  extend(until: number): void {
    this.#validUntil = until
  }

  /** Moves the end of the Lease to this time of the monotonic clock, unless it ends earlier. */
  shorten(until: number): void {
    this.#validUntil = Math.min(this.#validUntil, until)
  }

  has(bucket: number): boolean {
    return this.#terms[bucket] !== 0
  }

  /** Whether the bucket is held and the Lease has not ended. */
  isHeld(bucket: number): boolean {
    return this.has(bucket) && this.leftMs > 0
  }

  /** Lets a request enter; undefined if this process may not serve the bucket now. */
  enter(bucket: number): Tenure | undefined {
    const term = this.#terms[bucket] ?? 0
    if (term === 0 || this.#closed[bucket] === 1 || this.leftMs === 0) return undefined
    this.#requests[bucket] = (this.#requests[bucket] ?? 0) + 1
    return {
      isValid: () => this.#terms[bucket] === term && this.leftMs > 0,
      leave: () => {
        this.#requests[bucket] = (this.#requests[bucket] ?? 0) - 1
        if (this.#requests[bucket] === 0) this.#drained?.()
      },
    }
  }

  hold(buckets: Iterable<number>): void {
    for (const bucket of buckets) {
      this.#terms[bucket] = ++this.#lastTerm
      this.#closed[bucket] = 0
    }
  }

  /** Ends all tenures of these buckets at once. */
  drop(buckets: Iterable<number>): void {
    for (const bucket of buckets) this.#terms[bucket] = 0
  }

  /** Lets no more requests enter and waits for the running ones, at most `ms` milliseconds. */
  async drain(buckets: readonly number[], ms: number): Promise<void> {
    for (const bucket of buckets) this.#closed[bucket] = 1
    const isEmpty = (): boolean => buckets.every((bucket) => this.#requests[bucket] === 0)
    if (isEmpty()) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#drained = () => {
        if (!isEmpty()) return
        clearTimeout(timer)
        resolve()
      }
    })
    this.#drained = undefined
  }
}
