// Turns changes on both sides into visits. Nothing is decided here: a visit reads everything again.
import { clusterInKey } from '#client/index.ts'
import { isPlaceable, workloadKinds } from '#crds/index.ts'
import { downstreamChanged, eventChanged, visitAllIn, visitLeftover } from './downstream.ts'
import type { ResourceName } from '#syncer/context/resources.ts'
import { downstreamNamespaceOf, visitKindOf } from '#syncer/context/sync-context.ts'
import { syncedKinds } from '#syncer/rules/synced-kinds.ts'
import type { TriggerContext } from '#syncer/context/trigger-context.ts'
import { nodeChanged, shownNodeChanged } from '#syncer/up/nodes.ts'
import { isRelevant, upstreamChanged } from './upstream.ts'

/** Listens to changes on both sides. Returns the function that ends it. */
export function listen(context: TriggerContext): () => void {
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

/** Templates may have named a class before it was there. */
function priorityChanged(context: TriggerContext, cluster: string): void {
  for (const namespace of context.views.presentIn(cluster))
    for (const { gvr } of workloadKinds)
      for (const object of context.upstreamIn(gvr.resource, cluster, namespace))
        if (isPlaceable(object))
          context.enqueue({ kind: visitKindOf(gvr.resource), cluster, namespace, name: object.metadata.name ?? '' })
}

/** The id of a logical cluster became known: its objects can be visited now. */
function clusterKnown(context: TriggerContext, cluster: string): void {
  for (const namespace of context.views.namespacesOf(cluster)) {
    for (const { resource, follows } of syncedKinds) {
      for (const object of context.upstreamIn(resource, cluster, namespace)) {
        const { name = '' } = object.metadata
        if (follows === 'decision' ? isPlaceable(object) : isRelevant(context, resource, cluster, namespace, name))
          context.enqueue({ kind: visitKindOf(resource), cluster, namespace, name })
      }
    }
    const memberNamespace = downstreamNamespaceOf(context, { cluster, namespace })
    if (memberNamespace !== undefined) visitAllIn(context, cluster, namespace, memberNamespace)
    for (const { gvr, history } of workloadKinds) {
      if (history === undefined) continue
      for (const { metadata } of context.upstreamIn(gvr.resource, cluster, namespace))
        context.enqueue({ kind: 'history', cluster, namespace, name: metadata.name ?? '' })
    }
  }
}

/** What the operator said of its pods, nodes and EndpointSlices while it was lost is replaced by what the member says. */
function memberReturned(context: TriggerContext): void {
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

function clusterGone(context: TriggerContext, id: string): void {
  for (const { metadata } of context.downstreamIn('namespaces', '')) {
    const { name = '' } = metadata
    if (name.startsWith(`${id}-`)) visitLeftover(context, name)
  }
}
