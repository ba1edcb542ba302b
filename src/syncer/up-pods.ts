// Pods: made in the member, shown upstream with the member's uid and status; the tenant's deletion is passed on.
import type { KubeObject, OwnerReference } from '../apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '../apimachinery/status/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import {
  canonicalJson,
  memberAnnotation,
  memberUidAnnotation,
  piecesOf,
  placedOn,
  servingLabel,
} from '../crds/index.ts'
import { gvrs } from './synced-kinds.ts'
import {
  downstreamObject,
  downstreamSpace,
  isOurs,
  upstreamObject,
  type SyncContext,
  type Visit,
} from './sync-context.ts'
import { podUp, templateHashLabel, type PodOwner } from './transform/up.ts'
import { ownerName, type ReplicaSetPiece } from './up-history.ts'

type Kept = DeepReadonly<KubeObject>
interface Bound {
  nodeName?: string
}

/** Asks the server to take uid and status as they are: the pod is the member's. */
const keepUid = { 'kcp-keep-uid': 'true' }

/** Makes the upstream pod agree with the member's, and the member's with what the tenant asked of the upstream one. */
export async function visitPod(context: SyncContext, visit: Visit, signal: AbortSignal): Promise<void> {
  const space = downstreamSpace(context, visit)
  if (space === undefined) return
  const live = downstreamObject(context, 'pods', space, visit.name)
  const copy = upstreamObject(context, 'pods', visit)
  if (live === undefined || !isOurs(context, space)) {
    await removeCopy(context, visit, space, copy, signal)
    return
  }
  if (copy !== undefined && memberUid(copy) !== live.metadata.uid) {
    await removeCopy(context, visit, space, copy, signal)
    return
  }
  const workload = workloadOf(context, visit, space, live)
  await setServing(context, visit, space, live, workload, signal)
  if (copy?.metadata.deletionTimestamp !== undefined && live.metadata.deletionTimestamp === undefined) {
    await deleteLive(context, space, live, copy.metadata.deletionGracePeriodSeconds, signal)
  }
  const isEnding = live.metadata.deletionTimestamp !== undefined
  // One that is going and not shown has been deleted upstream by force: it does not come back.
  if (copy === undefined) {
    if (!isEnding) await createCopy(context, visit, space, live, workload, signal)
    return
  }
  await updateCopy(context, visit, live, copy, signal)
  if (isEnding && copy.metadata.deletionTimestamp === undefined) await showEnding(context, visit, live, copy, signal)
}

/** Terminating here as well, for as long as the member takes: `kubectl exec deployment/...` chooses another pod then. */
async function showEnding(
  { upstream }: SyncContext,
  { cluster, namespace, name }: Visit,
  { metadata: { deletionGracePeriodSeconds = 30 } }: Kept,
  { metadata: { uid } }: Kept,
  signal: AbortSignal,
): Promise<void> {
  // Without grace it would be gone at once, before the member's is.
  const gracePeriodSeconds = Math.max(1, deletionGracePeriodSeconds)
  await upstream
    .client(cluster)
    .delete(gvrs.pods, { namespace, name }, { ...(uid && { uid }), gracePeriodSeconds, signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/** The tenant's pod was deleted at once, with grace or by force: the member's goes the same way, if it is still the same. */
export async function passOnDeletion(
  context: SyncContext,
  visit: Visit,
  copy: Kept,
  signal: AbortSignal,
): Promise<void> {
  const space = downstreamSpace(context, visit)
  if (space === undefined || !isOurs(context, space)) return
  const live = downstreamObject(context, 'pods', space, visit.name)
  if (live === undefined || live.metadata.uid !== memberUid(copy) || live.metadata.deletionTimestamp !== undefined)
    return
  await deleteLive(context, space, live, copy.metadata.deletionGracePeriodSeconds, signal)
}

/** The uid of the member's pod that an upstream pod stands for. */
export function memberUid({ metadata }: Kept): string | undefined {
  return metadata.annotations?.[memberUidAnnotation] ?? metadata.uid
}

async function deleteLive(
  { downstream }: SyncContext,
  namespace: string,
  { metadata: { name = '', uid } }: Kept,
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

/** The upstream copy goes when the member's pod has gone: asked of the member, not only of our memory of it. */
async function removeCopy(
  context: SyncContext,
  visit: Visit,
  space: string,
  copy: Kept | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (copy?.metadata.annotations?.[memberAnnotation] !== context.member.name) return
  const { cluster, namespace, name } = visit
  const live = await context.downstream.tryGet(gvrs.pods, { namespace: space, name }, { signal })
  if (live !== undefined && live.metadata.uid === memberUid(copy)) return
  const { uid } = copy.metadata
  await context.upstream
    .client(cluster)
    .delete(gvrs.pods, { namespace, name }, { ...(uid && { uid }), gracePeriodSeconds: 0, signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/** The upstream Deployment that made the pod. */
function workloadOf(context: SyncContext, { cluster, namespace }: Visit, space: string, live: Kept): Kept | undefined {
  const replicaSet = ownerName(live, 'ReplicaSet')
  const owner = replicaSet === undefined ? undefined : downstreamObject(context, 'replicasets', space, replicaSet)
  const name = owner === undefined ? undefined : ownerName(owner, 'Deployment')
  return name === undefined ? undefined : upstreamObject(context, 'deployments', { cluster, namespace, name })
}

/** Pods of a copy that drains stop taking traffic; they live on until the drain is over. ReplicaSets don't notice. */
async function setServing(
  context: SyncContext,
  { name }: Visit,
  space: string,
  live: Kept,
  workload: Kept | undefined,
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
  await context.downstream.patch(gvrs.pods, { namespace: space, name }, 'merge', { metadata }, { signal })
}

async function createCopy(
  context: SyncContext,
  visit: Visit,
  space: string,
  live: Kept,
  workload: Kept | undefined,
  signal: AbortSignal,
): Promise<void> {
  // Shown from when it is bound, as then nothing but its status changes; or from when it is known that it can't be.
  if ((live['spec'] as Bound | undefined)?.nodeName === undefined && !isUnschedulable(live)) return
  const owner = workload === undefined ? undefined : ownerUpstream(context, visit, live)
  if (owner === undefined) {
    // The ReplicaSet goes up first, so that garbage collection never finds a pod whose owner it does not know.
    if (workload !== undefined) context.enqueue({ ...visit, kind: 'history', name: workload.metadata.name ?? '' })
    return
  }
  const client = context.upstream.client(visit.cluster)
  const object = podUp(live, { namespace: visit.namespace, member: context.member.name, owner })
  let created: KubeObject
  try {
    created = await client.create<KubeObject>(gvrs.pods, object, { headers: keepUid, signal })
  } catch (error) {
    // Ours, and our cache is behind: its event brings us back.
    if (isStatusError(error, 'AlreadyExists')) return
    throw error
  }
  if (created.metadata.uid !== live.metadata.uid) {
    // A server that gives uids of its own, such as an ordinary cluster: the member's is kept beside it.
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

function isUnschedulable(live: Kept): boolean {
  const { conditions = [] } = (live['status'] ?? {}) as { conditions?: readonly { type: string; status: string }[] }
  return conditions.some(({ type, status }) => type === 'PodScheduled' && status === 'False')
}

/** The upstream ReplicaSet that stands for the pod's in this member. */
function ownerUpstream(context: SyncContext, { cluster, namespace }: Visit, live: Kept): PodOwner | undefined {
  const name = ownerName(live, 'ReplicaSet')
  for (const object of context.upstreamIn('replicasets', cluster, namespace)) {
    if (piecesOf<ReplicaSetPiece>(object as KubeObject)[context.member.name]?.name !== name) continue
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

/** Binding and status follow the member's. */
async function updateCopy(
  context: SyncContext,
  visit: Visit,
  live: Kept,
  copy: Kept,
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
  // A merge patch, not an update: the object from our cache says things that only a list over all clusters says.
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
  copy: Kept,
  nodeName: string,
  signal: AbortSignal,
): Promise<Kept> {
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
    // A server without that subresource can't be told where the pod runs now; its status it can.
    if (!isStatusError(error) || (error.code !== 404 && error.code !== 405)) throw error
    context.log.debug('a pod could not be bound upstream', { cluster, namespace, name, error })
    return copy
  }
  return await client.get<KubeObject>(gvrs.pods, { namespace, name }, { signal })
}
