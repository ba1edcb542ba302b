// Limits per logical cluster, so that one tenant's load does not hurt the others. They are only counters: nothing is
// kept for a logical cluster without requests.
import { tooManyRequests, type StatusError } from '#apimachinery/status/index.ts'
import { networkOf } from '#network/listening/index.ts'
import { unitsOfSelector } from './selector-units.ts'

export interface FairnessLimits {
  /** Concurrent requests of one logical cluster, without watches. Default 200. */
  readonly requests?: number
  /** Open watches of one logical cluster. Default 5000. */
  readonly watches?: number
  /** Concurrent requests of one logical cluster with a large body. Default 2. */
  readonly largeRequests?: number
  /** Requests with a large body of one logical cluster that wait; their bodies are not read meanwhile. Default 64. */
  readonly waitingLarge?: number
  /**
   * Requests with a large body of all logical clusters that wait: over HTTP/2, an unread body takes up to 1 MiB.
   * Default 128.
   */
  readonly allWaitingLarge?: number
  /** How long a request with a large body waits at most, milliseconds. Default 15,000. */
  readonly largeWaitMs?: number
  /** Concurrent requests of all logical clusters. Default 2000. */
  readonly allRequests?: number
  /** Requests that wait for a webhook and do not count in `allRequests` meanwhile. Default 10,000. */
  readonly allLent?: number
  /**
   * Open watches of all logical clusters; each takes some 20 KiB of memory, and a watch with long selectors counts for
   * several. Default 50,000.
   */
  readonly allWatches?: number
  /** Concurrent requests without credentials from one address. Default 20. */
  readonly anonymousRequests?: number
  /** Concurrent requests without credentials from all addresses. Default 200. */
  readonly allAnonymousRequests?: number
  /**
   * Bytes of large responses of one logical cluster that its clients have not read yet. Default 128 MiB, or less if the
   * memory is small.
   */
  readonly responseBytes?: number
  /**
   * Bytes of large responses of all logical clusters that clients have not read yet. Default 1 GiB, or less if the
   * memory is small.
   */
  readonly allResponseBytes?: number
  /**
   * The memory of the process, bytes: unread responses of one logical cluster may take a 16th of it, and those of all
   * logical clusters a quarter. Default Infinity.
   */
  readonly memoryBytes?: number
}

const MiB = 1024 * 1024

/** Concurrent requests of one logical cluster, unless the limits say otherwise. */
export const requestsOfCluster = 200

interface Bound {
  readonly kind: 'request' | 'watch' | 'anonymous'
  /** The limit of one flow; `most` is the limit of all flows together. */
  readonly limit: number
  readonly most: number
  readonly what: string
  /** Units that the request or watch counts for. Default 1. */
  readonly units?: number
}

interface Large {
  taken: number
  readonly waiting: (() => void)[]
}

export class Fairness {
  readonly #limits: Required<Omit<FairnessLimits, 'memoryBytes'>>
  readonly #requests = new Map<string, number>()
  readonly #watches = new Map<string, number>()
  /** The long selectors of open watches, by flow and text: equal selectors of a flow are charged once. */
  readonly #selectors = new Map<string, { open: number; readonly release: () => void }>()
  readonly #anonymous = new Map<string, number>()
  readonly #large = new Map<string, Large>()
  #waitingLarge = 0
  readonly #answers = new Map<string, number>()
  readonly #all = { request: 0, watch: 0, anonymous: 0 }
  #allResponses = 0
  #lent = 0

  constructor({
    requests = requestsOfCluster,
    watches = 5000,
    largeRequests = 2,
    waitingLarge = 64,
    allWaitingLarge = 128,
    largeWaitMs = 15_000,
    allRequests = 2000,
    allLent = 10_000,
    allWatches = 50_000,
    anonymousRequests = 20,
    allAnonymousRequests = 200,
    memoryBytes = Infinity,
    responseBytes = Math.min(128 * MiB, memoryBytes / 16),
    allResponseBytes = Math.min(1024 * MiB, memoryBytes / 4),
  }: FairnessLimits = {}) {
    this.#limits = {
      requests,
      watches,
      allRequests,
      allLent,
      allWatches,
      responseBytes,
      allResponseBytes,
      largeRequests,
      waitingLarge,
      allWaitingLarge,
      largeWaitMs,
      anonymousRequests,
      allAnonymousRequests,
    }
  }

  /**
   * Reserves bytes for a large response until the client has read it; the returned function releases them. Throws 429
   * with Retry-After above the limit. The only large response of a logical cluster is always allowed.
   */
  hold(flow: string, bytes: number): () => void {
    const held = this.#answers.get(flow) ?? 0
    const { responseBytes, allResponseBytes } = this.#limits
    if (held > 0 && (held + bytes > responseBytes || this.#allResponses + bytes > allResponseBytes))
      throw tooManyRequests('too many large answers of this logical cluster are not read yet, please try again later')
    this.#answers.set(flow, held + bytes)
    this.#allResponses += bytes
    let released = false
    return () => {
      if (released) return
      released = true
      this.#allResponses -= bytes
      const now = (this.#answers.get(flow) ?? bytes) - bytes
      if (now === 0) this.#answers.delete(flow)
      else this.#answers.set(flow, now)
    }
  }

  /**
   * Waits for a slot for a large body, first come, first served; the returned function releases the slot. The body of a
   * waiting request is not read, so it takes no more memory than the buffers of its connection. Rejects with 429 and
   * Retry-After if too many requests wait or the wait is too long, and with signal.reason when the signal aborts.
   */
  async admitLargeBody(flow: string, signal: AbortSignal): Promise<() => void> {
    const { largeRequests, waitingLarge, allWaitingLarge, largeWaitMs } = this.#limits
    let large = this.#large.get(flow)
    if (large === undefined) this.#large.set(flow, (large = { taken: 0, waiting: [] }))
    if (large.taken < largeRequests) large.taken++
    else {
      if (large.waiting.length >= waitingLarge || this.#waitingLarge >= allWaitingLarge) throw tooManyLarge()
      await this.#wait(large, signal, largeWaitMs)
    }
    return this.#leaveLarge(flow, large)
  }

  async #wait({ waiting }: Large, signal: AbortSignal, ms: number): Promise<void> {
    signal.throwIfAborted()
    const turn = Promise.withResolvers<undefined>()
    const begin = (): void => turn.resolve(undefined)
    // Leave the queue at once: a slot must not be given to a client that is gone.
    const giveUp = (error: Error): void => {
      const at = waiting.indexOf(begin)
      if (at >= 0) waiting.splice(at, 1)
      turn.reject(error)
    }
    const abort = (): void => giveUp(asError(signal.reason))
    const timer = setTimeout(() => giveUp(tooManyLarge()), ms)
    signal.addEventListener('abort', abort, { once: true })
    waiting.push(begin)
    this.#waitingLarge++
    try {
      await turn.promise
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      this.#waitingLarge--
    }
  }

  #leaveLarge(flow: string, large: Large): () => void {
    let released = false
    return () => {
      if (released) return
      released = true
      // The slot goes to the longest waiting request.
      const next = large.waiting.shift()
      if (next !== undefined) next()
      else if (--large.taken === 0) this.#large.delete(flow)
    }
  }

  /** Counts a request or watch until the returned function is called. Throws 429 with Retry-After above the limit. */
  enter(flow: string, kind: 'request' | 'watch'): () => void {
    const { requests, watches, allRequests, allWatches } = this.#limits
    return kind === 'request'
      ? this.#count(this.#requests, flow, { kind, limit: requests, most: allRequests, what: tooManyOf('requests') })
      : this.#count(this.#watches, flow, { kind, limit: watches, most: allWatches, what: tooManyOf('watches') })
  }

  /**
   * Counts a watch with long selectors like `enter`. It counts for several watches, unless an open watch of the flow
   * has equal selectors.
   */
  enterWatch(flow: string, selector: string): () => void {
    const { watches: limit, allWatches: most } = this.#limits
    const bound = { kind: 'watch', limit, most, what: tooManyOf('watches') } as const
    const key = `${flow} ${selector}`
    const leave = this.#count(this.#watches, flow, bound)
    let shared = this.#selectors.get(key)
    try {
      shared ??= { open: 0, release: this.#count(this.#watches, flow, { ...bound, units: unitsOfSelector(selector) }) }
    } catch (error) {
      leave()
      throw error
    }
    const of = shared
    this.#selectors.set(key, of)
    of.open++
    let isOpen = true
    return () => {
      if (!isOpen) return
      isOpen = false
      leave()
      if (--of.open > 0) return
      this.#selectors.delete(key)
      of.release()
    }
  }

  /**
   * The number of open watches and other requests without a deadline of a logical cluster; a watch with long selectors
   * counts for several.
   */
  watchesOf(flow: string): number {
    return this.#watches.get(flow) ?? 0
  }

  /**
   * Lends the place of a request among the requests of all logical clusters to others, while the request waits for a
   * tenant's webhook; within its own logical cluster it keeps its place. The returned function takes the place back,
   * even if all places are taken by then.
   */
  lendPlace(): () => void {
    if (this.#lent >= this.#limits.allLent) return () => undefined
    this.#lent++
    this.#all.request--
    let isBack = false
    return () => {
      if (isBack) return
      isBack = true
      this.#lent--
      this.#all.request++
    }
  }

  /**
   * Counts a request without credentials, a watch too, by the network of its peer's address; otherwise like `enter`.
   */
  enterAnonymous(address: string): () => void {
    const { anonymousRequests: limit, allAnonymousRequests: most } = this.#limits
    const what = 'too many requests without credentials under way'
    return this.#count(this.#anonymous, networkOf(address), { kind: 'anonymous', limit, most, what })
  }

  #count(counts: Map<string, number>, flow: string, { kind, limit, most, what, units = 1 }: Bound): () => void {
    const current = counts.get(flow) ?? 0
    if (current + units > limit || this.#all[kind] + units > most)
      throw tooManyRequests(`${what}, please try again later`)
    counts.set(flow, current + units)
    this.#all[kind] += units
    let released = false
    return () => {
      if (released) return
      released = true
      const now = (counts.get(flow) ?? units) - units
      if (now === 0) counts.delete(flow)
      else counts.set(flow, now)
      this.#all[kind] -= units
    }
  }
}

function tooManyOf(what: string): string {
  return `too many ${what} of this logical cluster under way`
}

function tooManyLarge(): StatusError {
  return tooManyRequests(
    'too many requests with large bodies of this logical cluster under way, please try again later',
  )
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('aborted', { cause: reason })
}
