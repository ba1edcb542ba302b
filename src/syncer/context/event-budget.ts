// The budget of Events that the syncers of members may write into one logical cluster: a pod that fails in a loop must
// not fill the store.

interface Account {
  tokens: number
  atMs: number
}

export class EventBudget {
  readonly #accounts = new Map<string, Account>()
  readonly #burst: number
  readonly #perSecond: number

  /** `burst`: Events in a full budget; `perSecond`: Events added per second. Each logical cluster has its own. */
  constructor({ burst = 300, perSecond = 1 }: { burst?: number; perSecond?: number } = {}) {
    this.#burst = burst
    this.#perSecond = perSecond
  }

  /** Takes one Event from the budget of a logical cluster; false if the budget is used up. */
  take(cluster: string, nowMs: number): boolean {
    const account = this.#accounts.get(cluster) ?? { tokens: this.#burst, atMs: nowMs }
    const refilled = account.tokens + (Math.max(0, nowMs - account.atMs) / 1000) * this.#perSecond
    const tokens = Math.min(this.#burst, refilled)
    this.#forgetFull(nowMs)
    this.#accounts.delete(cluster)
    this.#accounts.set(cluster, { tokens: tokens < 1 ? tokens : tokens - 1, atMs: nowMs })
    return tokens >= 1
  }

  /** Forgets accounts that are full again, the least recently used first: an absent account counts as full. */
  #forgetFull(nowMs: number): void {
    for (const [cluster, { tokens, atMs }] of this.#accounts) {
      if (tokens + ((nowMs - atMs) / 1000) * this.#perSecond < this.#burst) return
      this.#accounts.delete(cluster)
    }
  }
}
