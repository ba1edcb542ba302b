// Budgets per logical cluster, so that one tenant's storm is the others' calm. Counters only: nothing is kept for a
// logical cluster that asks for nothing.
import { tooManyRequests } from '../../apimachinery/status/index.ts'

export interface FairnessLimits {
  /** Requests of one logical cluster under way at once, watches apart. Default 200. */
  readonly requests?: number
  /** Open watches of one logical cluster. Default 5000. */
  readonly watches?: number
  /** Requests with large bodies of one logical cluster under way at once: reading one holds up everybody. Default 2. */
  readonly largeRequests?: number
  /** Requests of all logical clusters under way at once. Default 2000. */
  readonly allRequests?: number
  /** Open watches of all logical clusters: some 30 KiB of memory each. Default 50,000. */
  readonly allWatches?: number
  /** Bytes of large answers of one logical cluster that its clients have not taken yet. Default 128 MiB. */
  readonly answerBytes?: number
  /** The same of all logical clusters. Default 1 GiB. */
  readonly allAnswerBytes?: number
}

const MiB = 1024 * 1024

export class Fairness {
  private readonly limits: Required<FairnessLimits>
  private readonly requests = new Map<string, number>()
  private readonly watches = new Map<string, number>()
  private readonly large = new Map<string, number>()
  private readonly answers = new Map<string, number>()
  private readonly all = { request: 0, watch: 0, large: 0 }
  private allAnswers = 0

  constructor({
    requests = 200,
    watches = 5000,
    largeRequests = 2,
    allRequests = 2000,
    allWatches = 50_000,
    answerBytes = 128 * MiB,
    allAnswerBytes = 1024 * MiB,
  }: FairnessLimits = {}) {
    this.limits = { requests, watches, largeRequests, allRequests, allWatches, answerBytes, allAnswerBytes }
  }

  /**
   * Takes room for an answer until it is taken; give it back by calling the result. Throws 429 with Retry-After when
   * there is none. The only answer of a logical cluster always has room, however large.
   */
  hold(flow: string, bytes: number): () => void {
    const held = this.answers.get(flow) ?? 0
    const { answerBytes, allAnswerBytes } = this.limits
    if (held > 0 && (held + bytes > answerBytes || this.allAnswers + bytes > allAnswerBytes))
      throw tooManyRequests('too many large answers of this logical cluster are not read yet, please try again later')
    this.answers.set(flow, held + bytes)
    this.allAnswers += bytes
    let left = false
    return () => {
      if (left) return
      left = true
      this.allAnswers -= bytes
      const now = (this.answers.get(flow) ?? bytes) - bytes
      if (now === 0) this.answers.delete(flow)
      else this.answers.set(flow, now)
    }
  }

  /** Takes a place; give it back by calling the result. Throws 429 with Retry-After when there is none. */
  enter(flow: string, kind: 'request' | 'watch' | 'large'): () => void {
    const { requests, watches, largeRequests, allRequests, allWatches } = this.limits
    const { counts, limit, most, what } = {
      request: { counts: this.requests, limit: requests, most: allRequests, what: 'requests' },
      watch: { counts: this.watches, limit: watches, most: allWatches, what: 'watches' },
      large: { counts: this.large, limit: largeRequests, most: Infinity, what: 'requests with large bodies' },
    }[kind]
    const current = counts.get(flow) ?? 0
    if (current >= limit || this.all[kind] >= most)
      throw tooManyRequests(`too many ${what} of this logical cluster under way, please try again later`)
    counts.set(flow, current + 1)
    this.all[kind]++
    let left = false
    return () => {
      if (left) return
      left = true
      const now = (counts.get(flow) ?? 1) - 1
      if (now === 0) counts.delete(flow)
      else counts.set(flow, now)
      this.all[kind]--
    }
  }
}
