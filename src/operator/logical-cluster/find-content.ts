// Looks for what members still hold, over all resources that the logical cluster serves.
import { groupResourceText, type GroupVersionResource, type KubeObject } from '../../apimachinery/meta/index.ts'
import { isStatusError } from '../../apimachinery/status/index.ts'
import type { KubeClient } from '../../client/index.ts'
import { maxHeld, type ContentLeft, type HeldObject } from './content-left.ts'
import { listableResources } from './discover.ts'

/** Prefix of the finalizers of syncers: what carries one has, or may have, a copy in a member. */
const syncerFinalizerPrefix = 'syncer.kcp.dev/'

/** Namespaces that no request can delete: what they hold is deleted, they themselves go with the logical cluster. */
const undeletable = ['default', 'kube-system', 'kube-public', 'kube-node-lease']

/** Everything in the logical cluster that carries a syncer's finalizer. `client` is of that logical cluster. */
export async function findContent(client: KubeClient, signal: AbortSignal): Promise<ContentLeft> {
  const counts = new Map<string, { resource: string; finalizer: string; count: number }>()
  const held: HeldObject[] = []
  let total = 0
  for (const gvr of await listableResources(client, signal)) {
    for (const { metadata } of await listMetadata(client, gvr, signal)) {
      const finalizers = (metadata.finalizers ?? []).filter((text) => text.startsWith(syncerFinalizerPrefix))
      const [finalizer] = finalizers
      const { name = '', namespace, uid = '' } = metadata
      if (finalizer === undefined || (gvr.resource === 'namespaces' && undeletable.includes(name))) continue
      total++
      const resource = groupResourceText(gvr)
      const count = counts.get(`${resource} ${finalizer}`) ?? { resource, finalizer, count: 0 }
      counts.set(`${resource} ${finalizer}`, { ...count, count: count.count + 1 })
      const deleting = metadata.deletionTimestamp !== undefined
      if (held.length < maxHeld && !deleting) {
        held.push({ gvr, name, uid, deleting, finalizers, ...(namespace ? { namespace } : {}) })
      }
    }
  }
  return { total, held, counts: [...counts.values()] }
}

/** A resource may go while we look: then it holds nothing. */
async function listMetadata(client: KubeClient, gvr: GroupVersionResource, signal: AbortSignal): Promise<KubeObject[]> {
  try {
    return (await client.list(gvr, { metadataOnly: true, signal })).items
  } catch (error) {
    if (isStatusError(error, 'NotFound') || isStatusError(error, 'MethodNotAllowed')) return []
    throw error
  }
}
