// The controller of a copy upstream, which follows the controller of the object in the member: a controller releases
// objects that it does not select any more, and adopts objects that it selects.
import { locatorOf } from '#syncer/context/locator.ts'
import { controllerOf } from '#syncer/context/owners.ts'
import { gvrs, type CachedObject, type ResourceName } from '#syncer/context/resources.ts'
import type { Reconcile } from '#syncer/context/scope.ts'
import { originUpstream } from './origin.ts'

/** Writes the controller of the copy upstream, where the object in the member has lost its own or got one. */
export async function followOwner(
  reconcile: Reconcile,
  resource: ResourceName,
  live: CachedObject,
  copy: CachedObject,
): Promise<void> {
  const [is, was] = [controllerOf(live), controllerOf(copy)]
  if (locatorOf(live) !== undefined || (is === undefined) === (was === undefined)) return
  const origin = is && originUpstream(reconcile, live)
  // The owner in the member is not upstream yet, or upstream it is being deleted without its dependents.
  if (is !== undefined && (origin === undefined || origin.found.metadata.deletionTimestamp !== undefined)) return
  const { uid, resourceVersion, ownerReferences = [] } = copy.metadata
  const kept = ownerReferences.filter(({ controller }) => controller !== true)
  const owners = origin === undefined ? kept : [...kept, origin.owner.reference]
  const metadata = { ...(uid && { uid }), resourceVersion, ownerReferences: owners.length === 0 ? null : owners }
  const { upstreamClient, ref, signal } = reconcile
  await upstreamClient.patch(gvrs[resource], ref, 'merge', { metadata }, { signal })
}
