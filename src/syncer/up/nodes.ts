// Nodes: a logical cluster shows the nodes of the member on which pods run that it shows, and no other nodes.
// Tenants cannot change them.
import { cloneJson, type KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { keyFor, type DeepReadonly, type KubeClient } from '#client/index.ts'
import { canonicalJson, memberAnnotation } from '#crds/index.ts'
import { isSubset } from '#apimachinery/json/index.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import type { Reconcile } from '#syncer/context/scope.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'
import { onNode } from '#syncer/context/upstream.ts'
import { nodeUp, type NodeUp } from '#syncer/transform/node-up.ts'

export const nodesGvr = { group: '', version: 'v1', resource: 'nodes' } as const

/** The fields of a node that are kept in the cache. */
export function cachedNode(node: NodeUp): NodeUp {
  const { uid, resourceVersion } = node.metadata
  const up = nodeUp(node)
  return { ...up, metadata: { ...up.metadata, ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) } }
}

/** Makes the node upstream match the member's, or deletes it when no pod of the logical cluster runs there any more. */
export async function reconcileNode(reconcile: Reconcile): Promise<void> {
  const { context, member, cluster, name, signal } = reconcile
  const { upstream, nodes } = context
  if (member.loss?.isLost()) return
  const shown = upstream.nodes.store.get(keyFor({ cluster, name }))
  // The tenant made this node, or another member has a node of the same name.
  if (shown !== undefined && shown.metadata.annotations?.[memberAnnotation] !== member.name) return
  const live = isUsed(context, cluster, name) ? nodes.store.get(keyFor({ name })) : undefined
  const client = reconcile.upstreamClient
  if (live === undefined) {
    const { uid } = shown?.metadata ?? {}
    if (shown !== undefined)
      await client.delete(nodesGvr, { name }, { ...(uid && { uid }), signal }).catch(tolerate('NotFound', 'Conflict'))
    return
  }
  if (shown === undefined) {
    const { labels = {} } = live.metadata
    const metadata = { name, labels: { ...labels }, annotations: { [memberAnnotation]: member.name } }
    // The server adds a taint to new nodes; the next reconcile removes it.
    await client
      .create(nodesGvr, { ...(cloneJson(live) as unknown as KubeObject), metadata }, { signal })
      .catch(tolerate('AlreadyExists'))
    return
  }
  await updateNode(client, shown, live, signal)
}

async function updateNode(
  client: KubeClient,
  shown: CachedObject,
  live: DeepReadonly<NodeUp>,
  signal: AbortSignal,
): Promise<void> {
  const { name = '' } = shown.metadata
  const { status } = live
  const metadata = { uid: shown.metadata.uid, resourceVersion: shown.metadata.resourceVersion }
  const was = (shown['status'] ?? {}) as Partial<NodeUp['status']>
  const isSameStatus =
    isSubset(was, status) &&
    (['capacity', 'allocatable'] as const).every(
      (field) => canonicalJson(was[field] ?? {}) === canonicalJson(status[field]),
    )
  const { taints = [], unschedulable } = (shown['spec'] ?? {}) as {
    taints?: readonly unknown[]
    unschedulable?: boolean
  }
  const isSameContent =
    taints.length === 0 &&
    Boolean(unschedulable) === (live.spec.unschedulable ?? false) &&
    canonicalJson(shown.metadata.labels ?? {}) === canonicalJson(live.metadata.labels ?? {})
  if (!isSameContent) {
    const removed = Object.keys(shown.metadata.labels ?? {}).map((label) => [label, null])
    const labels = { ...Object.fromEntries<null>(removed as [string, null][]), ...live.metadata.labels }
    const spec = { taints: null, unschedulable: live.spec.unschedulable ?? null }
    await client.patch(nodesGvr, { name }, 'merge', { metadata: { ...metadata, labels }, spec }, { signal })
    // Its event causes the reconcile that compares the status.
    return
  }
  if (isSameStatus) return
  // Lists and maps are replaced.
  const { capacity, allocatable } = status
  const gone = (field: 'capacity' | 'allocatable'): Record<string, string | null> => ({
    ...Object.fromEntries(Object.keys(was[field] ?? {}).map((resource) => [resource, null])),
    ...{ capacity, allocatable }[field],
  })
  const patch = { metadata, status: { ...status, capacity: gone('capacity'), allocatable: gone('allocatable') } }
  await client.patch(nodesGvr, { name }, 'merge', patch, { subresource: 'status', signal })
}

/** Whether pods upstream of the logical cluster run on this node of the member. */
export function isUsed({ upstream, member }: SyncContext, cluster: string, name: string): boolean {
  for (const _ of upstream.podsByNode.of(onNode(cluster, member.name, name))) return true
  return false
}
