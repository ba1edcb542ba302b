// The locator of a copy in the member: it names the upstream object.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { tryLocator, type Locator } from '#crds/index.ts'
import { controllerOf } from './owners.ts'
import type { CachedObject } from './resources.ts'

/** Kinds whose controllers give them the annotations of their owners. */
const takeOver: ReadonlySet<string> = new Set(['ReplicaSet', 'ControllerRevision'])

/**
 * The upstream object of a cached object in the member; undefined if it is not a copy. What a controller made is none,
 * even where it took over the annotations of its owner, as ReplicaSets and ControllerRevisions do, which keep them when
 * their owner is deleted without them. A claim takes over none, and a StatefulSet that deletes its claims becomes the
 * controller of those that it finds.
 */
export function locatorOf(object: CachedObject | undefined): Locator | undefined {
  if (object === undefined) return undefined
  if (controllerOf(object) !== undefined && object.kind !== 'PersistentVolumeClaim') return undefined
  const locator = tryLocator(object as KubeObject)
  const isOfOwner = locator?.name !== object.metadata.name && takeOver.has(object.kind)
  return isOfOwner ? undefined : locator
}
