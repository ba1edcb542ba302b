// Reconciles a namespace of a logical cluster: a member has a copy of the namespace while a workload of it is placed
// there; without one, the copy is deleted with everything in it.
import { tolerate } from '#apimachinery/status/index.ts'
import { keyFor } from '#client/index.ts'
import { keptVolumeAnnotation, movedVolumeAnnotation, workloadKinds } from '#crds/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import { isClaimIn, isInMember } from '#syncer/context/namespace-view.ts'
import { gvrs, type CachedObject } from '#syncer/context/resources.ts'
import { Reconcile, type Scope } from '#syncer/context/scope.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'
import { isEndingNamespace } from '#syncer/rules/ending.ts'
import { isShownFrom } from '#syncer/rules/entitlement.ts'
import { ensureNamespace } from './ensure-namespace.ts'
import { releaseNamespace } from './release-namespace.ts'

/** Creates the namespace while something of it should be in the member, and deletes it afterwards. */
export async function reconcileNamespace(reconcile: Reconcile): Promise<void> {
  const { context, cluster, namespace, view } = reconcile
  if (reconcile.memberNamespace === undefined) return
  // A namespace that is being deleted upstream is not kept here until its objects are gone upstream: this member need
  // not wait for members that do not answer.
  const isEnding = isEndingNamespace(reconcile)
  const needed = !isEnding && (view.needed || context.hasExported(cluster, namespace))
  if (needed) await ensureNamespace(reconcile)
  if (needed || (!isEnding && view.servicesWanted && hasServices(reconcile))) return
  await deleteWithoutWorkloads(reconcile)
}

/**
 * Deletes the namespaces in the member that exist only because of this workload. Called before the finalizer is
 * removed: with the last workload its logical cluster, or the member, may be deleted too, and nothing would lead to
 * these namespaces.
 */
export async function deleteNamespacesOf(reconcile: Reconcile, workload: CachedObject): Promise<void> {
  const { context, cluster, namespace, member } = reconcile
  for (const { gvr } of workloadKinds)
    for (const other of reconcile.allUpstream(gvr.resource))
      if (other.metadata.uid !== workload.metadata.uid && isInMember(other, member.name)) return
  const elsewhere = [...context.views.presentIn(cluster)].some((present) => present !== namespace)
  if (!elsewhere) {
    for (const other of context.views.namespacesOf(cluster))
      if (other !== namespace) await deleteWithoutWorkloads(inNamespace(reconcile, other))
  }
  const reached = elsewhere && member.serviceNetwork !== 'None' && hasServices(reconcile)
  if (!reached) await deleteWithoutWorkloads(inNamespace(reconcile, namespace))
}

/** The step of the reconcile that is about this namespace of the logical cluster. */
function inNamespace({ context, cluster, signal }: Reconcile, namespace: string): Reconcile {
  return new Reconcile(context, { kind: 'namespace', cluster, namespace, name: namespace }, signal)
}

/** A namespace of a deleted logical cluster, created while its last objects were deleted. */
export async function reconcileLeftover({ context, cluster, name, signal }: Reconcile): Promise<void> {
  const object = context.caches.namespaces.store.get(keyFor({ name }))
  if (object === undefined || locatorOf(object)?.clusterId !== cluster) return
  if (context.upstream.ids.isGone(cluster)) await deleteNamespace(context, object, signal)
}

function hasServices(scope: Scope): boolean {
  for (const _ of scope.allUpstream('services')) return true
  return false
}

async function deleteWithoutWorkloads(reconcile: Reconcile): Promise<void> {
  const { context, cluster, namespace, member, signal, liveNamespace: object, adopted } = reconcile
  if (object === undefined || !reconcile.isOurs || reconcile.isHeld) return
  // The workloads of the namespace must be deleted first, by their own reconciles, which enqueue this one again.
  for (const { gvr } of workloadKinds)
    for (const one of reconcile.allLive(gvr.resource)) if (locatorOf(one) !== undefined) return
  if (context.hasExported(cluster, namespace)) return
  // Deleting the namespace would delete its volumes.
  for (const claim of reconcile.allUpstream('persistentvolumeclaims')) if (isClaimIn(claim, member.name)) return
  if (await hasUnlistedClaim(reconcile)) return
  if (hasOldVolume(reconcile)) return
  if (hasOrphans(reconcile)) {
    context.enqueueAfter({ kind: 'namespace', cluster, namespace, name: namespace }, againMs)
    return
  }
  if (adopted === undefined) await deleteNamespace(context, object, signal)
  else await releaseNamespace(reconcile, adopted)
}

/**
 * How long to wait until the view of the namespace knows its orphans, milliseconds: the garbage collector upstream may
 * not have removed their owner references yet.
 */
const againMs = 1000

/** Whether pods that their tenant sees run on in the member, though their workload has gone. */
function hasOrphans(reconcile: Reconcile): boolean {
  if (isEndingNamespace(reconcile)) return false
  for (const live of reconcile.allLive('pods')) {
    const { name = '', uid, deletionTimestamp } = live.metadata
    const shown = reconcile.upstream('pods', name)
    if (deletionTimestamp !== undefined || shown === undefined || shown.metadata.deletionTimestamp !== undefined)
      continue
    if (isShownFrom(reconcile, shown, uid)) return true
  }
  return false
}

/** Whether the member has the old volume of a claim whose data has moved: the operator deletes it, after a while. */
function hasOldVolume(reconcile: Reconcile): boolean {
  for (const { metadata } of reconcile.allLive('persistentvolumeclaims')) {
    if (metadata.annotations?.[keptVolumeAnnotation] !== undefined) return true
    const claim = reconcile.upstream('persistentvolumeclaims', metadata.name ?? '')
    if (claim?.metadata.annotations?.[movedVolumeAnnotation] !== undefined) return true
  }
  return false
}

/** Whether the namespace in the member has a claim that is there upstream, though our cache lacks it. */
async function hasUnlistedClaim(reconcile: Reconcile): Promise<boolean> {
  const { context, member } = reconcile
  for (const { metadata } of reconcile.allLive('persistentvolumeclaims')) {
    const { name = '' } = metadata
    if (reconcile.upstream('persistentvolumeclaims', name) !== undefined) continue
    const claim = await context.guard.findUnlisted(reconcile.on('persistentvolumeclaims', name))
    if (claim !== undefined && isClaimIn(claim, member.name)) return true
  }
  return false
}

async function deleteNamespace(
  { downstream, log }: SyncContext,
  { metadata }: CachedObject,
  signal: AbortSignal,
): Promise<void> {
  const { name = '', uid, deletionTimestamp } = metadata
  if (deletionTimestamp !== undefined) return
  log.info('deleting a namespace in a member: no workload of it is placed there', { namespace: name })
  // Conflict: another namespace of this name, which gets a reconcile of its own.
  await downstream
    .delete(gvrs.namespaces, { name }, { ...(uid && { uid }), signal })
    .catch(tolerate('NotFound', 'Conflict'))
}
