// A bound on bytes per second.

/** Longest time that may be used at once after a pause, seconds. */
const burstSeconds = 0.25

export class TokenBucket {
  readonly #perSecond: number
  #tokens: number
  #at = performance.now()

  constructor(bytesPerSecond: number) {
    this.#perSecond = bytesPerSecond
    this.#tokens = bytesPerSecond * burstSeconds
  }

  /** Takes this many bytes; resolves when they may be sent. The account may go below zero by one frame. */
  take(bytes: number): Promise<void> | undefined {
    const now = performance.now()
    this.#tokens = Math.min(this.#perSecond * burstSeconds, this.#tokens + ((now - this.#at) / 1000) * this.#perSecond)
    this.#at = now
    this.#tokens -= bytes
    if (this.#tokens >= 0) return undefined
    return new Promise((resolve) => setTimeout(resolve, (-this.#tokens / this.#perSecond) * 1000))
  }
}
