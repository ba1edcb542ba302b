// What was deleted since we follow the host, which itself tells no deletions of the past.
import type { ClusterId, Revision } from '../../apimachinery/meta/index.ts'
import type { StoreEvent } from '../store.ts'

export type Deletion = Extract<StoreEvent, { type: 'delete' }>

const maxDeletions = 50_000
const maxBytes = 32 * 1024 * 1024

/** Bounded; the oldest are forgotten first and `floor` says up to where. */
export class DeletionLog {
  #deletions: Deletion[] = []
  #bytes = 0
  #floor = 0

  /** Forgets what was before: nothing is known of it, or not enough. */
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

  /** Deletions after `since`, oldest first; undefined where not all of them are known any more. */
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
    // Several may share the revision of a list: none of them is complete then.
    this.#deletions = this.#deletions.filter(({ revision }) => revision > this.#floor)
  }
}

function sizeOf({ previous }: Deletion): number {
  return 200 + (previous?.value.length ?? 0)
}
