// Objects that nobody reads are kept packed, the others whole: unpacking costs a list more than all else it does per
// object.
import { PendingEntries, type PackableEntry } from './pending-entries.ts'

/** How bytes of objects become smaller, and the same as before again. */
export interface Packing {
  /** May return the same bytes: then they stay as they are. */
  pack(bytes: Uint8Array): Uint8Array
  /** `size`: of the result. */
  unpack(bytes: Uint8Array, size: number): Uint8Array
}

interface EntryMemoryOptions extends Packing {
  /** Bytes of all entries together that are whole but could be packed. Default 32 MiB. */
  readonly maxWholeBytes?: number
  /** An entry stays whole for this long after it was written or read. Default 4 s. */
  readonly idleMs?: number
}

/** Ticks of the clock by which reads are dated, in an idle time. */
const idleTicks = 8
/** Entries packed in one pass, some 0.5 ms, and the time between two passes. */
const [packedPerPass, passMs] = [200, 20]

/** Entries that are whole: bounded, so that a tenant with many reads cannot hold more than `maxWholeBytes`. */
export class EntryMemory implements Disposable {
  readonly #options: EntryMemoryOptions
  readonly #maxWholeBytes: number
  readonly #idleMs: number
  readonly #pending = new PendingEntries()
  #timer: NodeJS.Timeout | undefined
  /** Ticks until now; behind while every entry is packed. */
  tick = 0

  constructor({ maxWholeBytes = 32 * 1024 * 1024, idleMs = 4000, ...options }: EntryMemoryOptions) {
    this.#options = options
    this.#maxWholeBytes = maxWholeBytes
    this.#idleMs = idleMs
    this.#advance()
  }

  /** Adds an entry that is whole. Packs it at once if too many are. */
  add(entry: PackableEntry): void {
    if (this.admit(entry)) entry.readAt = this.tick
    else entry.pack()
  }

  /** Whether this entry may become whole; then it is packed again when nobody reads it any more. */
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

  /** Whether a packed entry that is read now, and was at `readAt`, is read often enough to become whole. */
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
