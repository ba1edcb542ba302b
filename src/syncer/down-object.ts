// One upstream object and its copy in the member: apply the copy, keep it current, delete it.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import { conflict, tolerate } from '../apimachinery/status/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import { appliedAnnotation, contentHash, syncerFieldManager, syncerFinalizer, templateOf } from '../crds/index.ts'
import { isSubset } from './is-subset.ts'
import { ensureNamespace } from './down-namespace.ts'
import { deleteNamespacesOf } from './visit-namespace.ts'
import { clearError, clearedMemberStatus, reportError } from './member-status.ts'
import { referencesOf } from './references.ts'
import { gvrs } from './resources/resources.ts'
import { syncedKinds, type SyncedKind } from './synced-kinds.ts'
import {
  downstreamObject,
  downstreamNamespaceOf,
  isOurs,
  locatorOf,
  ownerCluster,
  upstreamObject,
  type SyncContext,
  type Visit,
} from './sync-context.ts'
import type { PodSpec } from './transform/pod-types.ts'

/** Makes the copy in the member match the upstream object. Returns the upstream object if it should have a copy. */
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
  if (current !== undefined && isSubset(current, desired)) return
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
  const desired = kind.down(object, ownerCluster(context, cluster, clusterId), podContext)
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

function podSpecOf(workload: DeepReadonly<KubeObject>): DeepReadonly<PodSpec> | undefined {
  return (templateOf(workload) as { spec?: DeepReadonly<PodSpec> } | undefined)?.spec
}

/** Applies what the pods refer to before the workload, so that no pod starts without it. */
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
  // The member creates the ServiceAccount `default` in every namespace; it becomes our copy.
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
 * Deletes the copy of an object that is deleted, gone, or no longer placed here. Only called with synced caches on both sides;
 * the copy must name the object, and the uid we saw is a precondition.
 */
async function removeObject(
  context: SyncContext,
  kind: SyncedKind,
  object: DeepReadonly<KubeObject> | undefined,
  visit: Visit,
  signal: AbortSignal,
): Promise<void> {
  const namespace = downstreamNamespaceOf(context, visit)
  if (namespace === undefined) return
  const current = downstreamObject(context, kind.resource, namespace, visit.name)
  const locator = locatorOf(current)
  const ours = isOurs(context, namespace) && locator?.namespace === visit.namespace && locator.name === visit.name
  if (current !== undefined && ours) {
    await deleteCopy(context, kind, current, namespace, signal)
    return
  }
  if (kind.workload) await release(context, kind, object, namespace, visit, signal)
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
  // Foreground: the workload must be gone only after its pods, because the tenant's deletion waits for it.
  await downstream
    .delete(
      gvrs[kind.resource],
      { namespace, name },
      { ...(uid && { uid }), propagationPolicy: kind.workload ? 'Foreground' : 'Background', signal },
    )
    .catch(tolerate('NotFound', 'Conflict'))
}

/** Removes the finalizer upstream, after asking the member (not only its cache) that the copy is gone. */
async function release(
  context: SyncContext,
  kind: SyncedKind,
  object: DeepReadonly<KubeObject> | undefined,
  namespace: string,
  visit: Visit,
  signal: AbortSignal,
): Promise<void> {
  const { cluster, name } = visit
  const namespaceVisit: Visit = { kind: 'namespace', cluster, namespace: visit.namespace, name: visit.namespace }
  const finalizer = syncerFinalizer(context.member.name)
  if (object?.metadata.finalizers?.includes(finalizer)) {
    const live = await context.downstream.tryGet(gvrs[kind.resource], { namespace, name }, { signal })
    if (live !== undefined && locatorOf(live)?.uid === object.metadata.uid) return
    await deleteNamespacesOf(context, visit, signal)
    const finalizers = object.metadata.finalizers.filter((one) => one !== finalizer)
    const metadata = {
      resourceVersion: object.metadata.resourceVersion,
      finalizers,
      annotations: clearedMemberStatus(context.member.name),
    }
    await context.upstream
      .client(cluster)
      .patch(gvrs[kind.resource], { namespace: visit.namespace, name }, 'merge', { metadata }, { signal })
  }
  context.enqueue(namespaceVisit)
}
