// Turns changes of nodes, and of the pods on them, into reconciles of the nodes that logical clusters show.
import { clusterInKey, keyFor, parseKey } from '#client/index.ts'
import { memberAnnotation } from '#crds/index.ts'
import type { Scope } from '#syncer/context/scope.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'
import { nodeNameOf, onNode } from '#syncer/context/upstream.ts'
import type { ReconcileRequest } from '#syncer/context/request.ts'
import { isUsed } from '#syncer/up/nodes.ts'
import type { ObjectChange } from './change.ts'

/** A pod upstream was bound, or has gone: its node may have to appear or disappear. */
export function podOnNodeChanged({ context, cluster }: Scope, { before, after }: ObjectChange): void {
  const [was, is] = [nodeOf(context, before), nodeOf(context, after)]
  if (was === is) return
  for (const name of [was, is]) {
    if (name === undefined) continue
    const isShown = context.upstream.nodes.store.get(keyFor({ cluster, name })) !== undefined
    if (isShown !== isUsed(context, cluster, name)) context.enqueue(requestOf(cluster, name))
  }
}

/** The node of the member on which a pod upstream runs. */
function nodeOf({ member }: SyncContext, pod: ObjectChange['after']): string | undefined {
  return pod?.metadata.annotations?.[memberAnnotation] === member.name ? nodeNameOf(pod) : undefined
}

/** A node of the member has changed: reconciles the nodes that logical clusters show for it. */
export function nodeChanged(context: SyncContext, { key }: Pick<ObjectChange, 'key'>): void {
  const { name } = parseKey(key)
  const pods = context.upstream.podsByNode.keysOf(onNode('', context.member.name, name))
  for (const cluster of new Set([...pods].map(clusterInKey))) context.enqueue(requestOf(cluster, name))
}

/** A node upstream has changed or gone: it may be one that this member is to show. */
export function shownNodeChanged(context: SyncContext, { key, before, after }: ObjectChange): void {
  const { cluster = '', name } = parseKey(key)
  const owner = (after ?? before)?.metadata.annotations?.[memberAnnotation]
  if (owner === context.member.name || isUsed(context, cluster, name)) context.enqueue(requestOf(cluster, name))
}

function requestOf(cluster: string, name: string): ReconcileRequest {
  return { kind: 'node', cluster, namespace: '', name }
}
