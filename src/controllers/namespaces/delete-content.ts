// Empties a namespace: one pass over everything in it, and what is left afterwards.
import { groupResourceText, type GroupVersionResource } from '../../apimachinery/meta/index.ts'
import { isStatusError } from '../../apimachinery/status/index.ts'
import type { KubeClient } from '../../client/index.ts'
import { deleteSome, VisitBudget } from '../delete-some.ts'
import { pods } from '../resources.ts'
import { deletableResources } from './deletable-resources.ts'

export interface Remaining {
  /** Objects by resource, such as `pods`; only what is not zero. */
  readonly byResource: ReadonlyMap<string, number>
  readonly byFinalizer: ReadonlyMap<string, number>
  readonly discoveryFailures: readonly string[]
  readonly deletionFailures: readonly string[]
}

/** A pass may be one of several, so that others have their turn in between: then nothing can be said of what is left. */
export type Pass = Remaining | 'goes on'

/**
 * Deletes every object in `namespace`; pods first, and the rest only once no pod is left (KEP-5080): what a pod depends
 * on, such as its Secrets and NetworkPolicies, outlives it.
 */
export async function deleteContent(client: KubeClient, namespace: string, signal: AbortSignal): Promise<Pass> {
  const byResource = new Map<string, number>()
  const byFinalizer = new Map<string, number>()
  const deletionFailures: string[] = []
  const budget = new VisitBudget()
  const { resources, failures } = await deletableResources(client, signal)
  /** False where the pass has done enough. */
  const visit = async (gvr: GroupVersionResource): Promise<boolean> => {
    try {
      const finalizers = await deleteAll(client, gvr, namespace, budget, signal)
      if (finalizers === undefined) return false
      if (finalizers.length > 0) byResource.set(groupResourceText(gvr), finalizers.length)
      for (const finalizer of finalizers.flat()) byFinalizer.set(finalizer, (byFinalizer.get(finalizer) ?? 0) + 1)
    } catch (error) {
      signal.throwIfAborted()
      // The resource has gone meanwhile: nothing of it is left.
      if (isStatusError(error, 'NotFound') || isStatusError(error, 'MethodNotAllowed')) return true
      deletionFailures.push(`${groupResourceText(gvr)}: ${error instanceof Error ? error.message : String(error)}`)
    }
    return true
  }
  const isPods = ({ group, resource }: GroupVersionResource): boolean => group === '' && resource === 'pods'
  if (resources.some(isPods) && !(await visit(pods))) return 'goes on'
  if (byResource.size === 0 && deletionFailures.length === 0) {
    for (const gvr of resources) if (!isPods(gvr) && !(await visit(gvr))) return 'goes on'
  }
  return { byResource, byFinalizer, discoveryFailures: failures, deletionFailures }
}

/** The finalizers of each object that is still there after what was done; undefined where the visit has done enough. */
async function deleteAll(
  client: KubeClient,
  gvr: GroupVersionResource,
  namespace: string,
  budget: VisitBudget,
  signal: AbortSignal,
): Promise<string[][] | undefined> {
  const pass = await deleteSome(client, gvr, { namespace, propagationPolicy: 'Background' }, budget, signal)
  if (pass.done === 'some') return undefined
  if (pass.seen === 0) return []
  const left = await client.list(gvr, { namespace, metadataOnly: true, signal })
  return left.items.map(({ metadata }) => metadata.finalizers ?? [])
}
