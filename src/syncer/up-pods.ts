// Pods: created in the member, copied upstream with the member's uid and status. A deletion upstream is passed on.
import type { KubeObject, OwnerReference } from '../apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '../apimachinery/status/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import {
  canonicalJson,
  keepUidHeader,
  memberAnnotation,
  memberUidAnnotation,
  memberStatusesOf,
  placedOn,
  servingLabel,
  workloadKinds,
} from '../crds/index.ts'
import { gvrs } from './resources/resources.ts'
import {
  downstreamObject,
  downstreamNamespaceOf,
  isOurs,
  upstreamObject,
  type SyncContext,
  type Visit,
} from './sync-context.ts'
import { podUp, templateHashLabel, type PodOwner } from './transform/up.ts'
import type { ReplicaSetMemberStatus } from './up-history.ts'
import { ownerName } from './workload-owner.ts'

type CachedObject = DeepReadonly<KubeObject>
interface Bound {
  nodeName?: string
}

/** The upstream pod has the uid and status of the member's pod. */
const keepUid = { [keepUidHeader]: 'true' }

/** Makes the upstream pod match the member's, and passes a deletion of the upstream pod on to the member. */
export async function visitPod(context: SyncContext, visit: Visit, signal: AbortSignal): Promise<void> {
  const memberNamespace = downstreamNamespaceOf(context, visit)
  if (memberNamespace === undefined) return
  const live = downstreamObject(context, 'pods', memberNamespace, visit.name)
  const copy = upstreamObject(context, 'pods', visit)
  if (live === undefined || !isOurs(context, memberNamespace)) {
    await removeCopy(context, visit, memberNamespace, copy, signal)
    return
  }
  if (copy !== undefined && memberUid(copy) !== live.metadata.uid) {
    await removeCopy(context, visit, memberNamespace, copy, signal)
    return
  }
  const workload = workloadOf(context, visit, memberNamespace, live)
  await setServing(context, visit, memberNamespace, live, workload, signal)
  if (copy?.metadata.deletionTimestamp !== undefined && live.metadata.deletionTimestamp === undefined) {
    await deleteLive(context, memberNamespace, live, copy.metadata.deletionGracePeriodSeconds, signal)
  }
  const isTerminating = live.metadata.deletionTimestamp !== undefined
  // A pod that is being deleted and has no copy was deleted upstream by force: the copy is not created again.
  if (copy === undefined) {
    if (!isTerminating) await createCopy(context, visit, memberNamespace, live, workload, signal)
    return
  }
  await updateCopy(context, visit, live, copy, signal)
  if (isTerminating && copy.metadata.deletionTimestamp === undefined)
    await markTerminating(context, visit, live, copy, signal)
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
  const gracePeriodSeconds = Math.max(1, deletionGracePeriodSeconds)
  await upstream
    .client(cluster)
    .delete(gvrs.pods, { namespace, name }, { ...(uid && { uid }), gracePeriodSeconds, signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/** The upstream pod is gone: deletes the member's pod with the same grace period, if it is the pod of that copy. */
export async function passOnDeletion(
  context: SyncContext,
  visit: Visit,
  copy: CachedObject,
  signal: AbortSignal,
): Promise<void> {
  const memberNamespace = downstreamNamespaceOf(context, visit)
  if (memberNamespace === undefined || !isOurs(context, memberNamespace)) return
  const live = downstreamObject(context, 'pods', memberNamespace, visit.name)
  if (live === undefined || live.metadata.uid !== memberUid(copy) || live.metadata.deletionTimestamp !== undefined)
    return
  await deleteLive(context, memberNamespace, live, copy.metadata.deletionGracePeriodSeconds, signal)
}

/** The uid of the member's pod of which this upstream pod is a copy. */
export function memberUid({ metadata }: CachedObject): string | undefined {
  return metadata.annotations?.[memberUidAnnotation] ?? metadata.uid
}

async function deleteLive(
  { downstream }: SyncContext,
  namespace: string,
  { metadata: { name = '', uid } }: CachedObject,
  grace: number | undefined,
  signal: AbortSignal,
): Promise<void> {
  await downstream
    .delete(
      gvrs.pods,
      { namespace, name },
      { ...(uid && { uid }), ...(grace !== undefined && { gracePeriodSeconds: grace }), signal },
    )
    .catch(tolerate('NotFound', 'Conflict'))
}

/** Deletes the upstream copy after asking the member, not only its cache, that the pod is gone. */
async function removeCopy(
  context: SyncContext,
  visit: Visit,
  memberNamespace: string,
  copy: CachedObject | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (copy?.metadata.annotations?.[memberAnnotation] !== context.member.name) return
  const { cluster, namespace, name } = visit
  const live = await context.downstream.tryGet(gvrs.pods, { namespace: memberNamespace, name }, { signal })
  if (live !== undefined && live.metadata.uid === memberUid(copy)) return
  const { uid } = copy.metadata
  await context.upstream
    .client(cluster)
    .delete(gvrs.pods, { namespace, name }, { ...(uid && { uid }), gracePeriodSeconds: 0, signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/** The upstream workload of the member's pod, through the object of its history between them, if its kind has one. */
function workloadOf(
  context: SyncContext,
  { cluster, namespace }: Visit,
  memberNamespace: string,
  live: CachedObject,
): CachedObject | undefined {
  for (const { gvr, kind, history } of workloadKinds) {
    const between = history && ownerName(live, history.kind)
    const owner = between ? downstreamObject(context, history.gvr.resource, memberNamespace, between) : live
    const name = owner && ownerName(owner, kind)
    if (name !== undefined) return upstreamObject(context, gvr.resource, { cluster, namespace, name })
  }
  return undefined
}

/** Pods of a draining copy take no new traffic and keep running. The label is not in the selector of ReplicaSets. */
async function setServing(
  context: SyncContext,
  { name }: Visit,
  memberNamespace: string,
  live: CachedObject,
  workload: CachedObject | undefined,
  signal: AbortSignal,
): Promise<void> {
  const state = workload === undefined ? undefined : placedOn(workload as KubeObject)[context.member.name]?.state
  const serving = state === 'Draining' || state === 'Terminating' ? 'false' : 'true'
  if (
    live.metadata.labels?.[servingLabel] === serving ||
    state === undefined ||
    live.metadata.deletionTimestamp !== undefined
  )
    return
  const metadata = { uid: live.metadata.uid, labels: { [servingLabel]: serving } }
  await context.downstream.patch(gvrs.pods, { namespace: memberNamespace, name }, 'merge', { metadata }, { signal })
}

async function createCopy(
  context: SyncContext,
  visit: Visit,
  memberNamespace: string,
  live: CachedObject,
  workload: CachedObject | undefined,
  signal: AbortSignal,
): Promise<void> {
  // Copied once it is bound, because then only its status changes; or once it is known to be unschedulable.
  if ((live['spec'] as Bound | undefined)?.nodeName === undefined && !isUnschedulable(live)) return
  const owner = workload === undefined ? undefined : ownerUpstream(context, visit, live)
  if (owner === undefined) {
    // The ReplicaSet is created first, so that garbage collection never finds a pod with an absent owner.
    if (workload !== undefined) context.enqueue({ ...visit, kind: 'history', name: workload.metadata.name ?? '' })
    return
  }
  const client = context.upstream.client(visit.cluster)
  const object = podUp(live, { namespace: visit.namespace, member: context.member.name, owner })
  let created: KubeObject
  try {
    created = await client.create<KubeObject>(gvrs.pods, object, { headers: keepUid, signal })
  } catch (error) {
    // Our cache is behind: the event of the existing pod causes the next visit.
    if (isStatusError(error, 'AlreadyExists')) return
    throw error
  }
  if (created.metadata.uid !== live.metadata.uid) {
    // The server has set a uid of its own, as an ordinary cluster does: the member's uid is kept in an annotation.
    const metadata = { annotations: { [memberUidAnnotation]: live.metadata.uid } }
    created = await client.patch(
      gvrs.pods,
      { namespace: visit.namespace, name: visit.name },
      'merge',
      { metadata },
      { signal },
    )
  }
  await updateCopy(context, visit, live, created, signal)
}

function isUnschedulable(live: CachedObject): boolean {
  const { conditions = [] } = (live['status'] ?? {}) as { conditions?: readonly { type: string; status: string }[] }
  return conditions.some(({ type, status }) => type === 'PodScheduled' && status === 'False')
}

/** The upstream ReplicaSet of the pod's ReplicaSet in this member. */
function ownerUpstream(context: SyncContext, { cluster, namespace }: Visit, live: CachedObject): PodOwner | undefined {
  const name = ownerName(live, 'ReplicaSet')
  for (const object of context.upstreamIn('replicasets', cluster, namespace)) {
    if (memberStatusesOf<ReplicaSetMemberStatus>(object as KubeObject)[context.member.name]?.name !== name) continue
    const reference: OwnerReference = {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      name: object.metadata.name ?? '',
      uid: object.metadata.uid ?? '',
      controller: true,
      blockOwnerDeletion: true,
    }
    return { reference, templateHash: object.metadata.labels?.[templateHashLabel] }
  }
  return undefined
}

/** Copies the binding and the status of the member's pod. */
async function updateCopy(
  context: SyncContext,
  visit: Visit,
  live: CachedObject,
  copy: CachedObject,
  signal: AbortSignal,
): Promise<void> {
  const { cluster, namespace, name } = visit
  const client = context.upstream.client(cluster)
  const { nodeName } = (live['spec'] ?? {}) as Bound
  let current = copy
  if (nodeName !== undefined && (copy['spec'] as Bound | undefined)?.nodeName === undefined) {
    current = await bind(context, visit, copy, nodeName, signal)
  }
  if (canonicalJson(current['status'] ?? {}) === canonicalJson(live['status'] ?? {})) return
  // A merge patch, not an update: the cached object has the annotation that only lists over all clusters have.
  const was = (current['status'] ?? {}) as Record<string, unknown>
  const status = (live['status'] ?? {}) as Record<string, unknown>
  const cleared = Object.fromEntries(
    Object.keys(was)
      .filter((field) => !(field in status))
      .map((field) => [field, null]),
  )
  const patch = { metadata: { uid: current.metadata.uid }, status: { ...cleared, ...status } }
  await client.patch(gvrs.pods, { namespace, name }, 'merge', patch, { subresource: 'status', signal })
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
