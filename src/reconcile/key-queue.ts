// The queue between watches and workers. It holds keys, not events, so ten changes cause one reconcile. Only one worker
// has a key at a time; a change meanwhile adds the key again when that worker is done. Bounded by the number of
// objects.
import { FairQueue } from './fair-queue.ts'

export interface Timers {
  /** Monotonic milliseconds. */
  monotonic(): number
  /** Calls `run` after `ms` milliseconds unless the returned function is called before. */
  after(ms: number, run: () => void): () => void
}

export const systemTimers: Timers = {
  monotonic: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}

export interface KeyQueue extends Disposable {
  /** Asks for a reconcile now, also for a key that waits for its backoff. */
  add(key: string): void
  /** Asks for a reconcile in `ms` milliseconds; of several such calls the earliest time counts. */
  addAfter(key: string, ms: number): void
  /** Takes the next key; the caller must give it back by done(). Rejects with signal.reason. */
  take(signal: AbortSignal): Promise<string>
  /** Gives a key back. `failed` adds it again after a backoff; `ok` resets the backoff. */
  done(key: string, outcome: 'ok' | 'failed'): void
  /** Number of failures of this key in a row. */
  failures(key: string): number
  /** Number of keys that wait for a worker, without those that wait for a time. */
  readonly length: number
}

export interface KeyQueueOptions {
  /** Backoff of one key: doubled with each failure, half of it random. Default 50 ms to 60 s. */
  readonly firstMs?: number
  readonly maxMs?: number
  /**
   * The group of a key, such as its logical cluster: groups with waiting keys are served in rotation. Default: one
   * group.
   */
  readonly fairnessKey?: (key: string) => string
  /**
   * Keys that are taken before the others of their group. There should be few: the other keys wait for them. Default:
   * none.
   */
  readonly isUrgent?: (key: string) => boolean
  readonly timers?: Timers
  /** Returns a random number in [0, 1). Default Math.random. */
  readonly random?: () => number
}

interface Waiter {
  resolve(key: string): void
}

interface Delay {
  readonly at: number
  readonly cancel: () => void
  /** The delay is a backoff after a failure: it is cancelled when a reconcile succeeds. */
  readonly retry: boolean
}

/** A queue of keys. Its disposal forgets everything that waits for a time. */
export function createKeyQueue(options: KeyQueueOptions = {}): KeyQueue {
  return new Queue(options)
}

class Queue implements KeyQueue {
  readonly #options: Required<Omit<KeyQueueOptions, 'fairnessKey' | 'isUrgent'>>
  readonly #ready: FairQueue
  readonly #taken = new Set<string>()
  /** Keys that were added while a worker had them. */
  readonly #again = new Set<string>()
  readonly #delays = new Map<string, Delay>()
  readonly #failures = new Map<string, number>()
  readonly #waiters = new Set<Waiter>()

  constructor({
    firstMs = 50,
    maxMs = 60_000,
    fairnessKey = () => '',
    isUrgent = () => false,
    timers = systemTimers,
    random = Math.random,
  }: KeyQueueOptions) {
    this.#options = { firstMs, maxMs, timers, random }
    this.#ready = new FairQueue(fairnessKey, isUrgent)
  }

  get length(): number {
    return this.#ready.size
  }

  failures(key: string): number {
    return this.#failures.get(key) ?? 0
  }

  add(key: string): void {
    if (this.#taken.has(key)) {
      this.#again.add(key)
      return
    }
    const [waiter] = this.#waiters
    if (waiter === undefined || this.#ready.size > 0) {
      this.#ready.add(key)
      return
    }
    this.#waiters.delete(waiter)
    this.#taken.add(key)
    waiter.resolve(key)
  }

  addAfter(key: string, ms: number): void {
    this.#delay(key, ms, false)
  }

  async take(signal: AbortSignal): Promise<string> {
    signal.throwIfAborted()
    const first = this.#ready.take()
    if (first !== undefined) {
      this.#taken.add(first)
      return first
    }
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const abort = (): void => {
      this.#waiters.delete(waiter)
      reject(signal.reason as Error)
    }
    const waiter: Waiter = {
      resolve: (key) => {
        signal.removeEventListener('abort', abort)
        resolve(key)
      },
    }
    this.#waiters.add(waiter)
    signal.addEventListener('abort', abort, { once: true })
    return await promise
  }

  done(key: string, outcome: 'ok' | 'failed'): void {
    this.#taken.delete(key)
    if (outcome === 'ok') {
      this.#failures.delete(key)
      const delay = this.#delays.get(key)
      if (delay?.retry) this.#forgetDelay(key, delay)
    } else {
      const failures = this.failures(key)
      this.#failures.set(key, failures + 1)
      this.#delay(key, this.#backoff(failures), true)
    }
    if (this.#again.delete(key)) this.add(key)
  }

  [Symbol.dispose](): void {
    for (const [key, delay] of this.#delays) this.#forgetDelay(key, delay)
    this.#ready.clear()
    this.#again.clear()
    this.#failures.clear()
  }

  #backoff(failures: number): number {
    const { firstMs, maxMs, random } = this.#options
    const ms = Math.min(maxMs, firstMs * 2 ** Math.min(failures, 30))
    return ms / 2 + (ms / 2) * random()
  }

  #delay(key: string, ms: number, retry: boolean): void {
    const { timers } = this.#options
    const at = timers.monotonic() + ms
    const before = this.#delays.get(key)
    if (before !== undefined) {
      if (before.at <= at) return
      before.cancel()
    }
    const cancel = timers.after(ms, () => {
      this.#delays.delete(key)
      this.add(key)
    })
    this.#delays.set(key, { at, cancel, retry })
  }

  #forgetDelay(key: string, delay: Delay): void {
    delay.cancel()
    this.#delays.delete(key)
  }
}
