// The whole entries, in the order in which they are checked again.

/** An entry that can be packed. */
export interface PackableEntry {
  /** Bytes when it is whole. */
  readonly size: number
  /** The tick of the last read or write. */
  readAt: number
  /** Does nothing if the entry was replaced. */
  pack(): void
}

/** Dropped slots at the front of the queue before it is cut. */
const slack = 1024

export class PendingEntries {
  #queue: { readonly entry: PackableEntry; readonly since: number }[] = []
  #head = 0
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  /** The tick at which the first entry of the queue was last checked; undefined if the queue is empty. */
  get oldest(): number | undefined {
    return this.#queue[this.#head]?.since
  }

  push(entry: PackableEntry, since: number): void {
    this.#queue.push({ entry, since })
    this.#bytes += entry.size
  }

  /** Packs entries that were not read after `idleSince`; checks at most `limit` entries. */
  packIdle(idleSince: number, limit: number): void {
    for (let i = 0; i < limit; i++) {
      const next = this.#queue[this.#head]
      if (next === undefined || next.since > idleSince) break
      this.#head++
      this.#bytes -= next.entry.size
      if (next.entry.readAt > idleSince) this.push(next.entry, next.entry.readAt)
      else next.entry.pack()
    }
    this.#cut()
  }

  #cut(): void {
    if (this.#head === this.#queue.length) this.#queue = []
    else if (this.#head < slack || this.#head * 2 < this.#queue.length) return
    else this.#queue = this.#queue.slice(this.#head)
    this.#head = 0
  }
}
