// Nodes: each logical cluster shows those nodes of the member that run pods of it which it shows, and no others. Tenants cannot change
// them.
import { tolerate } from '#apimachinery/status/index.ts'
import { cloneJson, type KubeObject } from '#apimachinery/meta/index.ts'
import { clusterInKey, keyFor, parseKey, type DeepReadonly, type KubeClient } from '#client/index.ts'
import { canonicalJson, memberAnnotation } from '#crds/index.ts'
import { isSubset } from '#syncer/context/is-subset.ts'
import type { SyncContext, Visit } from '#syncer/context/sync-context.ts'
import { nodeUp, type NodeUp } from '#syncer/transform/node-up.ts'
import type { ObjectChange, TriggerContext } from '#syncer/context/trigger-context.ts'
import { nodeNameOf, onNode } from '#syncer/context/upstream.ts'

export const nodesGvr = { group: '', version: 'v1', resource: 'nodes' } as const

/** What is kept of a node. */
export function cachedNode(node: NodeUp): NodeUp {
  const { uid, resourceVersion } = node.metadata
  const up = nodeUp(node)
  return { ...up, metadata: { ...up.metadata, ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) } }
}

/** Makes the node upstream match the member's, or deletes it when no pod of the logical cluster runs there any more. */
export async function visitNode(context: SyncContext, { cluster, name }: Visit, signal: AbortSignal): Promise<void> {
  const { member, upstream, nodes } = context
  if (member.loss?.isLost()) return
  const shown = upstream.nodes.store.get(keyFor({ cluster, name }))
  // A node that the tenant made, or of another member whose node has the same name.
  if (shown !== undefined && shown.metadata.annotations?.[memberAnnotation] !== member.name) return
  const live = isUsed(context, cluster, name) ? nodes.store.get(keyFor({ name })) : undefined
  const client = upstream.client(cluster)
  if (live === undefined) {
    const { uid } = shown?.metadata ?? {}
    if (shown !== undefined)
      await client.delete(nodesGvr, { name }, { ...(uid && { uid }), signal }).catch(tolerate('NotFound', 'Conflict'))
    return
  }
  if (shown === undefined) {
    const { labels = {} } = live.metadata
    const metadata = { name, labels: { ...labels }, annotations: { [memberAnnotation]: member.name } }
    // The server adds a taint to new nodes; the next visit removes it.
    await client
      .create(nodesGvr, { ...(cloneJson(live) as unknown as KubeObject), metadata }, { signal })
      .catch(tolerate('AlreadyExists'))
    return
  }
  await updateNode(client, shown, live, signal)
}

async function updateNode(
  client: KubeClient,
  shown: DeepReadonly<KubeObject>,
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
    // Its event causes the visit that compares the status.
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

function isUsed({ upstream, member }: SyncContext, cluster: string, name: string): boolean {
  for (const _ of upstream.podsByNode.of(onNode(cluster, member.name, name))) return true
  return false
}

/** A pod upstream was bound, or has gone: its node may have to appear or disappear. */
export function podOnNodeChanged(context: TriggerContext, cluster: string, { before, after }: ObjectChange): void {
  const [was, is] = [nodeOf(context, before), nodeOf(context, after)]
  if (was === is) return
  for (const name of [was, is]) {
    if (name === undefined) continue
    const isShown = context.upstream.nodes.store.get(keyFor({ cluster, name })) !== undefined
    if (isShown !== isUsed(context, cluster, name)) context.enqueue(visitOf(cluster, name))
  }
}

/** The node of the member on which a pod upstream runs. */
function nodeOf({ member }: SyncContext, pod: ObjectChange['after']): string | undefined {
  return pod?.metadata.annotations?.[memberAnnotation] === member.name ? nodeNameOf(pod) : undefined
}

/** A node of the member has changed: so do those that logical clusters show. */
export function nodeChanged(context: TriggerContext, { key }: Pick<ObjectChange, 'key'>): void {
  const { name } = parseKey(key)
  const pods = context.upstream.podsByNode.keysOf(onNode('', context.member.name, name))
  for (const cluster of new Set([...pods].map(clusterInKey))) context.enqueue(visitOf(cluster, name))
}

/** A node upstream has changed or gone: it may be one that this member is to show. */
export function shownNodeChanged(context: TriggerContext, { key, before, after }: ObjectChange): void {
  const { cluster = '', name } = parseKey(key)
  const owner = (after ?? before)?.metadata.annotations?.[memberAnnotation]
  if (owner === context.member.name || isUsed(context, cluster, name)) context.enqueue(visitOf(cluster, name))
}

function visitOf(cluster: string, name: string): Visit {
  return { kind: 'node', cluster, namespace: '', name }
}
