// Finishes the deletion of namespaces: deletes the content, reports the remaining objects, and finalizes the empty
// namespace.
import {
  groupResourceText,
  groupVersionPath,
  type GroupVersionResource,
  type KubeObject,
  type ObjectMeta,
  parseApiVersion,
} from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { systemClock, timestamp } from '#async/index.ts'
import type { KubeClient, ObjectRef } from '#client/index.ts'
import { finalizingMembers, memberAnnotation } from '#crds/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import { DeletionBudget, deleteBatch } from './delete-batch.ts'
import { type ControllerContext, followDeletedOf, retryAfterSeconds } from './framework.ts'
import { namespaces, pods } from './resources.ts'

const finalizer = 'kubernetes'

interface Namespace extends KubeObject {
  spec?: { finalizers?: string[] }
  status?: { phase?: string; conditions?: NamespaceCondition[] }
}

/** Reconciles every namespace with a deletionTimestamp, until the signal aborts. */
export function startNamespaceDeletion(context: ControllerContext): Promise<void> {
  return followDeletedOf(namespaces, { name: 'namespace-deletion', finish: finishNamespace }, context)
}

/** Reconciles a namespace that is being deleted. Asks for another reconcile while something is left. */
async function finishNamespace(
  client: KubeClient,
  { name }: ObjectRef,
  signal: AbortSignal,
): Promise<ReconcileResult | undefined> {
  const namespace = await client.tryGet<Namespace>(namespaces, { name }, { signal })
  if (namespace?.metadata.deletionTimestamp === undefined) return undefined
  if (!(namespace.spec?.finalizers ?? []).includes(finalizer)) return undefined
  const remaining = await deleteContent(client, name, signal)
  if (remaining === 'unfinished') return { requeueAfterSeconds: 0 }
  if (!isEmpty(remaining)) {
    await writeConditions(client, namespace, remaining, signal)
    return { requeueAfterSeconds: retryAfterSeconds(namespace.metadata.deletionTimestamp, systemClock.now()) }
  }
  await finalize(client, namespace, signal)
  return undefined
}

function isEmpty({ byResource, discoveryFailures, deletionFailures }: Remaining): boolean {
  return byResource.size === 0 && discoveryFailures.length === 0 && deletionFailures.length === 0
}

async function writeConditions(
  client: KubeClient,
  namespace: Namespace,
  remaining: Remaining,
  signal: AbortSignal,
): Promise<void> {
  const before = namespace.status?.conditions ?? []
  const conditions = namespaceConditions(remaining, before, timestamp(systemClock.now()))
  if (JSON.stringify(conditions) === JSON.stringify(before)) return
  await client.update(
    namespaces,
    { ...namespace, status: { ...namespace.status, conditions } },
    { subresource: 'status', signal },
  )
}

async function finalize(client: KubeClient, namespace: Namespace, signal: AbortSignal): Promise<void> {
  const finalizers = (namespace.spec?.finalizers ?? []).filter((name) => name !== finalizer)
  await client
    .update(namespaces, { ...namespace, spec: { ...namespace.spec, finalizers } }, { subresource: 'finalize', signal })
    .catch(tolerate('NotFound'))
}

export interface Remaining {
  /** Number of objects by resource, such as `pods`; no zeros. */
  readonly byResource: ReadonlyMap<string, number>
  readonly byFinalizer: ReadonlyMap<string, number>
  /** Number of objects by the member cluster that runs them, or must confirm that its copy is gone. */
  readonly byMember: ReadonlyMap<string, number>
  readonly discoveryFailures: readonly string[]
  readonly deletionFailures: readonly string[]
}

/** `unfinished`: one reconcile was not enough for all objects, so the remaining objects are not known. */
type Pass = Remaining | 'unfinished'

/**
 * Deletes every object in `namespace`. Pods go first; the rest follows when no pod is left (KEP-5080), so that a pod
 * keeps the Secrets and NetworkPolicies it depends on.
 */
async function deleteContent(client: KubeClient, namespace: string, signal: AbortSignal): Promise<Pass> {
  const byResource = new Map<string, number>()
  const byFinalizer = new Map<string, number>()
  const byMember = new Map<string, number>()
  const deletionFailures: string[] = []
  const budget = new DeletionBudget()
  const { resources, failures } = await deletableResources(client, signal)
  /** False when the budget of this reconcile is used up. */
  const reconcile = async (gvr: GroupVersionResource): Promise<boolean> => {
    try {
      const left = await deleteAll(client, { gvr, namespace }, budget, signal)
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
  if (resources.some(isPods) && !(await reconcile(pods))) return 'unfinished'
  if (byResource.size === 0 && deletionFailures.length === 0) {
    for (const gvr of resources) if (!isPods(gvr) && !(await reconcile(gvr))) return 'unfinished'
  }
  return { byResource, byFinalizer, byMember, discoveryFailures: failures, deletionFailures }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

/** The members that run the object or must confirm that their copy is gone. */
function membersOf(metadata: ObjectMeta): ReadonlySet<string> {
  const runsIn = metadata.annotations?.[memberAnnotation]
  return new Set([...finalizingMembers({ metadata }), ...(runsIn === undefined ? [] : [runsIn])])
}

/** The metadata of each object that is left after the deletion; undefined when the budget is used up. */
async function deleteAll(
  client: KubeClient,
  { gvr, namespace }: { readonly gvr: GroupVersionResource; readonly namespace: string },
  budget: DeletionBudget,
  signal: AbortSignal,
): Promise<ObjectMeta[] | undefined> {
  const batch = await deleteBatch(client, { gvr, namespace, propagationPolicy: 'Background' }, budget, signal)
  if (!batch.finished) return undefined
  if (batch.seen === 0) return []
  const left = await client.list(gvr, { namespace, metadataOnly: true, signal })
  return left.items.map(({ metadata }) => metadata)
}

interface DeletableResources {
  readonly resources: readonly GroupVersionResource[]
  /** Group versions whose discovery failed, with the error: it is then unknown whether the namespace is empty. */
  readonly failures: readonly string[]
}

interface ResourceList {
  readonly resources?: readonly {
    readonly name: string
    readonly namespaced: boolean
    readonly verbs?: readonly string[]
  }[]
}
interface GroupList {
  readonly groups?: readonly { readonly name: string; readonly preferredVersion?: { readonly groupVersion: string } }[]
}

/**
 * Namespaced resources with the verbs list and delete, in the preferred version of their group. Rejects if `/apis`
 * fails.
 */
export async function deletableResources(
  client: Pick<KubeClient, 'raw'>,
  signal: AbortSignal,
): Promise<DeletableResources> {
  const { groups = [] } = (await client.raw('/apis', { signal })) as GroupList
  const groupVersions = ['v1', ...groups.flatMap(({ preferredVersion }) => preferredVersion?.groupVersion ?? [])]
  const resources: GroupVersionResource[] = []
  const failures: string[] = []
  for (const groupVersion of groupVersions) {
    const parsed = parseApiVersion(groupVersion)
    try {
      const list = (await client.raw(groupVersionPath(parsed), { signal })) as ResourceList
      for (const { name, namespaced, verbs = [] } of list.resources ?? []) {
        if (!namespaced || name.includes('/') || !verbs.includes('list') || !verbs.includes('delete')) continue
        resources.push({ ...parsed, resource: name })
      }
    } catch (error) {
      signal.throwIfAborted()
      // The last CustomResourceDefinition of the group was deleted meanwhile, and its objects with it.
      if (isStatusError(error, 'NotFound')) continue
      failures.push(`${groupVersion}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return { resources, failures }
}

interface NamespaceCondition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
}

/** The conditions after a reconcile. An unchanged status keeps its lastTransitionTime. Pure. */
export function namespaceConditions(
  remaining: Remaining,
  before: readonly NamespaceCondition[],
  now: string,
): NamespaceCondition[] {
  return checksOf(remaining).map(({ type, problem, ok }) => {
    const [status, reason, message] = problem === undefined ? ['False', ...ok] : ['True', ...problem]
    const previous = before.find((condition) => condition.type === type)
    const isSame = previous?.status === status && previous.reason === reason && previous.message === message
    if (isSame) return previous
    const lastTransitionTime = previous?.status === status ? previous.lastTransitionTime : now
    return { type, status, reason, message, lastTransitionTime }
  })
}

type ReasonAndMessage = readonly [reason: string, message: string]
interface Check {
  readonly type: string
  /** Reason and message of the problem; undefined if there is none. */
  readonly problem: ReasonAndMessage | undefined
  readonly ok: ReasonAndMessage
}

function checksOf({ byResource, byFinalizer, byMember, discoveryFailures, deletionFailures }: Remaining): Check[] {
  const counted = (counts: ReadonlyMap<string, number>, text: (name: string, count: number) => string): string =>
    [...counts]
      .map(([name, count]) => text(name, count))
      .sort()
      .join(', ')
  // Upstream prints `RESOURCE.GROUP`; the core group is empty: `pods. has 2 resource instances`.
  const resourceText = (name: string, count: number): string =>
    `${name.includes('.') ? name : `${name}.`} has ${count} resource instances`
  // Upstream has no members.
  const memberText =
    byMember.size === 0
      ? ''
      : `; member clusters must end them or confirm that they are gone: ${counted(byMember, (name, count) => `"${name}" (${count})`)}`
  const finalizerText = (name: string, count: number): string => `${name} in ${count} resource instances`
  const when = (isProblem: boolean, reason: string, message: string): ReasonAndMessage | undefined =>
    isProblem ? [reason, message] : undefined
  return [
    {
      type: 'NamespaceDeletionDiscoveryFailure',
      problem: when(
        discoveryFailures.length > 0,
        'DiscoveryFailed',
        `Discovery failed for some groups, ${discoveryFailures.length} failing: ${discoveryFailures.join('; ')}`,
      ),
      ok: ['ResourcesDiscovered', 'All resources successfully discovered'],
    },
    {
      type: 'NamespaceDeletionGroupVersionParsingFailure',
      problem: undefined,
      ok: ['ParsedGroupVersions', 'All legacy kube types successfully parsed'],
    },
    {
      type: 'NamespaceDeletionContentFailure',
      problem: when(
        deletionFailures.length > 0,
        'ContentDeletionFailed',
        `Failed to delete all resource types, ${deletionFailures.length} remaining: ${deletionFailures.join('; ')}`,
      ),
      ok: ['ContentDeleted', 'All content successfully deleted, may be waiting on finalization'],
    },
    {
      type: 'NamespaceContentRemaining',
      problem: when(
        byResource.size > 0,
        'SomeResourcesRemain',
        `Some resources are remaining: ${counted(byResource, resourceText)}${memberText}`,
      ),
      ok: ['ContentRemoved', 'All content successfully removed'],
    },
    {
      type: 'NamespaceFinalizersRemaining',
      problem: when(
        byFinalizer.size > 0,
        'SomeFinalizersRemain',
        `Some content in the namespace has finalizers remaining: ${counted(byFinalizer, finalizerText)}`,
      ),
      ok: ['ContentHasNoFinalizers', 'All content-preserving finalizers finished'],
    },
  ]
}
