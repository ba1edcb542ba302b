// Pods: created in the member, copied upstream with the member's uid and status. A deletion upstream is passed on.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  isConditionTrue,
  memberAnnotation,
  memberUidAnnotation,
  placedOn,
  servingLabel,
  type ShrinkingShare,
} from '#crds/index.ts'
import { copyStatus, createCopy, deleteLive, passOnDeletion, removeCopy, type Deletion } from './member-made-copy.ts'
import { wouldBeReplaced } from '#syncer/rules/ending.ts'
import { copyHere, hasOrdinal, isShownFrom, workloadOfLive } from '#syncer/rules/entitlement.ts'
import { podRecord } from './pod-record.ts'
import { gvrs } from '#syncer/context/resources.ts'
import {
  downstreamObject,
  downstreamNamespaceOf,
  isOurs,
  locatorOf,
  upstreamObject,
  type SyncContext,
  type Visit,
} from '#syncer/context/sync-context.ts'
import { takesRequests, withdrawnPods } from './takes-requests.ts'
import { podUp } from '#syncer/transform/up.ts'
import { originUpstream } from './origin.ts'

type CachedObject = DeepReadonly<KubeObject>
interface Bound {
  nodeName?: string
}

/** Makes the upstream pod match the member's, and passes a deletion of the upstream pod on to the member. */
export async function visitPod(context: SyncContext, visit: Visit, signal: AbortSignal): Promise<void> {
  const memberNamespace = downstreamNamespaceOf(context, visit)
  if (memberNamespace === undefined) return
  const live = downstreamObject(context, 'pods', memberNamespace, visit.name)
  const known = upstreamObject(context, 'pods', visit)
  const copy = known && live && isNew(context, visit, known) ? await adopt(context, visit, live, known, signal) : known
  if (live === undefined || !isOurs(context, memberNamespace)) {
    await removePod(context, visit, copy, signal)
    return
  }
  // Of another pod of this member, of another member, or the tenant's own.
  if (copy !== undefined && !isShownFrom(context, copy, live.metadata.uid)) {
    await removePod(context, visit, copy, signal)
    return
  }
  const workload = workloadOfLive(context, visit, live)
  await setServing(context, visit, memberNamespace, live, workload, signal)
  if (
    copy?.metadata.deletionTimestamp !== undefined &&
    live.metadata.deletionTimestamp === undefined &&
    !(await wouldBeReplaced(context, visit, live, signal))
  ) {
    await deleteLive(context, 'pods', memberNamespace, { live, deletion: deletionOf(copy) }, signal)
  }
  const isTerminating = live.metadata.deletionTimestamp !== undefined
  // A pod that is being deleted and has no copy was deleted upstream by force: the copy is not created again.
  if (copy === undefined) {
    if (!isTerminating) await createPod(context, visit, live, workload, signal)
    return
  }
  await releaseCopy(context, visit, live, copy, signal)
  await updatePod(context, visit, live, copy, signal)
  if (isTerminating && copy.metadata.deletionTimestamp === undefined)
    await markTerminating(context, visit, live, copy, signal)
}

/** True for a pod that its tenant made and that is placed here, as long as it does not say which pod of the member it is. */
function isNew(context: SyncContext, visit: Visit, pod: CachedObject): boolean {
  const { [memberUidAnnotation]: uid, [memberAnnotation]: member } = pod.metadata.annotations ?? {}
  if (uid !== undefined || (member !== undefined && member !== context.member.name)) return false
  return copyHere(context, 'pods', visit) !== undefined
}

/** Writes on a tenant's pod which pod of the member it is: from now on it ends with that pod. */
async function adopt(
  { upstream, member }: SyncContext,
  { cluster, namespace, name }: Visit,
  live: CachedObject,
  pod: CachedObject,
  signal: AbortSignal,
): Promise<CachedObject> {
  const annotations = { [memberAnnotation]: member.name, [memberUidAnnotation]: live.metadata.uid }
  const metadata = { ...(pod.metadata.uid && { uid: pod.metadata.uid }), annotations }
  return await upstream.client(cluster).patch(gvrs.pods, { namespace, name }, 'merge', { metadata }, { signal })
}

/** Deletes the upstream pod with the member's grace period, so that `kubectl exec deployment/...` chooses another pod. */
async function markTerminating(
  { upstream }: SyncContext,
  { cluster, namespace, name }: Visit,
  { metadata: { deletionGracePeriodSeconds = 30 } }: CachedObject,
  { metadata: { uid } }: CachedObject,
  signal: AbortSignal,
): Promise<void> {
  // With 0 seconds the upstream pod would be gone before the member's.
  const gracePeriodSeconds = deletionGracePeriodSeconds < 1 ? 1 : deletionGracePeriodSeconds
  await upstream
    .client(cluster)
    .delete(gvrs.pods, { namespace, name }, { ...(uid && { uid }), gracePeriodSeconds, signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/** The upstream pod is gone: deletes the member's pod with the same grace period, if it is the pod of that copy. */
export async function passOnDeletionOfPod(
  context: SyncContext,
  visit: Visit,
  copy: CachedObject,
  signal: AbortSignal,
): Promise<void> {
  const memberNamespace = downstreamNamespaceOf(context, visit)
  const live = memberNamespace && downstreamObject(context, 'pods', memberNamespace, visit.name)
  if (live && (await wouldBeReplaced(context, visit, live, signal))) return
  await passOnDeletion(context, 'pods', visit, { copy, deletion: deletionOf(copy) }, signal)
}

/** The grace period with which the tenant deleted the pod. */
function deletionOf({ metadata: { deletionGracePeriodSeconds: grace } }: CachedObject): Deletion {
  return grace === undefined ? {} : { gracePeriodSeconds: grace }
}

async function removePod(
  context: SyncContext,
  visit: Visit,
  copy: CachedObject | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (copy?.metadata.annotations?.[memberAnnotation] !== context.member.name) return
  await removeCopy(context, 'pods', visit, { copy, deletion: { gracePeriodSeconds: 0 } }, signal)
}

/** Pods that end next take no new requests and keep running. The label is not in the selector of ReplicaSets. */
async function setServing(
  context: SyncContext,
  { name }: Visit,
  memberNamespace: string,
  live: CachedObject,
  workload: CachedObject | undefined,
  signal: AbortSignal,
): Promise<void> {
  const decided = workload && placedOn(workload as KubeObject)[context.member.name]
  const isWithdrawn = decided?.shrinking !== undefined && endsNext(context, memberNamespace, live, decided.shrinking)
  const serving = String(!isWithdrawn && takesRequests(workload?.kind, decided, name))
  if (
    live.metadata.labels?.[servingLabel] === serving ||
    decided === undefined ||
    live.metadata.deletionTimestamp !== undefined
  )
    return
  const wasFirst = live.metadata.annotations?.[deletionCostAnnotation] === endsFirst
  const cost = isWithdrawn ? endsFirst : wasFirst ? null : undefined
  const metadata = {
    uid: live.metadata.uid,
    labels: { [servingLabel]: serving },
    ...(cost !== undefined && { annotations: { [deletionCostAnnotation]: cost } }),
  }
  await context.downstream.patch(gvrs.pods, { namespace: memberNamespace, name }, 'merge', { metadata }, { signal })
}

/** A ReplicaSet ends the pods with the lowest cost first; others have 0. */
const deletionCostAnnotation = 'controller.kubernetes.io/pod-deletion-cost'
const endsFirst = '-1000'

/** Whether the pod is one of those that its ReplicaSet will end when the share of the member has shrunk. */
function endsNext(context: SyncContext, memberNamespace: string, live: CachedObject, { to }: ShrinkingShare): boolean {
  const controller = live.metadata.ownerReferences?.find((owner) => owner.controller === true)
  if (controller === undefined) return false
  const pods = [...context.controlledBy('pods', memberNamespace, controller)]
    .filter((pod) => pod.metadata.deletionTimestamp === undefined && isOwnedBy(pod, controller.uid))
    .map((pod) => ({
      name: pod.metadata.name ?? '',
      isReady: isConditionTrue(pod as Parameters<typeof isConditionTrue>[0], 'Ready'),
      takesRequests: pod.metadata.labels?.[servingLabel] !== 'false',
    }))
  return withdrawnPods(pods, to).includes(live.metadata.name ?? '')
}

function isOwnedBy({ metadata }: CachedObject, uid: string): boolean {
  return metadata.ownerReferences?.some((owner) => owner.uid === uid) === true
}

async function createPod(
  context: SyncContext,
  visit: Visit,
  live: CachedObject,
  workload: CachedObject | undefined,
  signal: AbortSignal,
): Promise<void> {
  // Copied once it is bound, because then only its status changes; or once it is known to be unschedulable.
  if ((live['spec'] as Bound | undefined)?.nodeName === undefined && !isUnschedulable(live)) return
  const origin = workload && originUpstream(context, visit, live)
  if (origin === undefined) {
    // The ReplicaSet is created first, so that garbage collection never finds a pod with an absent owner.
    if (workload?.kind === 'Deployment')
      context.enqueue({ ...visit, kind: 'history', name: workload.metadata.name ?? '' })
    return
  }
  const ordinal = Number(visit.name.slice(visit.name.lastIndexOf('-') + 1))
  if (origin.found.kind === 'StatefulSet' && !hasOrdinal(context, origin.workload, ordinal)) return
  const object = podUp(live, {
    ...{ namespace: visit.namespace, member: context.member.name, owner: origin.owner },
    record: podRecord(context, visit, live, origin),
  })
  const created = await createCopy(context, 'pods', visit, { live, object }, signal)
  if (created !== undefined) await updatePod(context, visit, live, created, signal)
}

function isUnschedulable(live: CachedObject): boolean {
  const { conditions = [] } = (live['status'] ?? {}) as { conditions?: readonly { type: string; status: string }[] }
  return conditions.some(({ type, status }) => type === 'PodScheduled' && status === 'False')
}

/** A pod whose labels do not match its owner any more is released by the member's controller: it stays, without an owner. */
async function releaseCopy(
  { upstream }: SyncContext,
  { cluster, namespace, name }: Visit,
  live: CachedObject,
  { metadata: { uid, ownerReferences = [] } }: CachedObject,
  signal: AbortSignal,
): Promise<void> {
  const isOwned = ({ metadata }: CachedObject): boolean =>
    metadata.ownerReferences?.some(({ controller }) => controller === true) ?? false
  if (locatorOf(live) !== undefined || isOwned(live) || !ownerReferences.some(({ controller }) => controller === true))
    return
  const kept = ownerReferences.filter(({ controller }) => controller !== true)
  const metadata = { ...(uid && { uid }), ownerReferences: kept.length === 0 ? null : kept }
  await upstream.client(cluster).patch(gvrs.pods, { namespace, name }, 'merge', { metadata }, { signal })
}

/** Copies the binding and the status of the member's pod. */
async function updatePod(
  context: SyncContext,
  visit: Visit,
  live: CachedObject,
  copy: CachedObject,
  signal: AbortSignal,
): Promise<void> {
  // The operator has said of its pods that they are not Ready.
  if (context.member.loss?.isLost()) return
  const { nodeName } = (live['spec'] ?? {}) as Bound
  const isBound = nodeName === undefined || (copy['spec'] as Bound | undefined)?.nodeName !== undefined
  const current = isBound ? copy : await bind(context, visit, copy, nodeName, signal)
  await copyStatus(context, 'pods', visit, { live, copy: current }, signal)
}

async function bind(
  context: SyncContext,
  { cluster, namespace, name }: Visit,
  copy: CachedObject,
  nodeName: string,
  signal: AbortSignal,
): Promise<CachedObject> {
  const client = context.upstream.client(cluster)
  const target = { apiVersion: 'v1', kind: 'Node', name: nodeName }
  const { uid } = copy.metadata
  const binding: KubeObject = {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { name, namespace, ...(uid && { uid }) },
    target,
  }
  try {
    await client.create(gvrs.pods, binding, { subresource: 'binding', signal })
  } catch (error) {
    // A server without this subresource cannot be told the node of the pod; its status can still be written.
    if (!isStatusError(error) || (error.code !== 404 && error.code !== 405)) throw error
    context.log.debug('a pod could not be bound upstream', { cluster, namespace, name, error })
    return copy
  }
  return await client.get<KubeObject>(gvrs.pods, { namespace, name }, { signal })
}
