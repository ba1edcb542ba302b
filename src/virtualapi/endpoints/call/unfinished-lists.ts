// The rest of lists over all logical clusters that clients read page by page. Reading and comparing all objects again
// for each page would cost the square of their number.
import type { Entry } from '#store/watch-cache/index.ts'

export interface UnfinishedListsOptions {
  /** Maximum of bytes of all kept lists together; a list that does not fit is not kept. Default 128 MiB. */
  readonly maxBytes?: number
  /**
   * How long a list is kept, milliseconds. If the client asks for the next page later, all objects are read again, or
   * it must begin anew. Default 15 s.
   */
  readonly idleMs?: number
}

interface Kept {
  readonly entries: readonly Entry[]
  readonly bytes: number
  readonly timer: NodeJS.Timeout
}

export class UnfinishedLists implements Disposable {
  readonly #maxBytes: number
  readonly #idleMs: number
  readonly #lists = new Map<string, Kept>()
  #bytes = 0

  constructor({ maxBytes = 128 * 1024 * 1024, idleMs = 15_000 }: UnfinishedListsOptions = {}) {
    this.#maxBytes = maxBytes
    this.#idleMs = idleMs
  }

  /**
   * Keeps the entries after a page. `list` identifies the next page: by its continue token and the selection of
   * objects.
   */
  keep(list: string, entries: readonly Entry[]): void {
    this.take(list)
    let bytes = 0
    for (const { size } of entries) bytes += size
    if (this.#bytes + bytes > this.#maxBytes) return
    const timer = setTimeout(() => this.take(list), this.#idleMs).unref()
    this.#lists.set(list, { entries, bytes, timer })
    this.#bytes += bytes
  }

  /** Returns and forgets the kept list; undefined if none was kept. */
  take(list: string): readonly Entry[] | undefined {
    const kept = this.#lists.get(list)
    if (kept === undefined) return undefined
    clearTimeout(kept.timer)
    this.#lists.delete(list)
    this.#bytes -= kept.bytes
    return kept.entries
  }

  [Symbol.dispose](): void {
    for (const list of [...this.#lists.keys()]) this.take(list)
  }
}
