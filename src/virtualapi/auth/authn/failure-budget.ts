// Limits invalid credentials per source, because checking them may cost a request to a member.
import { LRUCache } from 'lru-cache'
import { tooManyRequests } from '#apimachinery/status/index.ts'
import type { Clock } from '#async/index.ts'

/** How many checks of a source may fail at once, and how many it regains each second. */
const burst = 30
const perSecond = 1
/** How many sources are remembered; the sources that were checked longest ago are forgotten. */
const maxSources = 10_000

interface Account {
  left: number
  at: number
}

/** A token bucket per source. A check that succeeds costs nothing in the end. */
export class FailureBudget {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #accounts = new LRUCache<string, Account>({ max: maxSources })

  constructor({ clock }: { clock: Pick<Clock, 'monotonic'> }) {
    this.#clock = clock
  }

  /**
   * Counts a check by `source` as failed until the returned function is called, which takes this back after a success.
   * Throws 429 with Retry-After if too many checks failed.
   */
  spend(source: string): () => void {
    const now = this.#clock.monotonic()
    const { left, at } = this.#accounts.get(source) ?? { left: burst, at: now }
    const regained = Math.min(burst, left + ((now - at) / 1000) * perSecond)
    if (regained < 1) throw tooManyRequests('too many invalid credentials, please try again later')
    const account: Account = { left: regained - 1, at: now }
    this.#accounts.set(source, account)
    return () => {
      const current = this.#accounts.get(source)
      if (current !== undefined) current.left = Math.min(burst, current.left + 1)
    }
  }
}
