// Turns changes on both sides into reconciles. Nothing is decided here: a reconcile reads everything again.
import { clusterInKey } from '#client/index.ts'
import { isPlaceable, workloadKinds } from '#crds/index.ts'
import type { ResourceName } from '#syncer/context/resources.ts'
import { Scope } from '#syncer/context/scope.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'
import { downstreamChanged, enqueueLeftover, eventChanged } from './downstream.ts'
import { nodeChanged, shownNodeChanged } from './nodes.ts'
import { upstreamChanged } from './upstream.ts'
import { reconcileWhole } from './whole-namespace.ts'

/** Listens to changes on both sides. Returns the function that ends it. */
export function listen(context: SyncContext): () => void {
  const ends: (() => void)[] = []
  for (const resource of Object.keys(context.caches) as ResourceName[]) {
    ends.push(context.upstream.informers[resource].onChange((change) => upstreamChanged(context, resource, change)))
    ends.push(context.caches[resource].onChange((change) => downstreamChanged(context, resource, change)))
  }
  ends.push(context.upstream.priorityClasses.onChange(({ key }) => priorityChanged(context, clusterInKey(key))))
  ends.push(context.nodes.onChange((change) => nodeChanged(context, change)))
  ends.push(context.upstream.nodes.onChange((change) => shownNodeChanged(context, change)))
  ends.push(context.events.onChange((change) => eventChanged(context, change)))
  ends.push(context.upstream.ids.onKnown((cluster) => clusterKnown(context, cluster)))
  ends.push(context.upstream.ids.onGone((id) => clusterGone(context, id)))
  ends.push(context.member.loss?.onReturn(() => memberReturned(context)) ?? (() => undefined))
  return () => {
    for (const end of ends) end()
  }
}

/** Reconciles workloads after a change of a PriorityClass: templates may have named the class before it existed. */
function priorityChanged(context: SyncContext, cluster: string): void {
  for (const namespace of context.views.presentIn(cluster)) {
    const scope = new Scope(context, { cluster, namespace })
    for (const { gvr } of workloadKinds)
      for (const object of scope.allUpstream(gvr.resource))
        if (isPlaceable(object)) scope.enqueueCopy(gvr.resource, object.metadata.name)
  }
}

/** The id of a logical cluster became known: its objects can be reconciled now. */
function clusterKnown(context: SyncContext, cluster: string): void {
  for (const namespace of context.views.namespacesOf(cluster)) {
    reconcileWhole(new Scope(context, { cluster, namespace }))
  }
}

/**
 * Reconciles the pods, nodes and EndpointSlices of a member that was lost: its reports replace what the operator wrote.
 */
function memberReturned(context: SyncContext): void {
  for (const resource of ['pods', 'endpointslices'] as const)
    for (const key of context.caches[resource].store.keys()) {
      const after = context.caches[resource].store.get(key)
      if (after !== undefined) downstreamChanged(context, resource, { key, before: after, after })
    }
  for (const key of context.upstream.nodes.store.keys()) {
    const after = context.upstream.nodes.store.get(key)
    if (after !== undefined) shownNodeChanged(context, { key, before: after, after })
  }
}

function clusterGone(context: SyncContext, id: string): void {
  for (const { metadata } of context.downstreamIn('namespaces', '')) {
    const { name = '' } = metadata
    if (name.startsWith(`${id}-`)) enqueueLeftover(context, name)
  }
}
