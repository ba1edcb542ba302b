// The members that an object of a logical cluster names. An object that does not name a member does not concern the
// syncer of that member.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { finalizingMembers, memberAnnotation, memberStatusesOf, placedOn } from '#crds/index.ts'
import { isOrphanIn } from './orphans.ts'
import type { CachedObject } from './resources.ts'

/** The names found for each object: objects of informers do not change, and the syncers of all members ask for each. */
const known = new WeakMap<CachedObject, ReadonlySet<string>>()

/**
 * The members in the scheduler's decision, the members with a finalizer or a report on the object, and the member that
 * made it if it is an orphan.
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
