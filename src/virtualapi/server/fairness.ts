// Budgets per logical cluster, so that one tenant's storm is the others' calm. Counters only: nothing is kept for a
// logical cluster that asks for nothing.
import { tooManyRequests } from '../../apimachinery/status/index.ts'

export interface FairnessLimits {
  /** Requests of one logical cluster under way at once, watches apart. Default 200. */
  readonly requests?: number
  /** Open watches of one logical cluster. Default 5000. */
  readonly watches?: number
  /** Requests of all logical clusters under way at once. Default 2000. */
  readonly allRequests?: number
}

export class Fairness {
  private readonly limits: Required<FairnessLimits>
  private readonly requests = new Map<string, number>()
  private readonly watches = new Map<string, number>()
  private all = 0

  constructor({ requests = 200, watches = 5000, allRequests = 2000 }: FairnessLimits = {}) {
    this.limits = { requests, watches, allRequests }
  }

  /** Takes a place; give it back by calling the result. Throws 429 with Retry-After when there is none. */
  enter(flow: string, kind: 'request' | 'watch'): () => void {
    const [counts, limit] =
      kind === 'watch' ? [this.watches, this.limits.watches] : [this.requests, this.limits.requests]
    const current = counts.get(flow) ?? 0
    if (current >= limit || (kind === 'request' && this.all >= this.limits.allRequests))
      throw tooManyRequests(
        `too many ${kind === 'watch' ? 'watches' : 'requests'} of this logical cluster under way, please try again later`,
      )
    counts.set(flow, current + 1)
    if (kind === 'request') this.all++
    let left = false
    return () => {
      if (left) return
      left = true
      const now = (counts.get(flow) ?? 1) - 1
      if (now === 0) counts.delete(flow)
      else counts.set(flow, now)
      if (kind === 'request') this.all--
    }
  }
}
