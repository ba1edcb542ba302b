// An object in memory.
import type { Revision } from '../../apimachinery/meta/index.ts'
import type { ObjectKey } from '../store.ts'
import type { Entry, EntryFacts } from './hub.ts'

/** Keeps the bytes; parses them only on first need. */
export class StoredEntry implements Entry {
  readonly key: ObjectKey
  readonly revision: Revision
  readonly createRevision: Revision
  readonly bytes: Uint8Array
  readonly base: boolean
  #facts: EntryFacts | ((bytes: Uint8Array) => EntryFacts)

  constructor(of: Omit<Entry, 'facts'>, readFacts: (bytes: Uint8Array) => EntryFacts) {
    this.key = of.key
    this.revision = of.revision
    this.createRevision = of.createRevision
    this.bytes = of.bytes
    this.base = of.base
    this.#facts = readFacts
  }

  get facts(): EntryFacts {
    if (typeof this.#facts === 'function') this.#facts = this.#facts(this.bytes)
    return this.#facts
  }
}
