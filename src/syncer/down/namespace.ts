// Visits a namespace of a logical cluster: a member has a copy of it while a workload of it is placed there; without one, the
// copy is deleted with everything in it.
import type { DeepReadonly } from '#client/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { workloadKinds } from '#crds/index.ts'
import { ensureNamespace } from './ensure-namespace.ts'
import { isEndingNamespace } from '#syncer/rules/ending.ts'
import { isClaimIn, isInMember } from '#syncer/context/namespace-view.ts'
import { gvrs } from '#syncer/context/resources.ts'
import {
  downstreamObject,
  downstreamNamespaceOf,
  locatorOf,
  upstreamObject,
  type SyncContext,
  type Visit,
} from '#syncer/context/sync-context.ts'

/** Creates the namespace while something of it should be in the member, and deletes it afterwards. */
export async function visitNamespace(context: SyncContext, visit: Visit, signal: AbortSignal): Promise<void> {
  const { cluster, namespace } = visit
  if (downstreamNamespaceOf(context, visit) === undefined) return
  const { needed: isNeeded, servicesWanted } = context.view(cluster, namespace)
  // Upstream it takes with it what is not gone before; members that answer need not wait for those that do not.
  const isEnding = isEndingNamespace(context, visit)
  const needed = !isEnding && (isNeeded || context.hasExported(cluster, namespace))
  if (needed) await ensureNamespace(context, visit, signal)
  if (needed || (!isEnding && servicesWanted && hasServices(context, cluster, namespace))) return
  await deleteWithoutWorkloads(context, cluster, namespace, signal)
}

/**
 * Deletes the namespaces in the member that exist only because of this workload. Called before the finalizer is removed: with
 * the last workload its logical cluster, or the member, may be deleted too, and nothing would lead to these namespaces.
 */
export async function deleteNamespacesOf(
  context: SyncContext,
  workload: DeepReadonly<KubeObject>,
  { cluster, namespace }: Visit,
  signal: AbortSignal,
): Promise<void> {
  for (const other of workloadsIn(context, cluster, namespace))
    if (other.metadata.uid !== workload.metadata.uid && isInMember(other, context.member.name)) return
  const elsewhere = [...context.presentIn(cluster)].some((present) => present !== namespace)
  if (!elsewhere) {
    for (const other of context.namespacesOf(cluster))
      if (other !== namespace) await deleteWithoutWorkloads(context, cluster, other, signal)
  }
  const reached = elsewhere && context.member.serviceNetwork !== 'None' && hasServices(context, cluster, namespace)
  if (!reached) await deleteWithoutWorkloads(context, cluster, namespace, signal)
}

/** A namespace of a deleted logical cluster, created while its last objects were deleted. */
export async function visitLeftover(
  context: SyncContext,
  { cluster, name }: Visit,
  signal: AbortSignal,
): Promise<void> {
  const object = downstreamObject(context, 'namespaces', '', name)
  if (object === undefined || locatorOf(object)?.clusterId !== cluster) return
  if (context.upstream.ids.isGone(cluster)) await deleteNamespace(context, object, signal)
}

function* workloadsIn(context: SyncContext, cluster: string, namespace: string): Generator<DeepReadonly<KubeObject>> {
  for (const { gvr } of workloadKinds) yield* context.upstreamIn(gvr.resource, cluster, namespace)
}

function hasServices(context: SyncContext, cluster: string, namespace: string): boolean {
  for (const _ of context.upstreamIn('services', cluster, namespace)) return true
  return false
}

async function deleteWithoutWorkloads(
  context: SyncContext,
  cluster: string,
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  const name = downstreamNamespaceOf(context, { cluster, namespace })
  if (name === undefined) return
  const object = downstreamObject(context, 'namespaces', '', name)
  if (object === undefined || locatorOf(object)?.clusterId !== context.upstream.ids.idOf(cluster)) return
  // Its workloads must be deleted first, by their own visits, which enqueue this one again.
  for (const { gvr } of workloadKinds)
    for (const one of context.downstreamIn(gvr.resource, name)) if (locatorOf(one) !== undefined) return
  if (context.hasExported(cluster, namespace)) return
  // Deleting the namespace would delete its volumes.
  for (const claim of context.upstreamIn('persistentvolumeclaims', cluster, namespace))
    if (isClaimIn(claim, context.member.name)) return
  if (await hasUnlistedClaim(context, { cluster, namespace, name }, signal)) return
  await deleteNamespace(context, object, signal)
}

/** Whether the namespace `name` of the member has a claim that is there upstream, though our cache lacks it. */
async function hasUnlistedClaim(
  context: SyncContext,
  { cluster, namespace, name }: Pick<Visit, 'cluster' | 'namespace' | 'name'>,
  signal: AbortSignal,
): Promise<boolean> {
  for (const { metadata } of context.downstreamIn('persistentvolumeclaims', name)) {
    const visit = { kind: 'persistentvolumeclaims', cluster, namespace, name: metadata.name ?? '' } as const
    if (upstreamObject(context, visit.kind, visit) !== undefined) continue
    const claim = await context.guard.findUnlisted(context, visit, signal)
    if (claim !== undefined && isClaimIn(claim, context.member.name)) return true
  }
  return false
}

async function deleteNamespace(
  { downstream, log }: SyncContext,
  { metadata }: DeepReadonly<KubeObject>,
  signal: AbortSignal,
): Promise<void> {
  const { name = '', uid, deletionTimestamp } = metadata
  if (deletionTimestamp !== undefined) return
  log.info('deleting a namespace in a member: no workload of it is placed there', { namespace: name })
  // Conflict: another namespace of this name, which gets a visit of its own.
  await downstream
    .delete(gvrs.namespaces, { name }, { ...(uid && { uid }), signal })
    .catch(tolerate('NotFound', 'Conflict'))
}
