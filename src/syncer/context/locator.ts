// The locator of a copy in the member: it names the upstream object.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { tryLocator, type Locator } from '#crds/index.ts'
import { controllerOf } from './owners.ts'
import type { CachedObject } from './resources.ts'

/** Kinds whose controllers give them the annotations of their owners. */
const takeOver: ReadonlySet<string> = new Set(['ReplicaSet', 'ControllerRevision'])

/**
 * The upstream object of a cached object in the member; undefined if the cached object is not a copy. An object that a
 * controller made is not a copy, even if it has the annotations of its owner: ReplicaSets and ControllerRevisions get
 * these, and keep them when their owner is deleted without them. A claim gets no annotations from an owner, so a claim
 * with a controller can be a copy: a StatefulSet that deletes its claims becomes the controller of the claims it finds.
 */
export function locatorOf(object: CachedObject | undefined): Locator | undefined {
  if (object === undefined) return undefined
  if (controllerOf(object) !== undefined && object.kind !== 'PersistentVolumeClaim') return undefined
  const locator = tryLocator(object as KubeObject)
  const isOfOwner = locator?.name !== object.metadata.name && takeOver.has(object.kind)
  return isOfOwner ? undefined : locator
}
