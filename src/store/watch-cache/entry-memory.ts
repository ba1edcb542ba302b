// The form of objects in memory: packed if nobody reads them, else whole, because unpacking an object costs a list more
// than all its other work for the object.
import { PendingEntries, type PackableEntry } from './pending-entries.ts'

/** A lossless compression of the bytes of objects. */
export interface Packing {
  /** Returns a shorter form, or the same bytes, which then stay whole. */
  pack(bytes: Uint8Array): Uint8Array
  /** Restores the bytes. `size` is their length. */
  unpack(bytes: Uint8Array, size: number): Uint8Array
}

interface EntryMemoryOptions extends Packing {
  /** Maximum size of all entries together that are whole but could be packed, in bytes. Default 32 MiB. */
  readonly maxWholeBytes?: number
  /** An entry stays whole for this long after it was written or read. Default 4 s. */
  readonly idleMs?: number
}

/** Number of clock ticks in one idle time; the times of reads are counted in ticks. */
const idleTicks = 8
/** Number of entries packed in one pass, which takes some 0.5 ms, and the milliseconds between two passes. */
const [packedPerPass, passMs] = [200, 20]

/** The whole entries. Their size is bounded, so that a tenant with many reads cannot hold more than `maxWholeBytes`. */
export class EntryMemory implements Disposable {
  readonly #options: EntryMemoryOptions
  readonly #maxWholeBytes: number
  readonly #idleMs: number
  readonly #pending = new PendingEntries()
  #timer: NodeJS.Timeout | undefined
  /** The current tick; it is not updated while every entry is packed. */
  tick = 0

  constructor({ maxWholeBytes = 32 * 1024 * 1024, idleMs = 4000, ...options }: EntryMemoryOptions) {
    this.#options = options
    this.#maxWholeBytes = maxWholeBytes
    this.#idleMs = idleMs
    this.#advance()
  }

  /** Adds a whole entry. Packs it at once if the whole entries have reached their limit. */
  add(entry: PackableEntry): void {
    if (this.admit(entry)) entry.readAt = this.tick
    else entry.pack()
  }

  /** Whether this entry may become whole. If so, it is packed again when nobody reads it any more. */
  admit(entry: PackableEntry): boolean {
    if (this.#pending.bytes + entry.size > this.#maxWholeBytes) return false
    this.#pending.push(entry, this.tick)
    this.#timer ??= this.#later(this.#idleMs)
    return true
  }

  pack(bytes: Uint8Array): Uint8Array {
    return this.#options.pack(bytes)
  }

  unpack(bytes: Uint8Array, size: number): Uint8Array {
    return this.#options.unpack(bytes, size)
  }

  /**
   * Whether a packed entry is read often enough to become whole: it is read now, and was last read at tick `readAt`.
   */
  isReadAgain(readAt: number): boolean {
    this.#advance()
    return this.tick - readAt <= idleTicks
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }

  #later(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#packIdle(), ms).unref()
  }

  #advance(): void {
    this.tick = Math.floor((performance.now() * idleTicks) / this.#idleMs)
  }

  #packIdle(): void {
    this.#advance()
    const idleSince = this.tick - idleTicks
    this.#pending.packIdle(idleSince, packedPerPass)
    const { oldest } = this.#pending
    if (oldest === undefined) this.#timer = undefined
    else this.#timer = this.#later(oldest <= idleSince ? passMs : this.#idleMs / idleTicks)
  }
}
