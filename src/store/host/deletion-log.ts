// Deletions observed since this process follows the host, which does not report past deletions.
import type { ClusterId, Revision } from '../../apimachinery/meta/index.ts'
import type { StoreEvent } from '../store.ts'

export type Deletion = Extract<StoreEvent, { type: 'delete' }>

const maxDeletions = 50_000
const maxBytes = 32 * 1024 * 1024

/** Bounded; the oldest are dropped first and `floor` is the revision of the last dropped one. */
export class DeletionLog {
  #deletions: Deletion[] = []
  #bytes = 0
  #floor = 0

  /** Forgets all deletions up to this revision, because some of them are unknown. */
  start(revision: Revision): void {
    this.#floor = revision
    this.#deletions = []
    this.#bytes = 0
  }

  add(deletion: Deletion): void {
    this.#deletions.push(deletion)
    this.#bytes += sizeOf(deletion)
    if (this.#deletions.length > maxDeletions || this.#bytes > maxBytes) this.#forgetHalf()
  }

  /** Deletions after `since`, oldest first; undefined if some of them are no longer known. */
  after(scope: { cluster: ClusterId; resource: string }, since: Revision): readonly Deletion[] | undefined {
    if (since < this.#floor) return undefined
    return this.#deletions.filter(
      ({ key, revision }) => revision > since && key.cluster === scope.cluster && key.resource === scope.resource,
    )
  }

  #forgetHalf(): void {
    const forgotten = this.#deletions.splice(0, Math.ceil(this.#deletions.length / 2))
    for (const deletion of forgotten) this.#bytes -= sizeOf(deletion)
    this.#floor = forgotten.at(-1)?.revision ?? this.#floor
    // Several deletions may share one revision: drop them together, or the rest would be incomplete.
    this.#deletions = this.#deletions.filter(({ revision }) => revision > this.#floor)
  }
}

function sizeOf({ previous }: Deletion): number {
  return 200 + (previous?.value.length ?? 0)
}
