// One custom resource and its copy in the member that exports its API: copied down, its status up, deleted with it.
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { replacingPatch } from '#apimachinery/patch/index.ts'
import { conflict, tolerate } from '#apimachinery/status/index.ts'
import { keyFor, type Informer, type ObjectIndex } from '#client/index.ts'
import { appliedAnnotation, canonicalJson, contentHash, syncerFieldManager } from '#crds/index.ts'
import { isSubset } from '#syncer/context/is-subset.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import { ownerCluster, Reconcile } from '#syncer/context/scope.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'
import { ensureNamespace } from '#syncer/down/ensure-namespace.ts'
import { tellingFailures } from '#syncer/report/tell-failure.ts'
import { contentDown } from '#syncer/transform/down.ts'
import { statusUp } from './exported-status.ts'

/** One exported API while its definition in the member is known. */
export interface SyncedApi extends AsyncDisposable {
  readonly gvr: GroupVersionResource
  readonly hasStatus: boolean
  readonly definition: KubeObject
  readonly objects: Informer<KubeObject>
  /** The objects upstream by namespace, and by name of the logical cluster. */
  readonly groups: ObjectIndex
  readonly copies: Informer<KubeObject>
  /** The copies by namespace in the member, and by id of the logical cluster. */
  readonly copyGroups: ObjectIndex
}

/** A custom resource and its copy, as one reconcile finds them. */
export interface CustomObject {
  readonly api: SyncedApi
  readonly name: string
  readonly object: CachedObject | undefined
  readonly copy: CachedObject | undefined
  /** Whether its logical cluster has the definition from this member. */
  readonly isOffered: boolean
}

/** The reconcile of the namespace in which a custom resource is. */
export function reconcileIn(
  context: SyncContext,
  { cluster, namespace }: { readonly cluster: string; readonly namespace: string },
  signal: AbortSignal,
): Reconcile {
  return new Reconcile(context, { kind: 'namespace', cluster, namespace, name: namespace }, signal)
}

/**
 * Makes the copy in the member match the custom resource, and tells the tenant if that fails. `confirmGone` rejects, so
 * that the reconcile is repeated, if the copy seems to be needed no more only because a list lacked something.
 */
export async function reconcileCustomObject(
  reconcile: Reconcile,
  custom: CustomObject,
  confirmGone: (copy: CachedObject) => Promise<void>,
): Promise<void> {
  const { cluster, namespace } = reconcile
  const { api, name, object, isOffered } = custom
  const subject = { resource: `${api.gvr.resource}.${api.gvr.group}`, cluster, namespace, name }
  const about = {
    step: `${subject.resource} ${keyFor({ cluster, namespace, name })}`,
    subject: () => subject,
    ...(object && isOffered && { object }),
  }
  await tellingFailures(reconcile, about, () => syncCustomObject(reconcile, custom, confirmGone))
}

async function syncCustomObject(
  reconcile: Reconcile,
  custom: CustomObject,
  confirmGone: (copy: CachedObject) => Promise<void>,
): Promise<void> {
  const { clusterId } = reconcile
  if (reconcile.memberNamespace === undefined || clusterId === undefined) return
  const { api, object, copy, isOffered } = custom
  const wanted = isOffered && object !== undefined && object.metadata.deletionTimestamp === undefined
  const isOfAnother = copy !== undefined && locatorOf(copy)?.uid !== object?.metadata.uid
  if (copy !== undefined && (!wanted || isOfAnother)) {
    if (object === undefined || !isOffered) await confirmGone(copy)
    await deleteCopy(reconcile, custom, copy)
  }
  if (!wanted || isOfAnother) {
    reconcile.enqueueNamespace()
    return
  }
  await ensureNamespace(reconcile)
  const desired = contentDown(object, ownerCluster(reconcile, clusterId))
  // Versions of exported definitions differ in nothing but their schema.
  desired.apiVersion = `${api.gvr.group}/${api.gvr.version}`
  desired.metadata.annotations = { ...desired.metadata.annotations, [appliedAnnotation]: contentHash(desired) }
  const isCurrent = copy !== undefined && isSubset(copy, desired)
  if (!isCurrent) await writeCopy(reconcile, api, object, desired)
  if (api.hasStatus && copy !== undefined && copy['status'] !== undefined)
    await writeStatus(reconcile, api, object, statusUp(copy, object, isCurrent))
}

async function writeCopy(
  { context, signal }: Reconcile,
  { gvr }: SyncedApi,
  object: CachedObject,
  desired: KubeObject,
): Promise<void> {
  const { downstream } = context
  const { namespace = '', name = '' } = desired.metadata
  // An object that somebody else made in the member has no label of ours, so no cache has it.
  const live = await downstream.tryGet<KubeObject>(gvr, { namespace, name }, { signal })
  if (live !== undefined && locatorOf(live)?.uid !== object.metadata.uid)
    throw conflict(gvr, name, 'it exists in the member and is not the copy of this object')
  const options = { fieldManager: syncerFieldManager, force: true, signal }
  await downstream.patch(gvr, { namespace, name }, 'apply', desired, options)
}

/** Deletes an object in the member, by its uid, if it has our locator of this logical cluster. */
async function deleteCopy(
  { context, clusterId, namespace, signal }: Reconcile,
  { api, name }: CustomObject,
  copy: CachedObject,
): Promise<void> {
  const locator = locatorOf(copy)
  const isOurs = locator?.clusterId === clusterId && locator?.namespace === namespace && locator.name === name
  const { uid, deletionTimestamp } = copy.metadata
  if (!isOurs || deletionTimestamp !== undefined) return
  const ref = { namespace: copy.metadata.namespace ?? '', name }
  await context.downstream
    .delete(api.gvr, ref, { ...(uid && { uid }), propagationPolicy: 'Background', signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

async function writeStatus(
  { upstreamClient, signal }: Reconcile,
  { gvr }: SyncedApi,
  object: CachedObject,
  status: Record<string, unknown>,
): Promise<void> {
  const was = (object['status'] ?? {}) as Record<string, unknown>
  if (canonicalJson(was) === canonicalJson(status)) return
  const { namespace = '', name = '', uid } = object.metadata
  const patch = { metadata: { uid }, status: replacingPatch(was, status) }
  await upstreamClient
    .patch(gvr, { namespace, name }, 'merge', patch, { subresource: 'status', signal })
    .catch(tolerate('NotFound', 'Conflict'))
}
