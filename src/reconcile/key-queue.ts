// The queue between watches and workers. It holds keys, not events: ten changes are one visit. A key is with one worker
// at a time; what changes meanwhile brings it back once that worker is done. Bounded by the number of objects there are.
import { FairQueue } from './fair-queue.ts'
import { systemTimers, type Timers } from './timers.ts'

export interface KeyQueue extends Disposable {
  /** Asks for a visit now. Wakes a key that waits. */
  add(key: string): void
  /** Asks for a visit in `ms` milliseconds; the earliest wish counts. */
  addAfter(key: string, ms: number): void
  /** The next key, which is the caller's until done(). Rejects with signal.reason. */
  take(signal: AbortSignal): Promise<string>
  /** Gives a key back. `failed` brings it again after its backoff, which starts over with the next `ok`. */
  done(key: string, outcome: 'ok' | 'failed'): void
  /** How often in a row this key failed. */
  failures(key: string): number
  /** Keys that wait for a worker, without those that wait for their time. */
  readonly length: number
}

export interface KeyQueueOptions {
  /** Backoff of one key: doubled with each failure, half of it random. Default 50 ms to 60 s. */
  readonly firstMs?: number
  readonly maxMs?: number
  /** On whose account a key is visited; those with keys that wait are taken from in rotation. Default: one for all. */
  readonly fairnessKey?: (key: string) => string
  readonly timers?: Timers
  /** In [0, 1). Default Math.random. */
  readonly random?: () => number
}

interface Waiter {
  resolve(key: string): void
}

interface Delay {
  readonly at: number
  readonly cancel: () => void
  /** Waits only because of a failure: moot once a visit succeeded. */
  readonly retry: boolean
}

/** A queue of keys. Dispose of it to forget what waits for its time. */
export function createKeyQueue(options: KeyQueueOptions = {}): KeyQueue {
  return new Queue(options)
}

class Queue implements KeyQueue {
  readonly #options: Required<Omit<KeyQueueOptions, 'fairnessKey'>>
  readonly #ready: FairQueue
  readonly #taken = new Set<string>()
  /** Asked for while taken. */
  readonly #again = new Set<string>()
  readonly #delays = new Map<string, Delay>()
  readonly #failures = new Map<string, number>()
  readonly #waiters = new Set<Waiter>()

  constructor({
    firstMs = 50,
    maxMs = 60_000,
    fairnessKey = () => '',
    timers = systemTimers,
    random = Math.random,
  }: KeyQueueOptions) {
    this.#options = { firstMs, maxMs, timers, random }
    this.#ready = new FairQueue(fairnessKey)
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
