// The StatefulSet or pod that deletes a tenant's claim in the member, as the owner of the claim upstream.
import type { OwnerReference } from '#apimachinery/meta/index.ts'
import { controllerOf } from '#syncer/context/owners.ts'
import { asOrdinalClaim } from '#syncer/context/references.ts'
import { gvrs, type CachedObject } from '#syncer/context/resources.ts'
import { copyHere } from '#syncer/rules/entitlement.ts'
import type { SyncedObject } from '#syncer/rules/synced-object.ts'
import { originUpstream } from './origin.ts'

/**
 * Copies the controller of a tenant's claim upstream: a StatefulSet that deletes its claims, with itself or when it
 * shrinks, takes over those that it finds. Garbage collection upstream then deletes the claim as it would in a cluster.
 */
export async function reconcileClaimOwner(synced: SyncedObject): Promise<void> {
  const { name, ref, upstreamClient, signal } = synced
  const here = copyHere(synced, 'persistentvolumeclaims', name)
  if (here === undefined || asOrdinalClaim(name) === undefined) return
  const { object: claim, copy } = here
  const { ownerReferences: owners = [], resourceVersion } = claim.metadata
  const owner = originUpstream(synced, copy)?.owner.reference
  const former = controllerOfClaim(claim)
  if (former?.uid === owner?.uid) return
  // The owner in the member is not upstream yet.
  if (owner === undefined && controllerOfClaim(copy) !== undefined) return
  const ownerReferences = [...owners.filter((one) => one !== former), ...(owner === undefined ? [] : [owner])]
  const metadata = { resourceVersion, ownerReferences }
  await upstreamClient.patch(gvrs.persistentvolumeclaims, ref, 'merge', { metadata }, { signal })
}

/** The StatefulSet, or the pod of a StatefulSet, that deletes the claim. */
export function controllerOfClaim(claim: CachedObject): OwnerReference | undefined {
  const controller = controllerOf(claim)
  return controller?.kind === 'StatefulSet' || controller?.kind === 'Pod' ? controller : undefined
}
