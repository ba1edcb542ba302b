// The end of a copy: the copy goes first, then its namespace, then our finalizer upstream.
import type { Int64, KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import {
  memberStatusAnnotation,
  movedVolumeAnnotation,
  placedOn,
  syncerFinalizer,
  upstreamFinalizer,
} from '#crds/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import type { Scope } from '#syncer/context/scope.ts'
import { clearedMemberStatus, patchWithoutReport } from '#syncer/report/member-status.ts'
import { endingOf, isEndingNamespace } from '#syncer/rules/ending.ts'
import type { SyncedObject } from '#syncer/rules/synced-object.ts'
import { refuseUnknownClaims } from './claims-with-data.ts'
import { deleteNamespacesOf } from './namespace.ts'

/**
 * Deletes the copy of an object that is deleted, gone, or no longer placed here. Only called with synced caches on both
 * sides; the copy must name the object, and the uid we saw is a precondition.
 */
export async function removeObject(synced: SyncedObject): Promise<void> {
  const { context, row, object, copy, namespace, name } = synced
  if (synced.memberNamespace === undefined) return
  const locator = locatorOf(copy)
  if (copy === undefined || !synced.isOurs || locator?.namespace !== namespace || locator.name !== name) {
    if (row.finalizes) await release(synced)
    return
  }
  // The data has moved to another member: the operator deletes the old volume, after a while.
  if (object?.metadata.annotations?.[movedVolumeAnnotation] !== undefined) return
  const isHeld = copy.metadata.finalizers?.includes(upstreamFinalizer) ?? false
  if (copy.metadata.deletionTimestamp !== undefined && !isHeld) return
  if (object === undefined) await context.guard.confirmGone(synced, locator)
  else if (row.follows !== 'decision' && object.metadata.deletionTimestamp === undefined)
    context.guard.holdFollower(synced)
  const isPlaced = object !== undefined && synced.view.placedHere(object)
  const ending = row.workload && endingOf(context, object, { isNamespaceEnding: isEndingNamespace(synced) })
  if (ending === 'Held' && isPlaced) return holdCopy(synced, copy)
  if (object !== undefined && object.metadata.deletionTimestamp === undefined && !isEndingNamespace(synced))
    refuseUnknownClaims(synced, object)
  const { deletionGracePeriodSeconds: grace } = object?.metadata ?? {}
  await deleteCopy(synced, copy, { ...(grace !== undefined && { grace }), ...(ending === 'Orphan' && { ending }) })
  if (isHeld) await releaseCopy(synced, copy)
}

/** Deletes a copy. `grace`: the grace period for a pod; `ending`: the propagation policy for a workload. */
export async function deleteCopy(
  { context, row, gvr, resource, signal }: SyncedObject,
  copy: CachedObject,
  { grace, ending = 'Foreground' }: { readonly grace?: Int64; readonly ending?: 'Foreground' | 'Orphan' } = {},
): Promise<void> {
  const { namespace = '', name = '', uid, deletionTimestamp, finalizers } = copy.metadata
  // A second deletion can still change the propagation policy of a copy that our finalizer holds.
  if (deletionTimestamp !== undefined && !finalizers?.includes(upstreamFinalizer)) return
  const options = {
    ...(uid && { uid }),
    ...(grace !== undefined && resource === 'pods' && { gracePeriodSeconds: grace }),
    // Foreground: the workload must be gone only after its pods, because the tenant's deletion waits for it.
    propagationPolicy: row.workload ? ending : ('Background' as const),
    signal,
  }
  await context.downstream.delete(gvr, { namespace, name }, options).catch(tolerate('NotFound', 'Conflict'))
}

/**
 * Deletes the copy of a workload that finalizers of others hold upstream. A finalizer of ours keeps the copy for as
 * long.
 */
async function holdCopy({ context, gvr, signal }: SyncedObject, copy: CachedObject): Promise<void> {
  const { downstream } = context
  const { namespace = '', name = '', uid, resourceVersion, finalizers = [], deletionTimestamp } = copy.metadata
  if (deletionTimestamp !== undefined) return
  const ref = { namespace, name }
  if (!finalizers.includes(upstreamFinalizer)) {
    const metadata = { resourceVersion, finalizers: [...finalizers, upstreamFinalizer] }
    await downstream.patch(gvr, ref, 'merge', { metadata }, { signal })
  }
  await downstream
    .delete(gvr, ref, { ...(uid && { uid }), propagationPolicy: 'Background', signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/** Removes our finalizer from a copy. */
async function releaseCopy({ context, gvr, signal }: SyncedObject, copy: CachedObject): Promise<void> {
  const { downstream } = context
  const { namespace = '', name = '', uid } = copy.metadata
  const ref = { namespace, name }
  const live = await downstream.tryGet<KubeObject>(gvr, ref, { signal })
  if (live === undefined || live.metadata.uid !== uid) return
  const { resourceVersion, finalizers = [] } = live.metadata
  const metadata = { resourceVersion, finalizers: finalizers.filter((one) => one !== upstreamFinalizer) }
  await downstream.patch(gvr, ref, 'merge', { metadata }, { signal }).catch(tolerate('NotFound'))
}

/** Removes the finalizer upstream, after asking the member (not only its cache) that the copy is gone. */
async function release(synced: SyncedObject): Promise<void> {
  const { context, gvr, object, member, name, memberNamespace = '', signal } = synced
  const finalizer = syncerFinalizer(member.name)
  if (object?.metadata.finalizers?.includes(finalizer)) {
    const live = await context.downstream.tryGet(gvr, { namespace: memberNamespace, name }, { signal })
    if (live !== undefined && locatorOf(live)?.uid === object.metadata.uid) return
    const annotations = clearedMemberStatus(member.name)
    if (isForwarding(synced, object)) {
      const isReported = object.metadata.annotations?.[memberStatusAnnotation(member.name)] !== undefined
      if (isReported) await forgetReport(synced, object, { annotations })
      return
    }
    await deleteNamespacesOf(synced, object)
    const finalizers = object.metadata.finalizers.filter((one) => one !== finalizer)
    await forgetReport(synced, object, { finalizers, annotations })
  }
  synced.enqueueNamespace()
}

/**
 * Writes metadata without the member's report, and the status without it: in one write, so that no watcher ever sees
 * the counts of a copy that is gone. An object that is deleted needs no status.
 */
async function forgetReport(
  { context, row, gvr, ref, upstreamClient, signal }: SyncedObject,
  object: CachedObject,
  metadata: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { resourceVersion, deletionTimestamp } = object.metadata
  if (row.status === undefined || deletionTimestamp !== undefined) {
    await upstreamClient.patch(gvr, ref, 'merge', { metadata: { resourceVersion, ...metadata } }, { signal })
    return
  }
  const patch = patchWithoutReport(context, row.status, object, metadata)
  await upstreamClient.patch(gvr, ref, 'merge', patch, { subresource: 'status', signal })
}

/** True while the Services and Ingresses of a workload that has left the member stay there: so does our finalizer. */
function isForwarding({ member }: Scope, object: CachedObject): boolean {
  const copy = placedOn(object as KubeObject)[member.name]
  return copy?.state === 'Forwarding' && object.metadata.deletionTimestamp === undefined
}
