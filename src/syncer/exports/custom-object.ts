// One custom resource and its copy in the member that exports its API: copied down, its status up, deleted with it.
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { replacingPatch } from '#apimachinery/patch/index.ts'
import { conflict, tolerate } from '#apimachinery/status/index.ts'
import { keyFor, type DeepReadonly, type Informer, type ObjectIndex } from '#client/index.ts'
import { appliedAnnotation, canonicalJson, contentHash, syncerFieldManager } from '#crds/index.ts'
import { ensureNamespace } from '#syncer/down/ensure-namespace.ts'
import { isSubset } from '#syncer/context/is-subset.ts'
import {
  downstreamNamespaceOf,
  locatorOf,
  ownerCluster,
  type SyncContext,
  type Visit,
} from '#syncer/context/sync-context.ts'
import { contentDown } from '#syncer/transform/down.ts'
import { statusUp } from './exported-status.ts'
import { tellingFailures } from '#syncer/report/tell-failure.ts'

type CachedObject = DeepReadonly<KubeObject>
type CustomVisit = Pick<Visit, 'cluster' | 'namespace' | 'name'>

/** One exported API while its definition in the member is known. */
export interface SyncedApi extends AsyncDisposable {
  readonly gvr: GroupVersionResource
  readonly hasStatus: boolean
  readonly definition: KubeObject
  readonly objects: Informer<KubeObject>
  /** By namespace, and by name of the logical cluster. */
  readonly groups: ObjectIndex
  readonly copies: Informer<KubeObject>
  /** By namespace in the member, and by id of the logical cluster. */
  readonly copyGroups: ObjectIndex
}

export interface CustomObjectChecks {
  /** Its logical cluster has the definition from this member. */
  readonly isOffered: boolean
  /** Rejects, so that the visit is repeated, if the copy seems to be needed no more only because a list lacked something. */
  readonly confirmGone: (copy: CachedObject) => Promise<void>
}

/** Makes the copy in the member match the custom resource, and tells the tenant if that fails. */
export async function visitCustomObject(
  context: SyncContext,
  api: SyncedApi,
  visit: CustomVisit,
  checks: CustomObjectChecks,
  signal: AbortSignal,
): Promise<void> {
  const { cluster, namespace, name } = visit
  const { resource, group } = api.gvr
  const subject = { resource: `${resource}.${group}`, cluster, namespace, name }
  const object = api.objects.store.get(keyFor(visit))
  const about = {
    step: `${subject.resource} ${keyFor(visit)}`,
    subject: () => subject,
    ...(object && checks.isOffered && { object }),
  }
  await tellingFailures(context, about, () => syncCustomObject(context, api, visit, checks, signal), signal)
}

async function syncCustomObject(
  context: SyncContext,
  api: SyncedApi,
  visit: CustomVisit,
  { isOffered, confirmGone }: CustomObjectChecks,
  signal: AbortSignal,
): Promise<void> {
  const memberNamespace = downstreamNamespaceOf(context, visit)
  if (memberNamespace === undefined) return
  const object = api.objects.store.get(keyFor(visit))
  const copy = api.copies.store.get(keyFor({ namespace: memberNamespace, name: visit.name }))
  const wanted = isOffered && object !== undefined && object.metadata.deletionTimestamp === undefined
  const isOfAnother = copy !== undefined && locatorOf(copy)?.uid !== object?.metadata.uid
  if (copy !== undefined && (!wanted || isOfAnother)) {
    if (object === undefined || !isOffered) await confirmGone(copy)
    await deleteCopy(context, api, visit, memberNamespace, copy, signal)
  }
  if (!wanted || isOfAnother) {
    context.enqueue({ kind: 'namespace', ...visit, name: visit.namespace })
    return
  }
  const clusterId = context.upstream.ids.idOf(visit.cluster)
  if (clusterId === undefined) return
  await ensureNamespace(context, visit, signal)
  const desired = contentDown(object, ownerCluster(context, visit.cluster, clusterId))
  // Versions of exported definitions differ in nothing but their schema.
  desired.apiVersion = `${api.gvr.group}/${api.gvr.version}`
  desired.metadata.annotations = { ...desired.metadata.annotations, [appliedAnnotation]: contentHash(desired) }
  const isCurrent = copy !== undefined && isSubset(copy, desired)
  if (!isCurrent) await writeCopy(context, api, { object, desired }, signal)
  if (api.hasStatus && copy !== undefined && copy['status'] !== undefined)
    await writeStatus(context, api, visit, { object, status: statusUp(copy, object, isCurrent) }, signal)
}

async function writeCopy(
  { downstream }: SyncContext,
  { gvr }: SyncedApi,
  { object, desired }: { readonly object: CachedObject; readonly desired: KubeObject },
  signal: AbortSignal,
): Promise<void> {
  const { namespace = '', name = '' } = desired.metadata
  // What somebody else made in the member has no label of ours, so it is in no cache.
  const live = await downstream.tryGet<KubeObject>(gvr, { namespace, name }, { signal })
  if (live !== undefined && locatorOf(live)?.uid !== object.metadata.uid)
    throw conflict(gvr, name, 'it exists in the member and is not the copy of this object')
  const options = { fieldManager: syncerFieldManager, force: true, signal }
  await downstream.patch(gvr, { namespace, name }, 'apply', desired, options)
}

/** Deletes what has our locator of this logical cluster, by its uid. */
async function deleteCopy(
  { downstream, upstream }: SyncContext,
  { gvr }: SyncedApi,
  { cluster, namespace, name }: CustomVisit,
  memberNamespace: string,
  copy: CachedObject,
  signal: AbortSignal,
): Promise<void> {
  const locator = locatorOf(copy)
  const isOurs =
    locator?.clusterId === upstream.ids.idOf(cluster) && locator?.namespace === namespace && locator.name === name
  const { uid, deletionTimestamp } = copy.metadata
  if (!isOurs || deletionTimestamp !== undefined) return
  await downstream
    .delete(gvr, { namespace: memberNamespace, name }, { ...(uid && { uid }), propagationPolicy: 'Background', signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

async function writeStatus(
  { upstream }: SyncContext,
  { gvr }: SyncedApi,
  { cluster, namespace, name }: CustomVisit,
  { object, status }: { readonly object: CachedObject; readonly status: Record<string, unknown> },
  signal: AbortSignal,
): Promise<void> {
  const was = (object['status'] ?? {}) as Record<string, unknown>
  if (canonicalJson(was) === canonicalJson(status)) return
  const patch = { metadata: { uid: object.metadata.uid }, status: replacingPatch(was, status) }
  const options = { subresource: 'status', signal } as const
  await upstream
    .client(cluster)
    .patch(gvr, { namespace, name }, 'merge', patch, options)
    .catch(tolerate('NotFound', 'Conflict'))
}
