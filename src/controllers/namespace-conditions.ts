// status.conditions of a namespace that is being deleted: why it still exists. Types, reasons and messages are upstream's.
import type { Remaining } from './delete-content.ts'

export interface NamespaceCondition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
}

/** The conditions after a visit. An unchanged status keeps its lastTransitionTime. Pure. */
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
  /** Undefined if there is none. */
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
