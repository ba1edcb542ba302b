// The end of a namespace in a member: when nothing of it is placed there any more, with everything in it.
import type { DeepReadonly } from '../client/index.ts'
import type { KubeObject } from '../apimachinery/meta/index.ts'
import { tolerate } from '../apimachinery/status/index.ts'
import { ensureNamespace } from './down-namespace.ts'
import { holdsHere } from './namespace-view.ts'
import { gvrs } from './synced-kinds.ts'
import { downstreamObject, downstreamSpace, locatorOf, type SyncContext, type Visit } from './sync-context.ts'

/** Keeps the namespace true: there while something of it is in the member, gone with everything in it after the last. */
export async function visitNamespace(context: SyncContext, visit: Visit, signal: AbortSignal): Promise<void> {
  const { cluster, namespace } = visit
  if (downstreamSpace(context, visit) === undefined) return
  const { present, servicesWanted } = context.view(cluster, namespace)
  if (present) await ensureNamespace(context, visit, signal)
  if (present || (servicesWanted && hasServices(context, cluster, namespace))) return
  await leaveNamespace(context, cluster, namespace, signal)
}

/**
 * Asks for the end of all that stands in the member for the sake of this workload alone. Before the workload is let go:
 * with the last of them its logical cluster, or the member, may go too, and then nobody is left who knows what stands there.
 */
export async function leaveWith(context: SyncContext, workload: Visit, signal: AbortSignal): Promise<void> {
  const { cluster, namespace, name } = workload
  for (const other of context.upstreamIn('deployments', cluster, namespace))
    if (other.metadata.name !== name && holdsHere(other, context.member.name)) return
  const elsewhere = [...context.presentIn(cluster)].some((present) => present !== namespace)
  if (!elsewhere) {
    for (const other of context.namespacesOf(cluster))
      if (other !== namespace) await leaveNamespace(context, cluster, other, signal)
  }
  const reached = elsewhere && context.member.serviceNetwork === 'Flat' && hasServices(context, cluster, namespace)
  if (!reached) await leaveNamespace(context, cluster, namespace, signal)
}

/** A namespace of a logical cluster that is deleted, made while the last of it went. */
export async function visitLeftover(
  context: SyncContext,
  { cluster, name }: Visit,
  signal: AbortSignal,
): Promise<void> {
  const object = downstreamObject(context, 'namespaces', '', name)
  if (object === undefined || locatorOf(object)?.clusterId !== cluster) return
  if (context.upstream.ids.isGone(cluster)) await deleteNamespace(context, object, signal)
}

function hasServices(context: SyncContext, cluster: string, namespace: string): boolean {
  for (const _ of context.upstreamIn('services', cluster, namespace)) return true
  return false
}

async function leaveNamespace(
  context: SyncContext,
  cluster: string,
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  const name = downstreamSpace(context, { cluster, namespace })
  if (name === undefined) return
  const object = downstreamObject(context, 'namespaces', '', name)
  if (object === undefined || locatorOf(object)?.clusterId !== context.upstream.ids.idOf(cluster)) return
  // A workload that is still there has not been waited for: its own visit comes first, and asks for this one again.
  for (const _ of context.downstreamIn('deployments', name)) return
  await deleteNamespace(context, object, signal)
}

async function deleteNamespace(
  { downstream, log }: SyncContext,
  { metadata }: DeepReadonly<KubeObject>,
  signal: AbortSignal,
): Promise<void> {
  const { name = '', uid, deletionTimestamp } = metadata
  if (deletionTimestamp !== undefined) return
  log.info('deleting a namespace in a member: nothing of it is placed there', { namespace: name })
  // Conflict: another of that name, which its own visit looks at.
  await downstream
    .delete(gvrs.namespaces, { name }, { ...(uid && { uid }), signal })
    .catch(tolerate('NotFound', 'Conflict'))
}
