// Deletes the content of a namespace: one pass over all resources, and what is left after it.
import { groupResourceText, type GroupVersionResource, type ObjectMeta } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { finalizingMembers, memberAnnotation } from '#crds/index.ts'
import { DeletionBudget, deleteBatch } from './delete-batch.ts'
import { pods } from './resources.ts'
import { deletableResources } from './deletable-resources.ts'

export interface Remaining {
  /** Number of objects by resource, such as `pods`; no zeros. */
  readonly byResource: ReadonlyMap<string, number>
  readonly byFinalizer: ReadonlyMap<string, number>
  /** Number of objects by the member cluster that runs them, or must confirm that its copy is gone. */
  readonly byMember: ReadonlyMap<string, number>
  readonly discoveryFailures: readonly string[]
  readonly deletionFailures: readonly string[]
}

/** `unfinished`: one visit was not enough for all objects, so it is not known what will be left. */
export type Pass = Remaining | 'unfinished'

/**
 * Deletes every object in `namespace`. Pods go first; the rest follows when no pod is left (KEP-5080), so that a pod keeps
 * the Secrets and NetworkPolicies it depends on.
 */
export async function deleteContent(client: KubeClient, namespace: string, signal: AbortSignal): Promise<Pass> {
  const byResource = new Map<string, number>()
  const byFinalizer = new Map<string, number>()
  const byMember = new Map<string, number>()
  const deletionFailures: string[] = []
  const budget = new DeletionBudget()
  const { resources, failures } = await deletableResources(client, signal)
  /** False when the budget of this visit is used up. */
  const visit = async (gvr: GroupVersionResource): Promise<boolean> => {
    try {
      const left = await deleteAll(client, gvr, namespace, budget, signal)
      if (left === undefined) return false
      if (left.length > 0) byResource.set(groupResourceText(gvr), left.length)
      for (const { finalizers = [] } of left) for (const finalizer of finalizers) count(byFinalizer, finalizer)
      for (const metadata of left) for (const member of membersOf(metadata)) count(byMember, member)
    } catch (error) {
      signal.throwIfAborted()
      // The resource is no longer served: nothing of it is left.
      if (isStatusError(error, 'NotFound') || isStatusError(error, 'MethodNotAllowed')) return true
      deletionFailures.push(`${groupResourceText(gvr)}: ${error instanceof Error ? error.message : String(error)}`)
    }
    return true
  }
  const isPods = ({ group, resource }: GroupVersionResource): boolean => group === '' && resource === 'pods'
  if (resources.some(isPods) && !(await visit(pods))) return 'unfinished'
  if (byResource.size === 0 && deletionFailures.length === 0) {
    for (const gvr of resources) if (!isPods(gvr) && !(await visit(gvr))) return 'unfinished'
  }
  return { byResource, byFinalizer, byMember, discoveryFailures: failures, deletionFailures }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

/** The member clusters for which the object stays. */
function membersOf(metadata: ObjectMeta): ReadonlySet<string> {
  const runsIn = metadata.annotations?.[memberAnnotation]
  return new Set([...finalizingMembers({ metadata }), ...(runsIn === undefined ? [] : [runsIn])])
}

/** The metadata of each object that is left after the deletion; undefined when the budget is used up. */
async function deleteAll(
  client: KubeClient,
  gvr: GroupVersionResource,
  namespace: string,
  budget: DeletionBudget,
  signal: AbortSignal,
): Promise<ObjectMeta[] | undefined> {
  const batch = await deleteBatch(client, gvr, { namespace, propagationPolicy: 'Background' }, budget, signal)
  if (!batch.finished) return undefined
  if (batch.seen === 0) return []
  const left = await client.list(gvr, { namespace, metadataOnly: true, signal })
  return left.items.map(({ metadata }) => metadata)
}
