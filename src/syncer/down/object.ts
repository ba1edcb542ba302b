// The walk down of one object: applies the objects that it needs, then its copy in the member, and removes the copy
// when the member should not have it any more.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { conflict, forbidden, isStatusError, serviceUnavailable, tolerate } from '#apimachinery/status/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { adoptedObject, hasEnded, memberUidAnnotation, syncerFinalizer } from '#crds/index.ts'
import { isSubset } from '#apimachinery/json/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import { accountReferences, referencesOf, type Reference } from '#syncer/context/references.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import type { Scope } from '#syncer/context/scope.ts'
import { clearError, clearReport } from '#syncer/report/member-status.ts'
import { tellingFailures } from '#syncer/report/tell-failure.ts'
import { isEndingNamespace } from '#syncer/rules/ending.ts'
import { syncedKinds } from '#syncer/rules/synced-kinds.ts'
import type { SyncedObject } from '#syncer/rules/synced-object.ts'
import type { PodSpec } from '#syncer/transform/pod-types.ts'
import {
  claimsOfOrdinals,
  goesWithOwner,
  refuseMovingClaims,
  refuseOtherPods,
  refuseOtherVolume,
  refuseUnfilled,
} from './claims-with-data.ts'
import { desiredCopy, podSpecOf } from './desired-copy.ts'
import { forgetDrift } from './drift.ts'
import { ensureNamespace } from './ensure-namespace.ts'
import { deleteCopy, removeObject } from './remove-copy.ts'
import { beginStatus, isOfAnother, writeOrReplace } from './write-copy.ts'

/**
 * Makes the copy in the member match the upstream object, and tells the tenant if that fails. Returns the upstream
 * object if it should have a copy.
 */
export async function reconcileObject(synced: SyncedObject): Promise<CachedObject | undefined> {
  const { resource, cluster, namespace, name } = synced
  const subject = { resource, cluster, namespace, name }
  const about = { step: `${resource} ${cluster}|${namespace}/${name}`, subject: () => subject }
  return await tellingFailures(synced, about, () => makeCopy(synced))
}

async function makeCopy(synced: SyncedObject): Promise<CachedObject | undefined> {
  const { row, object, member } = synced
  const isWanted = object !== undefined && row.wanted(object, synced.view, member.name)
  const isNamespaceEnding = isEndingNamespace(synced)
  if (isWanted && object.metadata.deletionTimestamp === undefined && !isNamespaceEnding) {
    await applyObject(synced, object)
    await clearError(synced.again())
    return object
  }
  // As in a cluster, ending pods keep their Services and the objects they refer to until these are gone upstream.
  if (isWanted && row.follows !== 'decision') return isNamespaceEnding ? undefined : object
  forgetDrift(synced)
  await removeObject(synced)
  await tellAbsence(synced.again())
  return undefined
}

/** Removes this member's report on a copy that is gone. */
async function tellAbsence(synced: SyncedObject): Promise<void> {
  const { row, object, copy } = synced
  const reports = row.status !== undefined && !row.finalizes && row.pinnedBy === undefined
  // While there is a copy, reconciles of its status report on it.
  if (object === undefined || !reports || copy !== undefined) await clearError(synced)
  else await clearReport(synced)
}

async function applyObject(synced: SyncedObject, object: CachedObject): Promise<void> {
  const { row, copy: before } = synced
  if (before === undefined && hasRun(object)) return
  refuseNodeName(synced, object)
  if (row.pinnedBy !== undefined && before === undefined) {
    if (goesWithOwner(synced, object)) return
    refuseUnfilled(object)
    await refuseOtherVolume(synced, object)
  }
  if (row.finalizes || row.pinnedBy !== undefined) await prepare(synced, object)
  await ensureNamespace(synced)
  if (row.workload) await applyReferences(synced, object)
  if (row.resource === 'statefulsets') await refuseOtherPods(synced, object)
  const current = synced.live(synced.resource, synced.name)
  if (current === undefined && synced.adopted !== undefined) await refuseUnknown(synced, object)
  const desired = desiredCopy(synced, object, current)
  if (row.pinnedBy !== undefined && current !== undefined && isOfAnother(current, object))
    await deleteCopy(synced, current)
  refuseForeign(synced, current, desired)
  if (current !== undefined && isSubset(current, desired)) forgetDrift(synced)
  else {
    if (row.workload && current === undefined) await applyPreceding(synced)
    await writeOrReplace(synced, object, { current, desired })
  }
  if (row.beginsWith) await beginStatus(synced, object, current)
}

/** A pod that a member once had, or a Job that has ended, is not created again, there or anywhere. */
function hasRun(object: CachedObject): boolean {
  return hasEnded(object) || (object.kind === 'Pod' && object.metadata.annotations?.[memberUidAnnotation] !== undefined)
}

/** Throws Forbidden if the template has nodeName: the pods would bypass the member's scheduler and all its checks. */
function refuseNodeName({ row, gvr, name }: SyncedObject, object: CachedObject): void {
  if (row.workload === undefined || !podSpecOf(object)?.['nodeName']) return
  throw forbidden(gvr, name, 'the template has nodeName: the scheduler of a member cluster chooses the node')
}

/**
 * Writes upstream what must be there before the copy: our finalizer, and the annotation that pins a claim to this
 * member.
 */
async function prepare(
  { row, gvr, ref, member, upstreamClient, signal }: SyncedObject,
  object: CachedObject,
): Promise<void> {
  const finalizer = syncerFinalizer(member.name)
  const { finalizers = [], annotations = {}, resourceVersion } = object.metadata
  const isPinned = row.pinnedBy === undefined || annotations[row.pinnedBy] !== undefined
  if ((finalizers.includes(finalizer) || !row.finalizes) && isPinned) return
  const metadata = {
    resourceVersion,
    ...(row.finalizes && { finalizers: [...new Set([...finalizers, finalizer])] }),
    ...(row.pinnedBy !== undefined && { annotations: { [row.pinnedBy]: member.name } }),
  }
  await upstreamClient.patch(gvr, ref, 'merge', { metadata }, { signal }).catch((error: unknown) => {
    if (!isStatusError(error, 'Conflict')) throw error
    // Our cache was behind: the reconcile is repeated before the tenant is told of a failure.
    throw serviceUnavailable(error.message)
  })
}

/** Applies the objects that the pods refer to before the workload, so that no pod starts without them. */
async function applyReferences(synced: SyncedObject, object: CachedObject): Promise<void> {
  const spec = podSpecOf(object)
  if (spec === undefined) return
  const claims = await claimsOfOrdinals(synced, object)
  const references = [...referencesWith(synced, spec), ...claims]
  await refuseMovingClaims(
    synced,
    references.flatMap(({ resource, name }) => (resource === 'persistentvolumeclaims' ? [name] : [])),
  )
  for (const { resource, name } of references) {
    const reference = synced.other(resource, name)
    if (reference !== undefined) await reconcileObject(reference)
  }
}

/** The objects that a pod refers to. The objects that its ServiceAccount refers to come before the ServiceAccount. */
function referencesWith(scope: Scope, spec: DeepReadonly<PodSpec>): readonly Reference[] {
  return referencesOf(spec).flatMap((reference) => {
    const account = reference.resource === 'serviceaccounts' && scope.upstream('serviceaccounts', reference.name)
    return account ? [...accountReferences(account), reference] : [reference]
  })
}

/** Applies the objects that must be in the namespace before its first pod, except those that an old member forbids. */
async function applyPreceding(synced: SyncedObject): Promise<void> {
  for (const { resource } of syncedKinds.filter(({ precedesPods }) => precedesPods))
    for (const { metadata } of synced.allUpstream(resource)) {
      const preceding = synced.other(resource, metadata.name ?? '')
      if (preceding !== undefined) await reconcileObject(preceding).catch(tolerate('Forbidden'))
    }
}

/**
 * Throws Conflict if an adopted namespace has an object of this name that is the member's own: nothing is overwritten
 * there but what the adoption has carried into the logical cluster.
 */
async function refuseUnknown(synced: SyncedObject, object: CachedObject): Promise<void> {
  const { context, row, gvr, name, memberNamespace = '', adopted, signal } = synced
  if (row.resource === 'serviceaccounts' || adoptedObject(object)?.adoption === adopted?.adoption) return
  const found = await context.downstream.tryGet<KubeObject>(gvr, { namespace: memberNamespace, name }, { signal })
  if (found !== undefined && locatorOf(found) === undefined)
    throw conflict(gvr, name, 'it exists in the member and was not made by kcp')
}

function refuseForeign({ row, gvr, name }: SyncedObject, current: CachedObject | undefined, desired: KubeObject): void {
  if (current === undefined) return
  const [is, should] = [locatorOf(current), locatorOf(desired)]
  // The member creates the ServiceAccount `default` in every namespace; it becomes our copy.
  if (is === undefined && row.resource !== 'serviceaccounts')
    throw conflict(gvr, name, 'it exists in the member and was not made by kcp')
  if ((row.finalizes || row.pinnedBy !== undefined) && is !== undefined && is.uid !== should?.uid)
    throw conflict(gvr, name, 'the copy of a deleted object of this name is still in the member')
}
