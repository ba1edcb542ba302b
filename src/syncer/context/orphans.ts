// Orphans: objects that a member made for a workload that was deleted without its dependents (propagation Orphan), or
// that released them.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { clusterInKey, type Change, type Informer } from '#client/index.ts'
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
/**
 * How many such deletions are remembered in all: more than wait for members at a time. Beyond them the oldest of the
 * logical cluster with the most is forgotten, so that no tenant makes those of others forgotten.
 */
const maxOrphaning = 10_000

/**
 * The uids of the objects that are being deleted without their dependents. They are remembered because the garbage
 * collector of an ordinary cluster removes the finalizer `orphan` before the copies in members are gone.
 */
export class OrphaningDeletions {
  /** The logical cluster of each uid; the oldest uid first. */
  readonly #clusterOf = new Map<string, string>()
  readonly #countOf = new Map<string, number>()

  constructor(informers: Iterable<Pick<Informer<KubeObject>, 'onChange'>>) {
    for (const informer of informers) informer.onChange((change) => this.#changed(change))
  }

  has(uid: string | undefined): boolean {
    return uid !== undefined && this.#clusterOf.has(uid)
  }

  #changed({ key, after }: Change<KubeObject>): void {
    const { uid, deletionTimestamp, finalizers } = after?.metadata ?? {}
    if (deletionTimestamp === undefined || uid === undefined || !finalizers?.includes(orphanFinalizer)) return
    if (this.#clusterOf.has(uid)) return
    const cluster = clusterInKey(key)
    this.#clusterOf.set(uid, cluster)
    this.#countOf.set(cluster, (this.#countOf.get(cluster) ?? 0) + 1)
    if (this.#clusterOf.size > maxOrphaning) this.#forgetOne()
  }

  #forgetOne(): void {
    let [largest, most] = ['', 0]
    for (const [cluster, count] of this.#countOf) if (count > most) [largest, most] = [cluster, count]
    for (const [uid, cluster] of this.#clusterOf)
      if (cluster === largest) {
        this.#clusterOf.delete(uid)
        break
      }
    if (most > 1) this.#countOf.set(largest, most - 1)
    else this.#countOf.delete(largest)
  }
}
