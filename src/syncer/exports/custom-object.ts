// One custom resource and its copy in the member: copied down while the scheduler wants it there, its status and a
// report up, deleted with it.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isSubset } from '#apimachinery/json/index.ts'
import { replacingPatch } from '#apimachinery/patch/index.ts'
import { conflict, tolerate } from '#apimachinery/status/index.ts'
import { keyFor } from '#client/index.ts'
import {
  adoptedObject,
  appliedAnnotation,
  canonicalJson,
  contentHash,
  customSourceOf,
  memberStatusAnnotation,
  placedOn,
  syncerFieldManager,
  type CustomObjectReport,
} from '#crds/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import { ownerCluster, Reconcile } from '#syncer/context/scope.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'
import { ensureNamespace } from '#syncer/down/ensure-namespace.ts'
import { writeBesideDrift } from '#syncer/down/keep-drift.ts'
import { ownAlone } from '#syncer/down/own-alone.ts'
import type { FailureSubject } from '#syncer/context/sync-failures.ts'
import { tellingFailures } from '#syncer/report/tell-failure.ts'
import { warnOnce } from '#syncer/report/warning-event.ts'
import { contentDown } from '#syncer/transform/down.ts'
import { isHealthy, statusUp } from './exported-status.ts'
import { speaker } from './speaker.ts'
import type { SyncedApi } from './synced-api.ts'

/** A custom resource and its copy, as one reconcile finds them. */
export interface CustomObject {
  readonly api: SyncedApi
  readonly name: string
  readonly object: CachedObject | undefined
  readonly copy: CachedObject | undefined
  /** Whether its logical cluster has the definition from members, and may use this one. */
  readonly isOffered: boolean
  /** Whether the scheduler wants a copy here. */
  readonly isWanted: boolean
  /** The version in which it is copied: that in which its logical cluster stores it. */
  readonly version: string
}

/** The reconcile of the namespace in which a custom resource is; without a namespace, of its logical cluster. */
export function reconcileIn(
  context: SyncContext,
  { cluster, namespace }: { readonly cluster: string; readonly namespace: string },
  signal: AbortSignal,
): Reconcile {
  return new Reconcile(context, { kind: 'namespace', cluster, namespace, name: namespace }, signal)
}

interface Questions {
  /**
   * Rejects, so that the reconcile is repeated, if the copy seems to be needed no more only because a list lacked
   * something.
   */
  readonly confirmGone: (copy: CachedObject) => Promise<void>
}

/**
 * Makes the copy in the member match the custom resource, and tells the tenant if that fails. Resolves with the copy
 * that was found, if it is the copy of the object.
 */
export async function reconcileCustomObject(
  reconcile: Reconcile,
  custom: CustomObject,
  questions: Questions,
): Promise<CachedObject | undefined> {
  const { cluster, namespace } = reconcile
  const { name, object, isWanted } = custom
  const subject = subjectOf(reconcile, custom)
  const about = {
    step: `${subject.resource} ${keyFor({ cluster, namespace, name })}`,
    subject: () => subject,
    ...(object && isWanted && { object }),
  }
  return await tellingFailures(reconcile, about, () => syncCustomObject(reconcile, custom, questions))
}

function subjectOf({ cluster, namespace }: Reconcile, { api, name }: CustomObject): FailureSubject {
  return { resource: `${api.gvr.resource}.${api.gvr.group}`, cluster, namespace, name }
}

async function syncCustomObject(
  reconcile: Reconcile,
  custom: CustomObject,
  { confirmGone }: Questions,
): Promise<CachedObject | undefined> {
  const { clusterId } = reconcile
  const { api, object, copy, isWanted } = custom
  if (clusterId === undefined) return undefined
  const isOfAnother = copy !== undefined && locatorOf(copy)?.uid !== object?.metadata.uid
  if (copy !== undefined && (!isWanted || isOfAnother)) {
    await confirmGone(copy)
    await deleteCopy(reconcile, custom, copy)
  }
  if (!isWanted || object === undefined || isOfAnother) {
    if (api.isNamespaced) reconcile.enqueueNamespace()
    if (!isWanted && object !== undefined && copy === undefined) await endReport(reconcile, custom, object)
    return undefined
  }
  // Before the copy exists: the scheduler takes a member without a report for one that has nothing of the object.
  if (!hasReport(reconcile, object)) await writeReport(reconcile, custom, object, {})
  if (api.isNamespaced) await ensureNamespace(reconcile)
  const desired = desiredCopy(reconcile, custom, object)
  const live = copy === undefined ? undefined : await inVersion(reconcile, custom, copy)
  const isSame = live !== undefined && isSubset(live, desired)
  const isDrifted = !isSame && (await writeCopy(reconcile, custom, object, desired))
  const isCurrent = isSame || isDrifted
  if (!isDrifted) reconcile.context.drifts.note(subjectOf(reconcile, custom), [])
  if (live === undefined || copy === undefined) return undefined
  await report(reconcile, custom, object, { live, isCurrent })
  return live
}

function desiredCopy(reconcile: Reconcile, { api, name, version }: CustomObject, object: CachedObject): KubeObject {
  const { clusterId } = reconcile
  if (clusterId === undefined) throw new Error('the id of the logical cluster is not known')
  const desired = contentDown(object, ownerCluster(reconcile, clusterId))
  desired.apiVersion = `${api.gvr.group}/${version}`
  const ref = api.copyRef(reconcile, name)
  if (ref !== undefined) desired.metadata.name = ref.name
  if (!api.isNamespaced) delete desired.metadata.namespace
  desired.metadata.annotations = { ...desired.metadata.annotations, [appliedAnnotation]: contentHash(desired) }
  return desired
}

/** The copy in the version of the logical cluster; the cache has the version that the member stores. */
async function inVersion(
  { context, signal }: Reconcile,
  { api, version }: CustomObject,
  copy: CachedObject,
): Promise<CachedObject | undefined> {
  if (version === api.gvr.version) return copy
  const { namespace, name = '' } = copy.metadata
  const ref = { ...(namespace !== undefined && { namespace }), name }
  return await context.downstream.tryGet<KubeObject>({ ...api.gvr, version }, ref, { signal })
}

interface Found {
  readonly live: CachedObject
  readonly isCurrent: boolean
}

/** Tells the scheduler how the copy is, and the tenant its status. */
async function report(
  reconcile: Reconcile,
  custom: CustomObject,
  object: CachedObject,
  { live, isCurrent }: Found,
): Promise<void> {
  const status = statusUp(live, object, isCurrent)
  const isSeen = isCurrent && isHealthy(live, object)
  const drift = reconcile.context.drifts.of(subjectOf(reconcile, custom))
  const found = {
    ...(isCurrent && { observed: customSourceOf(object) }),
    ...(isSeen && { ready: true as const }),
    ...(drift !== undefined && { drift }),
  }
  await writeReport(reconcile, custom, object, found)
  const chief = speaker(placedOn(object as KubeObject))
  if (live['status'] !== undefined && chief === reconcile.member.name)
    await writeStatus(reconcile, custom, object, status)
}

function hasReport({ member }: Reconcile, { metadata }: CachedObject): boolean {
  return metadata.annotations?.[memberStatusAnnotation(member.name)] !== undefined
}

async function writeReport(
  reconcile: Reconcile,
  custom: CustomObject,
  object: CachedObject,
  report: CustomObjectReport | null,
): Promise<void> {
  const annotation = memberStatusAnnotation(reconcile.member.name)
  const text = report && JSON.stringify(report)
  if (object.metadata.annotations?.[annotation] === (text ?? undefined)) return
  const { uid } = object.metadata
  const patch = { metadata: { uid, annotations: { [annotation]: text } } }
  await patchUpstream(reconcile, custom, object, patch)
}

/** After the last trace of the copy is gone in the member, not only in the cache. */
async function endReport(reconcile: Reconcile, custom: CustomObject, object: CachedObject): Promise<void> {
  if (!hasReport(reconcile, object)) return
  const { context, signal } = reconcile
  const ref = custom.api.copyRef(reconcile, custom.name)
  if (ref === undefined) return
  const live = await context.downstream.tryGet<KubeObject>(custom.api.gvr, ref, { signal })
  if (live === undefined || locatorOf(live)?.uid !== object.metadata.uid)
    await writeReport(reconcile, custom, object, null)
}

/** Writes the copy. True if it stays otherwise, because others have changed it and the Placement keeps such changes. */
async function writeCopy(
  reconcile: Reconcile,
  custom: CustomObject,
  object: CachedObject,
  desired: KubeObject,
): Promise<boolean> {
  const { context, adopted, member, signal } = reconcile
  const { api, version } = custom
  const { downstream } = context
  const { namespace, name = '' } = desired.metadata
  const gvr = { ...api.gvr, version }
  const ref = { ...(namespace !== undefined && { namespace }), name }
  // An object that somebody else made in the member has no label of ours, so no cache has it.
  const live = await downstream.tryGet<KubeObject>(gvr, ref, { signal })
  if (live !== undefined && locatorOf(live)?.uid !== object.metadata.uid)
    throw conflict(gvr, name, 'it exists in the member and is not the copy of this object')
  if (live !== undefined && adopted !== undefined && adoptedObject(object) !== undefined)
    await ownAlone(downstream, gvr, { live, signal })
  if (live !== undefined && placedOn(object as KubeObject)[member.name]?.drift === 'Report') {
    const subject = subjectOf(reconcile, custom)
    const removed = context.drifts.removedFrom(subject)
    const fields = await writeBesideDrift(downstream, { gvr, ref, current: live, desired, removed, signal })
    const text = context.drifts.note(subject, fields)
    if (text === undefined) return false
    await warnOnce(reconcile, object, { reason: 'Drifted', message: `member cluster "${member.name}": ${text}` })
    return true
  }
  await downstream.patch(gvr, ref, 'apply', desired, { fieldManager: syncerFieldManager, force: true, signal })
  return false
}

/** Deletes an object in the member, by its uid, if it has our locator of this logical cluster. */
async function deleteCopy(
  { context, clusterId, namespace, signal }: Reconcile,
  { api, name }: CustomObject,
  copy: CachedObject,
): Promise<void> {
  const locator = locatorOf(copy)
  const isOurs = locator?.clusterId === clusterId && locator?.namespace === namespace && locator.name === name
  const { uid, deletionTimestamp, namespace: memberNamespace, name: copyName = '' } = copy.metadata
  if (!isOurs || deletionTimestamp !== undefined) return
  const ref = { ...(memberNamespace !== undefined && { namespace: memberNamespace }), name: copyName }
  await context.downstream
    .delete(api.gvr, ref, { ...(uid && { uid }), propagationPolicy: 'Background', signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

async function writeStatus(
  reconcile: Reconcile,
  custom: CustomObject,
  object: CachedObject,
  status: Record<string, unknown>,
): Promise<void> {
  const was = (object['status'] ?? {}) as Record<string, unknown>
  if (canonicalJson(was) === canonicalJson(status)) return
  const patch = { metadata: { uid: object.metadata.uid }, status: replacingPatch(was, status) }
  await patchUpstream(reconcile, custom, object, patch, 'status')
}

async function patchUpstream(
  { upstreamClient, signal }: Reconcile,
  { api, version }: CustomObject,
  { metadata: { namespace, name = '' } }: CachedObject,
  patch: object,
  subresource?: 'status',
): Promise<void> {
  const ref = { ...(namespace !== undefined && { namespace }), name }
  await upstreamClient
    .patch({ ...api.gvr, version }, ref, 'merge', patch, { ...(subresource && { subresource }), signal })
    .catch(tolerate('NotFound', 'Conflict'))
}
