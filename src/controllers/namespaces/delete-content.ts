// Empties a namespace: one pass over everything in it, and what is left afterwards.
import { groupResourceText, type GroupVersionResource } from '../../apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '../../apimachinery/status/index.ts'
import type { KubeClient } from '../../client/index.ts'
import { pods } from '../resources.ts'
import { deletableResources } from './deletable-resources.ts'

export interface Remaining {
  /** Objects by resource, such as `pods`; only what is not zero. */
  readonly byResource: ReadonlyMap<string, number>
  readonly byFinalizer: ReadonlyMap<string, number>
  readonly discoveryFailures: readonly string[]
  readonly deletionFailures: readonly string[]
}

/**
 * Deletes every object in `namespace`; pods first, and the rest only once no pod is left (KEP-5080): what a pod depends
 * on, such as its Secrets and NetworkPolicies, outlives it.
 */
export async function deleteContent(client: KubeClient, namespace: string, signal: AbortSignal): Promise<Remaining> {
  const byResource = new Map<string, number>()
  const byFinalizer = new Map<string, number>()
  const deletionFailures: string[] = []
  const { resources, failures } = await deletableResources(client, signal)
  const visit = async (gvr: GroupVersionResource): Promise<void> => {
    try {
      const finalizers = await deleteAll(client, gvr, namespace, signal)
      if (finalizers.length > 0) byResource.set(groupResourceText(gvr), finalizers.length)
      for (const finalizer of finalizers.flat()) byFinalizer.set(finalizer, (byFinalizer.get(finalizer) ?? 0) + 1)
    } catch (error) {
      signal.throwIfAborted()
      // The resource has gone meanwhile: nothing of it is left.
      if (isStatusError(error, 'NotFound') || isStatusError(error, 'MethodNotAllowed')) return
      deletionFailures.push(`${groupResourceText(gvr)}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  const isPods = ({ group, resource }: GroupVersionResource): boolean => group === '' && resource === 'pods'
  if (resources.some(isPods)) await visit(pods)
  if (byResource.size === 0 && deletionFailures.length === 0) {
    for (const gvr of resources) if (!isPods(gvr)) await visit(gvr)
  }
  return { byResource, byFinalizer, discoveryFailures: failures, deletionFailures }
}

/** Deletes what is not being deleted already; the finalizers of each object that is still there afterwards. */
async function deleteAll(
  client: KubeClient,
  gvr: GroupVersionResource,
  namespace: string,
  signal: AbortSignal,
): Promise<string[][]> {
  const { items } = await client.list(gvr, { namespace, metadataOnly: true, signal })
  if (items.length === 0) return []
  for (const { metadata } of items) {
    const { name = '', uid, deletionTimestamp } = metadata
    if (deletionTimestamp !== undefined) continue
    // By uid: something made anew under the name meanwhile is looked at in the next pass.
    await client
      .delete(
        gvr,
        { namespace, name },
        { propagationPolicy: 'Background', ...(uid === undefined ? {} : { uid }), signal },
      )
      .catch(tolerate('NotFound', 'Conflict'))
  }
  const left = await client.list(gvr, { namespace, metadataOnly: true, signal })
  return left.items.map(({ metadata }) => metadata.finalizers ?? [])
}
