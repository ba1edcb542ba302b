// Limits invalid credentials per source, because checking them may cost a request to a member.
import { LRUCache } from 'lru-cache'
import { tooManyRequests } from '#apimachinery/status/index.ts'
import type { Clock } from '#async/index.ts'

/** How many sources are remembered; the sources that were checked longest ago are forgotten. */
const maxSources = 10_000

interface Account {
  left: number
  at: number
}

/** A token bucket per source. A check that succeeds costs nothing in the end. */
export class FailureBudget {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #burst: number
  readonly #perSecond: number
  readonly #accounts = new LRUCache<string, Account>({ max: maxSources })

  /** `burst`: how many checks of a source may fail at once, `perSecond`: how many it regains each second. */
  constructor(options: { clock: Pick<Clock, 'monotonic'>; burst?: number; perSecond?: number }) {
    const { clock, burst = 30, perSecond = 1 } = options
    this.#clock = clock
    this.#burst = burst
    this.#perSecond = perSecond
  }

  /**
   * Counts a check by `source` as failed until the returned function is called, which takes this back after a success.
   * Throws 429 with Retry-After if too many checks failed.
   */
  spend(source: string): () => void {
    const now = this.#clock.monotonic()
    const { left, at } = this.#accounts.get(source) ?? { left: this.#burst, at: now }
    const regained = Math.min(this.#burst, left + ((now - at) / 1000) * this.#perSecond)
    if (regained < 1) throw tooManyRequests('too many invalid credentials, please try again later')
    const account: Account = { left: regained - 1, at: now }
    this.#accounts.set(source, account)
    return () => {
      const current = this.#accounts.get(source)
      if (current !== undefined) current.left = Math.min(this.#burst, current.left + 1)
    }
  }
}
