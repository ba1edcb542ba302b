// Lists all resources of a logical cluster to find the objects that members still hold.
import { groupResourceText, type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { isOwnFinalizer, syncerFinalizerPrefix } from '#crds/index.ts'
import { maxHeld, type ContentLeft, type HeldObject, type OrphanedObject } from './content-left.ts'
import { listableResources } from './discover.ts'

/** Namespaces that cannot be deleted by a request. Their content can; they themselves go with the logical cluster. */
const undeletable = ['default', 'kube-system', 'kube-public', 'kube-node-lease']

/** All objects with the finalizer of a syncer. `client` is the API of the logical cluster, `members` are all that exist. */
export async function findContent(
  client: KubeClient,
  members: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<ContentLeft> {
  const isGone = (finalizer: string): boolean =>
    finalizer.startsWith(syncerFinalizerPrefix) && !members.has(finalizer.slice(syncerFinalizerPrefix.length))
  const orphaned: OrphanedObject[] = []
  const counts = new Map<string, { resource: string; finalizer: string; count: number }>()
  const held: HeldObject[] = []
  let total = 0
  for (const gvr of await listableResources(client, signal)) {
    for (const { metadata } of await listMetadata(client, gvr, signal)) {
      const finalizers = (metadata.finalizers ?? []).filter((text) => text.startsWith(syncerFinalizerPrefix))
      const [finalizer] = finalizers
      const { name = '', namespace, uid = '', resourceVersion = '' } = metadata
      if (finalizer === undefined || (gvr.resource === 'namespaces' && undeletable.includes(name))) continue
      total++
      if (orphaned.length < maxHeld && finalizers.some(isGone)) {
        const keptFinalizers = (metadata.finalizers ?? []).filter((text) => !isGone(text))
        orphaned.push({ gvr, name, resourceVersion, keptFinalizers, ...(namespace ? { namespace } : {}) })
      }
      const resource = groupResourceText(gvr)
      const count = counts.get(`${resource} ${finalizer}`) ?? { resource, finalizer, count: 0 }
      counts.set(`${resource} ${finalizer}`, { ...count, count: count.count + 1 })
      const isHeldByOthers = (metadata.finalizers ?? []).some((text) => !isOwnFinalizer(text))
      const isEnding = !isHeldByOthers || (metadata.finalizers ?? []).includes('foregroundDeletion')
      const deleting = metadata.deletionTimestamp !== undefined && isEnding
      if (held.length < maxHeld && !deleting) {
        held.push({ gvr, name, uid, deleting, isHeldByOthers, finalizers, ...(namespace ? { namespace } : {}) })
      }
    }
  }
  return { total, held, orphaned, counts: [...counts.values()] }
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
