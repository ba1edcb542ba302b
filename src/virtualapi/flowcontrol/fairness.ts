// Budgets per logical cluster, so that one tenant's storm is the others' calm. Counters only: nothing is kept for a
// logical cluster that asks for nothing.
import { tooManyRequests, type StatusError } from '../../apimachinery/status/index.ts'

export interface FairnessLimits {
  /** Requests of one logical cluster under way at once, watches apart. Default 200. */
  readonly requests?: number
  /** Open watches of one logical cluster. Default 5000. */
  readonly watches?: number
  /** Requests with large bodies of one logical cluster that are read and answered at once. Default 2. */
  readonly largeRequests?: number
  /** Those that wait until it is their turn; their bodies are not read meanwhile. Default 64. */
  readonly waitingLarge?: number
  /** Of all logical clusters: over HTTP/2 a body that is not read takes up to a mebibyte. Default 128. */
  readonly allWaitingLarge?: number
  /** How long they wait, milliseconds. Default 15,000. */
  readonly largeWaitMs?: number
  /** Requests of all logical clusters under way at once. Default 2000. */
  readonly allRequests?: number
  /** Open watches of all logical clusters: some 20 KiB of memory each. Default 50,000. */
  readonly allWatches?: number
  /** Bytes of large answers of one logical cluster that its clients have not taken yet. Default 128 MiB. */
  readonly answerBytes?: number
  /** The same of all logical clusters. Default 1 GiB. */
  readonly allAnswerBytes?: number
}

const MiB = 1024 * 1024

interface Large {
  taken: number
  readonly waiting: (() => void)[]
}

export class Fairness {
  private readonly limits: Required<FairnessLimits>
  private readonly requests = new Map<string, number>()
  private readonly watches = new Map<string, number>()
  private readonly large = new Map<string, Large>()
  private waitingLarge = 0
  private readonly answers = new Map<string, number>()
  private readonly all = { request: 0, watch: 0 }
  private allAnswers = 0

  constructor({
    requests = 200,
    watches = 5000,
    largeRequests = 2,
    waitingLarge = 64,
    allWaitingLarge = 128,
    largeWaitMs = 15_000,
    allRequests = 2000,
    allWatches = 50_000,
    answerBytes = 128 * MiB,
    allAnswerBytes = 1024 * MiB,
  }: FairnessLimits = {}) {
    this.limits = {
      ...{ requests, watches, allRequests, allWatches, answerBytes, allAnswerBytes },
      ...{ largeRequests, waitingLarge, allWaitingLarge, largeWaitMs },
    }
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

  /**
   * Takes a place for a large body, in the order of asking; give it back by calling the result. Who waits sends no more than
   * fits into the buffers of its connection: so a flood of large bodies costs nobody anything. Rejects 429 with Retry-After
   * where too many wait or it takes too long, and signal.reason.
   */
  async enterLarge(flow: string, signal: AbortSignal): Promise<() => void> {
    const { largeRequests, waitingLarge, allWaitingLarge, largeWaitMs } = this.limits
    let large = this.large.get(flow)
    if (large === undefined) this.large.set(flow, (large = { taken: 0, waiting: [] }))
    if (large.taken < largeRequests) large.taken++
    else {
      if (large.waiting.length >= waitingLarge || this.waitingLarge >= allWaitingLarge) throw tooManyLarge()
      await this.wait(large, signal, largeWaitMs)
    }
    return this.leaveLarge(flow, large)
  }

  private async wait({ waiting }: Large, signal: AbortSignal, ms: number): Promise<void> {
    signal.throwIfAborted()
    const turn = Promise.withResolvers<undefined>()
    const begin = (): void => turn.resolve(undefined)
    // Out of the line at once: a place may not be given to who has gone.
    const giveUp = (error: Error): void => {
      const at = waiting.indexOf(begin)
      if (at >= 0) waiting.splice(at, 1)
      turn.reject(error)
    }
    const abort = (): void => giveUp(asError(signal.reason))
    const timer = setTimeout(() => giveUp(tooManyLarge()), ms)
    signal.addEventListener('abort', abort, { once: true })
    waiting.push(begin)
    this.waitingLarge++
    try {
      await turn.promise
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      this.waitingLarge--
    }
  }

  private leaveLarge(flow: string, large: Large): () => void {
    let left = false
    return () => {
      if (left) return
      left = true
      // The place goes to whoever waits the longest.
      const next = large.waiting.shift()
      if (next !== undefined) next()
      else if (--large.taken === 0) this.large.delete(flow)
    }
  }

  /** Takes a place; give it back by calling the result. Throws 429 with Retry-After when there is none. */
  enter(flow: string, kind: 'request' | 'watch'): () => void {
    const { requests, watches, allRequests, allWatches } = this.limits
    const { counts, limit, most, what } = {
      request: { counts: this.requests, limit: requests, most: allRequests, what: 'requests' },
      watch: { counts: this.watches, limit: watches, most: allWatches, what: 'watches' },
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

function tooManyLarge(): StatusError {
  return tooManyRequests(
    'too many requests with large bodies of this logical cluster under way, please try again later',
  )
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('aborted', { cause: reason })
}
