// Orphans: objects that a member made for a workload that was deleted without its dependents (propagation Orphan), or
// that released them.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Change, Informer } from '#client/index.ts'
import { memberAnnotation, memberStatusAnnotation, placedOnAnnotation, templateAnnotation } from '#crds/index.ts'
import { controllerOf } from './owners.ts'
import type { CachedObject } from './resources.ts'

/**
 * Whether the upstream object shows an object that this member made, and has no controller any more. A ReplicaSet of a
 * history is an orphan in each member that reports on it.
 */
export function isOrphanIn(object: CachedObject | undefined, member: string): boolean {
  const { annotations } = object?.metadata ?? {}
  if (object === undefined || annotations === undefined || annotations[placedOnAnnotation] !== undefined) return false
  const isMadeHere =
    annotations[templateAnnotation] === undefined
      ? annotations[memberAnnotation] === member
      : annotations[memberStatusAnnotation(member)] !== undefined
  return isMadeHere && controllerOf(object) === undefined
}

/** The finalizer of a deletion that leaves the dependents. */
export const orphanFinalizer = 'orphan'
/** How many such deletions are remembered, more than wait for members at a time. The oldest are forgotten. */
const maxOrphaning = 10_000

/**
 * The uids of the objects that are being deleted without their dependents. They are remembered because the garbage
 * collector of an ordinary cluster removes the finalizer `orphan` before the copies in members are gone.
 */
export class OrphaningDeletions {
  readonly #uids = new Set<string>()

  constructor(informers: Iterable<Pick<Informer<KubeObject>, 'onChange'>>) {
    for (const informer of informers) informer.onChange((change) => this.#changed(change))
  }

  has(uid: string | undefined): boolean {
    return uid !== undefined && this.#uids.has(uid)
  }

  #changed({ after }: Change<KubeObject>): void {
    const { uid, deletionTimestamp, finalizers } = after?.metadata ?? {}
    if (deletionTimestamp === undefined || uid === undefined || !finalizers?.includes(orphanFinalizer)) return
    this.#uids.add(uid)
    for (const oldest of this.#uids) {
      if (this.#uids.size <= maxOrphaning) break
      this.#uids.delete(oldest)
    }
  }
}
