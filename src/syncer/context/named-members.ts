// The members that an object of a logical cluster names: what does not name a member does not concern its syncer.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { finalizingMembers, memberAnnotation, memberStatusesOf, placedOn } from '#crds/index.ts'
import { isOrphanIn } from './orphans.ts'
import type { CachedObject } from './resources.ts'

/** Objects of informers do not change, and the syncers of all members ask the same of each. */
const known = new WeakMap<CachedObject, ReadonlySet<string>>()

/**
 * Those with a decision of the scheduler, the finalizer of a syncer or the report of a member, and that of an orphan.
 */
export function namedMembers(object: CachedObject): ReadonlySet<string> {
  let named = known.get(object)
  if (named === undefined) {
    const decided = Object.keys(placedOn(object as KubeObject))
    const reported = Object.keys(memberStatusesOf(object as KubeObject))
    const maker = object.metadata.annotations?.[memberAnnotation]
    const orphaned = maker !== undefined && isOrphanIn(object, maker) ? [maker] : []
    named = new Set([...decided, ...finalizingMembers(object), ...reported, ...orphaned])
    known.set(object, named)
  }
  return named
}
