// What stores in a server of the user's have in common: an etcd, a PostgreSQL.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { EventLog } from './event-log.ts'
import { sealedValue, type Seal } from './seal.ts'
import { StoreError, type ObjectKey, type Succession } from './store.ts'

export interface SharedServerOptions {
  /**
   * The directory or installation that the data belong to: another one is refused. A successor with the same name takes
   * over at once.
   */
  readonly owner: string
  /** Seals Secrets. */
  readonly seal: Seal
  /**
   * For an installation of several processes: for how many milliseconds this process may still write to a logical
   * cluster. Absent: this process is the only one, and takes over from any predecessor.
   */
  readonly mayWriteForMs?: (cluster: ClusterId) => number
  /** For a place without data. If it has data, they must have this id. */
  readonly succession?: Succession
  /** True: a place without data is refused. */
  readonly mustExist?: boolean
  readonly onProblem?: (message: string, error: unknown) => void
}

/** The value at rest. Throws StoreError TooLarge if it, or its form at rest, has more bytes than `most`. */
export function atRest(key: ObjectKey, value: Uint8Array, { seal, most }: { seal: Seal; most: number }): Uint8Array {
  const stored = sealedValue(seal, key, value)
  const bytes = Math.max(value.length, stored.length)
  if (bytes <= most) return stored
  const message = `"${key.resource}/${key.name}" has ${bytes} bytes, more than the limit of ${most}`
  throw new StoreError('TooLarge', message)
}

/** Whether the value contains one of the texts; true without texts. */
export function containsAny(value: Uint8Array, texts: readonly string[] | undefined): boolean {
  if (texts === undefined) return true
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  return texts.some((text) => bytes.includes(text))
}

export function closedStore(): StoreError {
  return new StoreError('Closed', 'the store is closed')
}

interface Waiter {
  readonly revision: number
  readonly resolve: (nothing: undefined) => void
  readonly reject: (error: StoreError) => void
}

/** Callers that wait until a log has delivered every event up to a revision. */
export class DeliveryWaiters {
  readonly #log: EventLog
  readonly #waiters = new Set<Waiter>()
  #failure: StoreError | undefined

  constructor(log: EventLog) {
    this.#log = log
  }

  get size(): number {
    return this.#waiters.size
  }

  get failure(): StoreError | undefined {
    return this.#failure
  }

  /** Resolves when every event up to this revision was delivered. `ask` is called if that is not so yet. */
  reached(revision: number, ask: () => void): Promise<undefined> {
    if (this.#log.revision >= revision) return Promise.resolve(undefined)
    if (this.#failure) return Promise.reject(this.#failure)
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    this.#waiters.add({ revision, resolve, reject })
    ask()
    return promise
  }

  /** Call it after events were delivered. */
  tell(): void {
    for (const waiter of this.#waiters) {
      if (waiter.revision > this.#log.revision) continue
      this.#waiters.delete(waiter)
      waiter.resolve(undefined)
    }
  }

  /** Ends the log and all that wait for it. */
  fail(error: StoreError): void {
    this.#failure ??= error
    this.#log.fail(error)
    for (const { reject } of this.#waiters) reject(error)
    this.#waiters.clear()
  }
}
