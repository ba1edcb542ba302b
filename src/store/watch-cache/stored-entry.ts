// An object in memory.
import type { Revision } from '#apimachinery/meta/index.ts'
import type { ObjectKey } from '#store/store.ts'
import type { EntryMemory } from './entry-memory.ts'
import type { Entry, EntryFacts } from './watch-cache.ts'
import type { PackableEntry } from './pending-entries.ts'

/** Keeps the bytes, packed while nobody reads them; parses them only on first need. */
export class StoredEntry implements Entry, PackableEntry {
  readonly key: ObjectKey
  readonly revision: Revision
  readonly createRevision: Revision
  readonly size: number
  readonly base: boolean
  /** The tick of EntryMemory when it was last read or written. */
  readAt = 0
  /** The bytes, shorter than `size` while they are packed. */
  #bytes: Uint8Array
  #facts: EntryFacts | ((bytes: Uint8Array) => EntryFacts)
  #memory: EntryMemory | undefined

  constructor(of: Omit<Entry, 'facts' | 'size' | 'beginning'>, readFacts: (bytes: Uint8Array) => EntryFacts) {
    this.key = of.key
    this.revision = of.revision
    this.createRevision = of.createRevision
    this.#bytes = of.bytes
    this.size = this.#bytes.length
    this.base = of.base
    this.#facts = readFacts
  }

  get bytes(): Uint8Array {
    const memory = this.#memory
    if (memory === undefined) return this.#bytes
    if (this.#bytes.length < this.size) return this.#unpacked(memory)
    this.readAt = memory.tick
    return this.#bytes
  }

  get beginning(): Uint8Array {
    return this.#bytes
  }

  get facts(): EntryFacts {
    if (typeof this.#facts === 'function') this.#facts = this.#facts(this.bytes)
    return this.#facts
  }

  /** From now on, packs the entry while nobody reads it. */
  packIn(memory: EntryMemory): void {
    this.#memory = memory
    memory.add(this)
  }

  pack(): void {
    if (this.#memory !== undefined) this.#bytes = this.#memory.pack(this.#bytes)
  }

  /** Call this when the entry was replaced or deleted: it is then not worth packing. */
  leave(): void {
    if (this.#bytes.length === this.size) this.#memory = undefined
  }

  #unpacked(memory: EntryMemory): Uint8Array {
    const whole = memory.unpack(this.#bytes, this.size)
    if (memory.isReadAgain(this.readAt) && memory.admit(this)) this.#bytes = whole
    this.readAt = memory.tick
    return whole
  }
}
