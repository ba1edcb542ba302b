// Orphans: what a member made of a workload that was deleted without its dependents (propagation Orphan), or that let
// it go.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Change, Informer } from '#client/index.ts'
import { memberAnnotation, memberStatusAnnotation, placedOnAnnotation, templateAnnotation } from '#crds/index.ts'
import { controllerOf } from './owners.ts'
import type { CachedObject } from './resources.ts'

/**
 * Whether an object upstream is what this member made, and has no controller any more. A ReplicaSet of a history has
 * the reports of several members.
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
/** More deletions that leave dependents than wait for members at a time: the oldest are forgotten. */
const maxOrphaning = 10_000

/**
 * The objects that are being deleted without their dependents. Garbage collection of an ordinary cluster removes the
 * finalizer that says so before the copies in members are gone.
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
