// The reasons why a workload is not moved for balance, or not to a member. `kcp placement explain` tells each of them.
// Pure.
import type { DeepReadonly, KubeObject } from '#apimachinery/meta/index.ts'
import { heldAnnotation, matches, newestMove, templateOf, type FixedSelector, type PlacedOn } from '#crds/index.ts'
import type { Candidate } from '#placement/rules/candidate.ts'
import type { Choice } from '#placement/choose/choice.ts'
import { evict, keepEven, refuse } from '#placement/choose/choose.ts'
import { scores } from '#placement/choose/scores.ts'

type CachedObject = DeepReadonly<KubeObject>

export interface RebalanceSubject {
  readonly workload: CachedObject
  readonly choice: Choice
  readonly placedOn: PlacedOn
  /** PodDisruptionBudgets of its namespace. */
  readonly budgets: Iterable<CachedObject>
  readonly nowMs: number
}

interface Refusal {
  /** Why the workload stays; undefined or false if this refusal does not apply. */
  readonly why: (subject: RebalanceSubject) => string | undefined | false
}

/** In order: the first one is told. The cheap ones come first. */
const refusals: readonly Refusal[] = [
  { why: ({ choice }) => choice.rebalance === undefined && 'no Placement of the administrators turns rebalancing on' },
  { why: ({ choice }) => choice.rebalance?.optOut },
  {
    why: ({ choice: { demand } }) =>
      demand.divide !== undefined && demand.divide.division !== 'ByCapacity' && 'its division does not follow capacity',
  },
  { why: ({ choice }) => isPinned(choice) && `its member clusters are named (${choice.source})` },
  { why: ({ choice }) => choice.move !== 'makeBeforeBreak' && 'it must not run in two member clusters at a time' },
  { why: ({ choice }) => choice.demand.pods === undefined && 'its kind has no replicas' },
  { why: ({ choice }) => choice.demand.pods?.replicas === 0 && 'it has no pods' },
  { why: ({ choice }) => choice.volumesIn.length > 0 && 'its volumes do not move' },
  { why: ({ workload }) => workload.metadata.annotations?.[heldAnnotation] !== undefined && 'it is held' },
  { why: whyNotSettled },
  { why: whyTooSoon },
  { why: whyBudget },
]

/** Why the workload is not moved, or not divided again, for balance; undefined if it may be. */
export function whyNotRebalanced(subject: RebalanceSubject): string | undefined {
  for (const { why } of refusals) {
    const reason = why(subject)
    if (reason !== undefined && reason !== false) return reason
  }
  return undefined
}

/**
 * Whether the workload may go to the member for balance: no filter refuses the member, and no score but the number of
 * copies prefers the old one.
 */
export function mayRebalanceTo(
  { choice }: Pick<RebalanceSubject, 'choice'>,
  { from, to, areJoined }: { readonly from: string; readonly to: string; readonly areJoined: boolean },
): boolean {
  const { demand, candidates, near } = choice
  const find = (name: string): Candidate | undefined => candidates.find((candidate) => candidate.name === name)
  const [source, target] = [find(from), find(to)]
  if (source === undefined || target === undefined) return false
  // Pods of other members are not reached: a namespace that is together stays together.
  if (!areJoined && near.some((name) => name !== to)) return false
  if (evict(source, demand) !== undefined || refuse(target, demand) !== undefined) return false
  if (scores.some(({ name, of }) => name !== 'FewCopies' && of(target, demand) < of(source, demand))) return false
  return keepEven(withoutCopyIn(from, candidates), demand).some(({ name }) => name === to)
}

/** The candidates without the copy that leaves `member`: it does not count for the domain of its member any more. */
function withoutCopyIn(member: string, candidates: readonly Candidate[]): Candidate[] {
  return candidates.map((one) => (one.name === member ? { ...one, ownLoad: Math.max(0, (one.ownLoad ?? 0) - 1) } : one))
}

/** Whether the target fixes the members. Named members run one copy each, unless they divide the replicas. */
function isPinned({ target, demand }: Choice): boolean {
  return target.kind !== 'best' && demand.divide === undefined
}

function whyNotSettled({ placedOn, choice }: RebalanceSubject): string | false {
  const copies = Object.entries(placedOn)
  const isDivided = choice.demand.divide !== undefined
  const isSettled = isDivided
    ? copies.length > 0 && copies.every(([, { state }]) => state === 'Serving')
    : copies.length === 1 && copies.every(([, { state, replicas }]) => state === 'Serving' && replicas === undefined)
  if (!isSettled) return 'it has not settled'
  if (isDivided) return false
  const member = copies[0]?.[0] ?? ''
  return (choice.present?.[member] ?? 0) < (choice.demand.pods?.replicas ?? 0) && 'not all its pods are available'
}

function whyTooSoon({ choice, workload, nowMs }: RebalanceSubject): string | false {
  const since = newestMove(workload)?.timeMs
  const { cooldownSeconds = 0, placement = '' } = choice.rebalance ?? {}
  if (since === undefined || nowMs - since >= cooldownSeconds * 1000) return false
  const until = new Date(since + cooldownSeconds * 1000).toISOString().replace(/\.\d+Z$/, 'Z')
  return `Placement "${placement}" leaves it where it is until ${until}: it moved less than ${cooldownSeconds} s before`
}

interface Budget {
  readonly spec?: {
    readonly selector?: FixedSelector
    readonly minAvailable?: number | string
    readonly maxUnavailable?: number | string
  }
  readonly status?: {
    readonly observedGeneration?: number
    readonly expectedPods?: number
    readonly disruptionsAllowed?: number
  }
}

/**
 * Why a PodDisruptionBudget forbids the move. A move disrupts nothing, because the new copy serves first; but a tenant
 * who allows no disruption does not want a move that nobody needs.
 */
function whyBudget({ workload, choice, budgets }: RebalanceSubject): string | undefined {
  const template = templateOf(workload) as { metadata?: { labels?: Record<string, string> } } | undefined
  const replicas = choice.demand.pods?.replicas ?? 0
  for (const budget of budgets) {
    const { spec = {}, status = {} } = budget as unknown as Budget
    if (spec.selector === undefined || !matches(spec.selector, template?.metadata?.labels)) continue
    const { minAvailable: least, maxUnavailable: most } = spec
    const forbids = most === 0 || most === '0%' || least === '100%' || (typeof least === 'number' && least >= replicas)
    const { observedGeneration, expectedPods = 0, disruptionsAllowed = 0 } = status
    const isUsedUp = observedGeneration !== undefined && expectedPods > 0 && disruptionsAllowed === 0
    if (forbids || isUsedUp) return `PodDisruptionBudget "${budget.metadata.name ?? ''}" allows no disruption`
  }
  return undefined
}
