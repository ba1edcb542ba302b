// A bounded queue of batches between a producer that never waits and one consumer that may be slow.

export interface BatchQueueOptions {
  /** Maximum sum of the sizes of waiting batches; beyond it the queue fails. */
  readonly maxSize: number
  /** Makes the error with which the consumer's iteration rejects after an overflow. */
  readonly overflow: () => Error
  /** Called once, when the queue ends for whatever reason. */
  readonly onEnd?: () => void
}

/**
 * A first-in first-out queue for one consumer. On overflow it drops the waiting batches and rejects the consumer; after
 * `end` the consumer still reads the waiting batches and then finishes.
 */
export class BatchQueue<T> implements AsyncIterable<readonly T[]> {
  readonly #options: BatchQueueOptions
  #waiting: { batch: readonly T[]; size: number }[] = []
  #size = 0
  #state: 'open' | 'ended' | { failed: Error } = 'open'
  #reader: PromiseWithResolvers<IteratorResult<readonly T[], undefined>> | undefined

  constructor(options: BatchQueueOptions) {
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** Hands a batch to a waiting consumer at once, else keeps it. Does nothing once ended. */
  push(batch: readonly T[], size: number): void {
    if (this.#state !== 'open' || batch.length === 0) return
    const reader = this.#reader
    if (reader) {
      this.#reader = undefined
      reader.resolve({ value: batch, done: false })
      return
    }
    // A single batch always fits, however large: it is already in memory.
    if (this.#size > 0 && this.#size + size > this.#options.maxSize) {
      this.fail(this.#options.overflow())
      return
    }
    this.#waiting.push({ batch, size })
    this.#size += size
  }

  /** No more batches follow; waiting ones can still be read. */
  end(): void {
    if (this.#state !== 'open') return
    this.#state = 'ended'
    this.#reader?.resolve({ value: undefined, done: true })
    this.#reader = undefined
    this.#options.onEnd?.()
  }

  /** Drops the waiting batches; the consumer's next step rejects with `error`. */
  fail(error: Error): void {
    if (this.#state !== 'open') return
    this.#waiting = []
    this.#size = 0
    if (this.#reader) {
      this.#state = 'ended'
      this.#reader.reject(error)
      this.#reader = undefined
    } else this.#state = { failed: error }
    this.#options.onEnd?.()
  }

  [Symbol.asyncIterator](): AsyncIterator<readonly T[], undefined> {
    return {
      next: () => this.#next(),
      return: () => {
        this.#waiting = []
        this.#size = 0
        this.end()
        return Promise.resolve({ value: undefined, done: true })
      },
    }
  }

  #next(): Promise<IteratorResult<readonly T[], undefined>> {
    const next = this.#waiting.shift()
    if (next) {
      this.#size -= next.size
      return Promise.resolve({ value: next.batch, done: false })
    }
    if (this.#state === 'ended') return Promise.resolve({ value: undefined, done: true })
    if (this.#state !== 'open') {
      const { failed } = this.#state
      this.#state = 'ended'
      return Promise.reject(failed)
    }
    if (this.#reader) return Promise.reject(new Error('a batch queue has one consumer'))
    this.#reader = Promise.withResolvers()
    return this.#reader.promise
  }
}
