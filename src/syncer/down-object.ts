// One upstream object and its copy in the member: apply it, keep it true, take it away.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import { conflict, tolerate } from '../apimachinery/status/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import { contentHash, syncerFieldManager, syncerFinalizer } from '../crds/index.ts'
import { saysAll } from './says-all.ts'
import { ensureNamespace } from './down-namespace.ts'
import { leaveWith } from './leave-namespace.ts'
import { clearError, clearPiece, reportError } from './piece.ts'
import { referencesOf } from './references.ts'
import { gvrs, syncedKinds, type SyncedKind } from './synced-kinds.ts'
import {
  downstreamObject,
  downstreamSpace,
  isOurs,
  locatorOf,
  upstreamObject,
  type SyncContext,
  type Visit,
} from './sync-context.ts'
import type { PodSpec } from './transform/pod-types.ts'

/** On downstream objects: the content we applied, so that a field we no longer set is taken back. */
const appliedAnnotation = 'kcp.dev/applied'

/** Makes the member agree with the upstream object. Returns the object upstream while it is wanted there. */
export async function visitObject(
  context: SyncContext,
  visit: Visit,
  signal: AbortSignal,
): Promise<DeepReadonly<KubeObject> | undefined> {
  const kind = syncedKinds.find(({ resource }) => resource === visit.kind)
  if (kind === undefined) return undefined
  const object = upstreamObject(context, kind.resource, visit)
  const view = context.view(visit.cluster, visit.namespace)
  if (object !== undefined && object.metadata.deletionTimestamp === undefined && kind.wanted(object, view)) {
    try {
      await applyObject(context, kind, object, visit, signal)
    } catch (error) {
      await reportError(context, kind.resource, visit, error, signal)
      throw error
    }
    await clearError(context, kind.resource, visit, signal)
    return object
  }
  await removeObject(context, kind, object, visit, signal)
  await clearError(context, kind.resource, visit, signal)
  return undefined
}

async function applyObject(
  context: SyncContext,
  kind: SyncedKind,
  object: DeepReadonly<KubeObject>,
  visit: Visit,
  signal: AbortSignal,
): Promise<void> {
  if (kind.workload) await addFinalizer(context, kind, object, visit, signal)
  const namespace = await ensureNamespace(context, visit, signal)
  if (kind.workload) await applyReferences(context, object, visit, signal)
  const desired = desiredCopy(context, kind, object, visit)
  const name = visit.name
  const current = downstreamObject(context, kind.resource, namespace, name)
  refuseForeign(kind, current, desired, visit)
  if (current !== undefined && saysAll(current, desired)) return
  if (current?.metadata.deletionTimestamp !== undefined)
    throw conflict(gvrs[kind.resource], name, 'the copy in the member is still being deleted')
  await context.downstream.patch(gvrs[kind.resource], { namespace, name }, 'apply', desired, {
    fieldManager: syncerFieldManager,
    force: true,
    signal,
  })
}

function desiredCopy(
  context: SyncContext,
  kind: SyncedKind,
  object: DeepReadonly<KubeObject>,
  visit: Visit,
): KubeObject {
  const { cluster, namespace } = visit
  const clusterId = context.upstream.ids.idOf(cluster)
  if (clusterId === undefined)
    throw conflict(gvrs[kind.resource], visit.name, `the id of logical cluster "${cluster}" is not known yet`)
  const automount = kind.workload ? accountAutomount(context, object, visit) : undefined
  const podContext = {
    ...context.podContext(cluster, clusterId, namespace),
    ...(automount !== undefined && { accountAutomount: automount }),
  }
  const desired = kind.down(object, { cluster, clusterId }, podContext)
  desired.metadata.annotations = { ...desired.metadata.annotations, [appliedAnnotation]: contentHash(desired) }
  return desired
}

function accountAutomount(
  context: SyncContext,
  object: DeepReadonly<KubeObject>,
  { cluster, namespace }: Visit,
): boolean | undefined {
  const name = podSpecOf(object)?.serviceAccountName ?? 'default'
  const account = upstreamObject(context, 'serviceaccounts', { cluster, namespace, name })
  return account?.['automountServiceAccountToken'] as boolean | undefined
}

/** The pod spec of a workload's template. */
export function podSpecOf(workload: DeepReadonly<KubeObject>): DeepReadonly<PodSpec> | undefined {
  return (workload['spec'] as { template?: { spec?: DeepReadonly<PodSpec> } } | undefined)?.template?.spec
}

/** What the pods refer to is there before them, or they would start without it. */
async function applyReferences(
  context: SyncContext,
  object: DeepReadonly<KubeObject>,
  visit: Visit,
  signal: AbortSignal,
): Promise<void> {
  const spec = podSpecOf(object)
  if (spec === undefined) return
  for (const { resource, name } of referencesOf(spec))
    await visitObject(context, { ...visit, kind: resource, name }, signal)
}

function refuseForeign(
  kind: SyncedKind,
  current: DeepReadonly<KubeObject> | undefined,
  desired: KubeObject,
  { name }: Visit,
): void {
  if (current === undefined) return
  const [is, should] = [locatorOf(current), locatorOf(desired)]
  // The default ServiceAccount is made by the member in every namespace, ours too: ours to complete.
  if (is === undefined && kind.resource !== 'serviceaccounts')
    throw conflict(gvrs[kind.resource], name, 'it exists in the member and was not made by kcp')
  if (kind.workload && is !== undefined && is.uid !== should?.uid)
    throw conflict(gvrs[kind.resource], name, 'the copy of a deleted object of this name is still in the member')
}

async function addFinalizer(
  context: SyncContext,
  kind: SyncedKind,
  object: DeepReadonly<KubeObject>,
  { cluster, namespace, name }: Visit,
  signal: AbortSignal,
): Promise<void> {
  const finalizer = syncerFinalizer(context.member.name)
  const { finalizers = [], resourceVersion } = object.metadata
  if (finalizers.includes(finalizer)) return
  const metadata = { resourceVersion, finalizers: [...finalizers, finalizer] }
  await context.upstream
    .client(cluster)
    .patch(gvrs[kind.resource], { namespace, name }, 'merge', { metadata }, { signal })
}

/**
 * Takes the copy away. Only called with synced caches on both sides (I4): the object is deleted or gone upstream, or not
 * placed here any more, and the copy names it; the uid we saw is a precondition.
 */
async function removeObject(
  context: SyncContext,
  kind: SyncedKind,
  object: DeepReadonly<KubeObject> | undefined,
  visit: Visit,
  signal: AbortSignal,
): Promise<void> {
  const namespace = downstreamSpace(context, visit)
  if (namespace === undefined) return
  const current = downstreamObject(context, kind.resource, namespace, visit.name)
  const locator = locatorOf(current)
  const ours = isOurs(context, namespace) && locator?.namespace === visit.namespace && locator.name === visit.name
  if (current !== undefined && ours) {
    await deleteCopy(context, kind, current, namespace, signal)
    return
  }
  if (kind.workload) await letGo(context, kind, object, namespace, visit, signal)
}

async function deleteCopy(
  { downstream }: SyncContext,
  kind: SyncedKind,
  current: DeepReadonly<KubeObject>,
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  const { name = '', uid, deletionTimestamp } = current.metadata
  if (deletionTimestamp !== undefined) return
  // Foreground: a workload is gone only when its pods are, and the tenant's deletion waits for that.
  await downstream
    .delete(
      gvrs[kind.resource],
      { namespace, name },
      { ...(uid && { uid }), propagationPolicy: kind.workload ? 'Foreground' : 'Background', signal },
    )
    .catch(tolerate('NotFound', 'Conflict'))
}

/** The member has nothing of it any more, asked and not just remembered: the deletion upstream may go on. */
async function letGo(
  context: SyncContext,
  kind: SyncedKind,
  object: DeepReadonly<KubeObject> | undefined,
  namespace: string,
  visit: Visit,
  signal: AbortSignal,
): Promise<void> {
  const { cluster, name } = visit
  const space: Visit = { kind: 'namespace', cluster, namespace: visit.namespace, name: visit.namespace }
  const finalizer = syncerFinalizer(context.member.name)
  if (object?.metadata.finalizers?.includes(finalizer)) {
    const live = await context.downstream.tryGet(gvrs[kind.resource], { namespace, name }, { signal })
    if (live !== undefined && locatorOf(live)?.uid === object.metadata.uid) return
    await leaveWith(context, visit, signal)
    const finalizers = object.metadata.finalizers.filter((one) => one !== finalizer)
    const metadata = {
      resourceVersion: object.metadata.resourceVersion,
      finalizers,
      annotations: clearPiece(context.member.name),
    }
    await context.upstream
      .client(cluster)
      .patch(gvrs[kind.resource], { namespace: visit.namespace, name }, 'merge', { metadata }, { signal })
  }
  context.enqueue(space)
}
