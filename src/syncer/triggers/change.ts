// A change of an object in a cache, and the facts that several triggers read in it.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Change } from '#client/index.ts'
import type { CachedObject } from '#syncer/context/resources.ts'

export type ObjectChange = Change<KubeObject>

/** The object after the change, or before if it has gone. */
export function objectOf({ before, after }: ObjectChange): CachedObject | undefined {
  return after ?? before
}

/** True once the object is being deleted. */
export function isEnding(object: ObjectChange['after']): boolean {
  return object?.metadata.deletionTimestamp !== undefined
}
