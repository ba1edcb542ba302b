// Callers that wait for the revision of a deletion, which the host reports on its watch only.
import type { Revision } from '#apimachinery/meta/index.ts'

export interface DeletionWaiter {
  /** The revision that the Record was deleted at: an earlier deletion under the same name is not the one waited for. */
  readonly ifRevision: Revision
  readonly resolve: (revision: Revision) => void
}

export class DeletionWaiters {
  readonly #byRecord = new Map<string, DeletionWaiter[]>()

  /** Returns a function that stops the waiting. */
  add(record: string, waiter: DeletionWaiter): () => void {
    this.#byRecord.set(record, [...(this.#byRecord.get(record) ?? []), waiter])
    return () => this.#keep(record, (other) => other !== waiter)
  }

  has(record: string, resolve: DeletionWaiter['resolve']): boolean {
    return this.#byRecord.get(record)?.some((waiter) => waiter.resolve === resolve) ?? false
  }

  /** Takes out the waiters that a deletion of this Record at this revision answers. */
  take(record: string, revision: Revision): readonly DeletionWaiter[] {
    const taken = (this.#byRecord.get(record) ?? []).filter(({ ifRevision }) => ifRevision < revision)
    if (taken.length > 0) this.#keep(record, (waiter) => !taken.includes(waiter))
    return taken
  }

  /** Names of the Records whose deletion somebody waits for. */
  records(): readonly string[] {
    return [...this.#byRecord.keys()]
  }

  #keep(record: string, wanted: (waiter: DeletionWaiter) => boolean): void {
    const left = this.#byRecord.get(record)?.filter(wanted) ?? []
    if (left.length === 0) this.#byRecord.delete(record)
    else this.#byRecord.set(record, left)
  }
}
