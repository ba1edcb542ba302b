// The members that an object of a logical cluster names: what does not name a member does not concern its syncer.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { finalizingMembers, memberStatusesOf, placedOn } from '#crds/index.ts'
import type { CachedObject } from './resources.ts'

/** Objects of informers do not change, and the syncers of all members ask the same of each. */
const known = new WeakMap<CachedObject, ReadonlySet<string>>()

/** Those with a decision of the scheduler, the finalizer of a syncer or the report of a member. */
export function namedMembers(object: CachedObject): ReadonlySet<string> {
  let named = known.get(object)
  if (named === undefined) {
    const decided = Object.keys(placedOn(object as KubeObject))
    const reported = Object.keys(memberStatusesOf(object as KubeObject))
    named = new Set([...decided, ...finalizingMembers(object), ...reported])
    known.set(object, named)
  }
  return named
}
