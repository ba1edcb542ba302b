// Lists all resources of a logical cluster to find the objects that members still hold.
import { groupResourceText, type GroupVersionResource, type KubeObject } from '../../apimachinery/meta/index.ts'
import { isStatusError } from '../../apimachinery/status/index.ts'
import type { KubeClient } from '../../client/index.ts'
import { syncerFinalizerPrefix } from '../../crds/index.ts'
import { maxHeld, type ContentLeft, type HeldObject } from './content-left.ts'
import { listableResources } from './discover.ts'

/** Namespaces that cannot be deleted by a request. Their content can; they themselves go with the logical cluster. */
const undeletable = ['default', 'kube-system', 'kube-public', 'kube-node-lease']

/** All objects with the finalizer of a syncer. `client` is the API of the logical cluster. */
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

/** A resource that is no longer served counts as empty. */
async function listMetadata(client: KubeClient, gvr: GroupVersionResource, signal: AbortSignal): Promise<KubeObject[]> {
  try {
    return (await client.list(gvr, { metadataOnly: true, signal })).items
  } catch (error) {
    if (isStatusError(error, 'NotFound') || isStatusError(error, 'MethodNotAllowed')) return []
    throw error
  }
}
