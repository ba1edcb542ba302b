// Pods: created in the member, copied upstream with the member's uid and status. A deletion upstream is passed on.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import {
  isConditionTrue,
  memberAnnotation,
  memberNamespaceAnnotation,
  memberUidAnnotation,
  placedOn,
  servingLabel,
  type ShrinkingShare,
} from '#crds/index.ts'
import { controllerOf } from '#syncer/context/owners.ts'
import { gvrs, type CachedObject } from '#syncer/context/resources.ts'
import type { Reconcile, Scope } from '#syncer/context/scope.ts'
import { wouldBeReplaced } from '#syncer/rules/ending.ts'
import { copyHere, hasOrdinal, isShownFrom, workloadOfLive } from '#syncer/rules/entitlement.ts'
import { podUp } from '#syncer/transform/up.ts'
import { labelEphemeralClaims } from './ephemeral-claims.ts'
import { followOwner } from './follow-owner.ts'
import { copyStatus, createCopy, deleteLive, passOnDeletion, removeCopy, type Deletion } from './member-made-copy.ts'
import { originUpstream } from './origin.ts'
import { podRecord } from './pod-record.ts'
import { takesRequests, withdrawnPods } from './takes-requests.ts'

interface Bound {
  nodeName?: string
}

/** Makes the upstream pod match the member's, and passes a deletion of the upstream pod on to the member. */
export async function reconcilePod(reconcile: Reconcile): Promise<void> {
  const { name } = reconcile
  if (reconcile.memberNamespace === undefined) return
  const live = reconcile.live('pods', name)
  const known = reconcile.upstream('pods', name)
  const copy = known && live && isNew(reconcile, known) ? await adopt(reconcile, live, known) : known
  // If it is false, the upstream pod shows another pod of this member, is of another member, or is the tenant's own.
  const isShown = live !== undefined && (copy === undefined || isShownFrom(reconcile, copy, live.metadata.uid))
  if (!isShown || !reconcile.isOurs) return removePod(reconcile, copy)
  const workload = workloadOfLive(reconcile, live)
  await setServing(reconcile, live, workload)
  if (workload !== undefined) await labelEphemeralClaims(reconcile, live)
  const isTerminating = live.metadata.deletionTimestamp !== undefined
  const isDeleted = copy?.metadata.deletionTimestamp !== undefined
  if (isDeleted && !isTerminating && !(await wouldBeReplaced(reconcile, live)))
    await deleteLive(reconcile, 'pods', live, deletionOf(copy))
  // A pod that is being deleted and has no copy was deleted upstream by force: the copy is not created again.
  if (copy === undefined) return isTerminating ? undefined : createPod(reconcile, live, workload)
  await followOwner(reconcile, 'pods', live, copy)
  await updatePod(reconcile, live, copy)
  if (isTerminating && !isDeleted) await markTerminating(reconcile, live, copy)
}

/**
 * True for a pod that its tenant made and that is placed here, as long as it does not have the uid of the member's pod
 * yet.
 */
function isNew(reconcile: Reconcile, pod: CachedObject): boolean {
  const { [memberUidAnnotation]: uid, [memberAnnotation]: member } = pod.metadata.annotations ?? {}
  if (uid !== undefined || (member !== undefined && member !== reconcile.member.name)) return false
  return copyHere(reconcile, 'pods', reconcile.name) !== undefined
}

/** Writes the uid of the member's pod on a tenant's pod: from now on the tenant's pod ends with the member's. */
async function adopt(reconcile: Reconcile, live: CachedObject, pod: CachedObject): Promise<CachedObject> {
  const { member, ref, signal } = reconcile
  const annotations = { [memberAnnotation]: member.name, [memberUidAnnotation]: live.metadata.uid }
  const metadata = { ...(pod.metadata.uid && { uid: pod.metadata.uid }), annotations }
  return await reconcile.upstreamClient.patch(gvrs.pods, ref, 'merge', { metadata }, { signal })
}

/**
 * Deletes the upstream pod with the member's grace period, so that `kubectl exec deployment/...` chooses another pod.
 */
async function markTerminating(
  { upstreamClient, ref, signal }: Reconcile,
  { metadata: { deletionGracePeriodSeconds = 30 } }: CachedObject,
  { metadata: { uid } }: CachedObject,
): Promise<void> {
  // With 0 seconds the upstream pod would be gone before the member's.
  const gracePeriodSeconds = deletionGracePeriodSeconds < 1 ? 1 : deletionGracePeriodSeconds
  await upstreamClient
    .delete(gvrs.pods, ref, { ...(uid && { uid }), gracePeriodSeconds, signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/** The upstream pod is gone: deletes the member's pod with the same grace period, if it is the pod of that copy. */
export async function passOnDeletionOfPod(reconcile: Reconcile, copy: CachedObject): Promise<void> {
  const live = reconcile.live('pods', reconcile.name)
  if (live && (await wouldBeReplaced(reconcile, live))) return
  await passOnDeletion(reconcile, 'pods', copy, deletionOf(copy))
}

/** The grace period with which the tenant deleted the pod. */
function deletionOf({ metadata: { deletionGracePeriodSeconds: grace } }: CachedObject): Deletion {
  return grace === undefined ? {} : { gracePeriodSeconds: grace }
}

async function removePod(reconcile: Reconcile, copy: CachedObject | undefined): Promise<void> {
  if (copy?.metadata.annotations?.[memberAnnotation] !== reconcile.member.name) return
  await removeCopy(reconcile, 'pods', copy, { gracePeriodSeconds: 0 })
}

/**
 * Writes on the member's pod whether it takes new requests: pods that end next take none and keep running. The label is
 * not in the selector of ReplicaSets.
 */
async function setServing(reconcile: Reconcile, live: CachedObject, workload: CachedObject | undefined): Promise<void> {
  const { context, member, signal } = reconcile
  const { name = '', namespace = '', uid, labels, annotations, deletionTimestamp } = live.metadata
  const decided = workload && placedOn(workload as KubeObject)[member.name]
  if (decided === undefined || deletionTimestamp !== undefined) return
  const isWithdrawn = decided.shrinking !== undefined && endsNext(reconcile, live, decided.shrinking)
  const serving = String(!isWithdrawn && takesRequests(workload?.kind, decided, name))
  if (labels?.[servingLabel] === serving) return
  const wasFirst = annotations?.[deletionCostAnnotation] === endsFirst
  const cost = isWithdrawn ? endsFirst : wasFirst ? null : undefined
  const metadata = {
    uid,
    labels: { [servingLabel]: serving },
    ...(cost !== undefined && { annotations: { [deletionCostAnnotation]: cost } }),
  }
  await context.downstream.patch(gvrs.pods, { namespace, name }, 'merge', { metadata }, { signal })
}

/** A ReplicaSet ends the pods with the lowest cost first; pods without this annotation have cost 0. */
const deletionCostAnnotation = 'controller.kubernetes.io/pod-deletion-cost'
const endsFirst = '-1000'

/** Whether the pod is one of those that its ReplicaSet will end when the share of the member has shrunk. */
function endsNext(scope: Scope, live: CachedObject, { to }: ShrinkingShare): boolean {
  const controller = controllerOf(live)
  if (controller === undefined) return false
  const pods = [...scope.controlledBy('pods', controller)]
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

async function createPod(reconcile: Reconcile, live: CachedObject, workload: CachedObject | undefined): Promise<void> {
  const { name, namespace, member } = reconcile
  // A pod is copied once it is bound, because then only its status changes, or once it is known to be unschedulable.
  if ((live['spec'] as Bound | undefined)?.nodeName === undefined && !isUnschedulable(live)) return
  const origin = workload && originUpstream(reconcile, live)
  if (origin === undefined) {
    // The ReplicaSet is created first, so that garbage collection never finds a pod with an absent owner.
    if (workload?.kind === 'Deployment') reconcile.enqueue('history', workload.metadata.name)
    return
  }
  const ordinal = Number(name.slice(name.lastIndexOf('-') + 1))
  if (origin.found.kind === 'StatefulSet' && !hasOrdinal(reconcile, origin.workload, ordinal)) return
  const object = podUp(live, {
    namespace,
    member: member.name,
    owner: origin.owner,
    record: podRecord(reconcile, live, origin),
  })
  const { adopted } = reconcile
  // The API server finds the member's pod for logs and exec by this name.
  if (adopted !== undefined)
    object.metadata.annotations = { ...object.metadata.annotations, [memberNamespaceAnnotation]: adopted.namespace }
  const created = await createCopy(reconcile, 'pods', live, object)
  if (created !== undefined) await updatePod(reconcile, live, created)
}

function isUnschedulable(live: CachedObject): boolean {
  const { conditions = [] } = (live['status'] ?? {}) as { conditions?: readonly { type: string; status: string }[] }
  return conditions.some(({ type, status }) => type === 'PodScheduled' && status === 'False')
}

/** Copies the binding and the status of the member's pod. */
async function updatePod(reconcile: Reconcile, live: CachedObject, copy: CachedObject): Promise<void> {
  // The operator has marked the pods of a lost member not Ready.
  if (reconcile.member.loss?.isLost()) return
  const { nodeName } = (live['spec'] ?? {}) as Bound
  const isBound = nodeName === undefined || (copy['spec'] as Bound | undefined)?.nodeName !== undefined
  const current = isBound ? copy : await bind(reconcile, copy, nodeName)
  await copyStatus(reconcile, 'pods', live, current)
}

async function bind(reconcile: Reconcile, copy: CachedObject, nodeName: string): Promise<CachedObject> {
  const { context, cluster, namespace, name, ref, signal } = reconcile
  const client = reconcile.upstreamClient
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
  return await client.get<KubeObject>(gvrs.pods, ref, { signal })
}
