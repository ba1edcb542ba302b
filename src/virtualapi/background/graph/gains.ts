// Counts how often this process has taken over logical clusters from other processes, and waits for the next time.
import type { ClusterOwnership } from '#virtualapi/request/ownership.ts'

export class Gains implements Disposable {
  readonly #unfollow: () => void
  #count = 0
  #wake: () => void = () => undefined

  constructor(ownership: Pick<ClusterOwnership, 'follow'>) {
    const gained = (): void => {
      this.#count++
      this.#wake()
    }
    this.#unfollow = ownership.follow({ gained, lost: () => undefined })
  }

  get count(): number {
    return this.#count
  }

  /** Resolves once `count` is above `seen`. Rejects with signal.reason. Only one caller may wait at a time. */
  async after(seen: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#count > seen) return
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    this.#wake = () => resolve(undefined)
    try {
      await promise
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  [Symbol.dispose](): void {
    this.#unfollow()
  }
}
