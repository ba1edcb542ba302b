// What an object in the member says of the upstream object of which it is a copy.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { tryLocator, type Locator } from '#crds/index.ts'
import type { CachedObject } from './resources.ts'

/**
 * The upstream object of a cached object in the member; undefined if it is not a copy. What a controller made is none, even
 * where it took over the annotations of its owner, as ReplicaSets and ControllerRevisions do. A claim takes over none, and a
 * StatefulSet that deletes its claims becomes the controller of those that it finds.
 */
export function locatorOf(object: CachedObject | undefined): Locator | undefined {
  if (object === undefined) return undefined
  const isControlled = object.metadata.ownerReferences?.some((owner) => owner.controller === true) ?? false
  return isControlled && object.kind !== 'PersistentVolumeClaim' ? undefined : tryLocator(object as KubeObject)
}
