// The filters: each refuses members on which a workload must not be placed, with a reason for the tenant.
import { amountsText, increaseOf, type Amounts } from '#apimachinery/quantity/index.ts'
import { lostAfterMs, matches } from '#crds/index.ts'
import type { Bound, Candidate, Demand } from '#placement/rules/candidate.ts'
import { missingClass } from '#placement/rules/classes.ts'
import { firstUntolerated, taintText } from '#placement/rules/taints.ts'
import { refuseByExpression } from './expression-match.ts'

export type FilterReason =
  | 'ClusterFenced'
  | 'ClusterLost'
  | 'ClusterNotReady'
  | 'ClusterDraining'
  | 'ClusterCordoned'
  | 'NotAdmitted'
  | 'ForbiddenByPlacement'
  | 'LabelsDoNotMatch'
  | 'ExpressionDoesNotMatch'
  | 'TaintNotTolerated'
  | 'FieldsUnsupported'
  | 'ClassMissing'
  | 'InsufficientCapacity'

export interface Filter {
  readonly reason: FilterReason
  /** Why the member is refused; undefined if it is not. */
  readonly refuse: (candidate: Candidate, demand: Demand) => string | undefined
  /** The filter holds for copies that exist, too: they move away when they can. */
  readonly evicts?: boolean
  /**
   * The filter refuses what the workload itself says: if it refuses all members, nothing but a change of the workload
   * helps.
   */
  readonly concernsWorkload?: boolean
}

const named = ({ name }: Candidate): string => `member cluster "${name}"`

/** In order: the first one that refuses a member gives the reason. */
export const filters: readonly Filter[] = [
  // First the filters of members that the tenant may not use at all: it is told nothing else about such a member.
  {
    reason: 'NotAdmitted',
    refuse: (candidate) => (candidate.admits ? undefined : `${named(candidate)} does not admit this logical cluster`),
  },
  { reason: 'ForbiddenByPlacement', refuse: refuseForbidden, evicts: true },
  {
    reason: 'ClusterFenced',
    refuse: (candidate) => (candidate.isFenced ? `${named(candidate)} does not answer and is fenced` : undefined),
    evicts: true,
  },
  {
    reason: 'ClusterLost',
    refuse: (candidate, demand) =>
      failoverInMs(candidate, demand) === 0
        ? `${named(candidate)} has not answered for more than ${limitMs(demand) / 1000} s`
        : undefined,
    evicts: true,
  },
  {
    reason: 'ClusterNotReady',
    refuse: (candidate) => (candidate.ready ? undefined : `${named(candidate)} is not Ready`),
  },
  {
    reason: 'ClusterDraining',
    refuse: (candidate) => (candidate.state === 'Draining' ? `${named(candidate)} is being drained` : undefined),
    evicts: true,
  },
  {
    reason: 'ClusterCordoned',
    refuse: (candidate) => (candidate.state === 'Cordoned' ? `${named(candidate)} is cordoned` : undefined),
  },
  {
    reason: 'LabelsDoNotMatch',
    refuse: (candidate, { require }) =>
      require === undefined || matches(require.labelSelector, candidate.labels)
        ? undefined
        : `${named(candidate)} does not have the labels that Placement "${require.placement}" requires`,
    evicts: true,
  },
  { reason: 'ExpressionDoesNotMatch', refuse: refuseByCel, evicts: true },
  {
    reason: 'TaintNotTolerated',
    refuse: (candidate, demand) => refuseTainted(candidate, demand, ['NoExecute']),
    evicts: true,
  },
  {
    reason: 'TaintNotTolerated',
    refuse: (candidate, demand) => refuseTainted(candidate, demand, ['NoSchedule']),
  },
  { reason: 'FieldsUnsupported', refuse: refuseUnknownField, concernsWorkload: true },
  { reason: 'ClassMissing', refuse: refuseMissingClass, concernsWorkload: true },
  { reason: 'InsufficientCapacity', refuse: refuseFull },
]

/** Whether an admin's Placement lets workloads run there. */
export function isWithin({ clusters, require, cel }: Bound, candidate: Candidate): boolean {
  const { name, labels } = candidate
  if ((clusters !== undefined && !clusters.includes(name)) || !matches(require, labels)) return false
  return cel === undefined || refuseByExpression(cel, candidate) === undefined
}

function refuseByCel(candidate: Candidate, { requireCel }: Demand): string | undefined {
  if (requireCel === undefined) return undefined
  const { placement, expression } = requireCel
  const why = refuseByExpression(expression, candidate)
  return why && `for ${named(candidate)}, the expression that Placement "${placement}" requires ${why}`
}

function refuseForbidden(candidate: Candidate, { bounds }: Demand): string | undefined {
  const bound = bounds.find((one) => !isWithin(one, candidate))
  return bound === undefined
    ? undefined
    : `Placement "${bound.placement}" of the administrators does not allow ${named(candidate)}`
}

function refuseTainted(
  candidate: Candidate,
  { tolerations }: Demand,
  effects: Parameters<typeof firstUntolerated>[2],
): string | undefined {
  const taint = firstUntolerated(candidate.taints, tolerations, effects)
  return taint === undefined ? undefined : `${named(candidate)} has the taint "${taintText(taint)}"`
}

function refuseUnknownField(candidate: Candidate): string | undefined {
  const { unknownField: field } = candidate
  if (field === undefined) return undefined
  return field === '' ? `${named(candidate)} does not serve the kind` : `${named(candidate)} does not know ${field}`
}

function refuseMissingClass(candidate: Candidate, { classes = [] }: Demand): string | undefined {
  const missing = missingClass(classes, candidate.classes)
  return missing && `${named(candidate)} has no ${missing.kind} "${missing.name}"`
}

/** Why the requests do not fit beside those of others; undefined if they do. */
export function refuseFull(candidate: Candidate, { requests }: Demand): string | undefined {
  const { limits, requested } = candidate
  if (limits === undefined) return undefined
  const free = freeOf(limits, requested)
  const limited = new Map([...requests].filter(([name]) => limits.has(name)))
  const missing = increaseOf(limited, free)
  if (missing.size === 0) return undefined
  const short = (amounts: Amounts): string =>
    amountsText(new Map([...amounts].filter(([name]) => missing.has(name)))) || 'nothing'
  return `${named(candidate)} has no room: it needs ${short(requests)}; free: ${short(free)} of ${short(limits)}`
}

/** The rest of the limits; 0, not less, where more is requested. */
export function freeOf(limits: Amounts, requested: Amounts = new Map()): Amounts {
  return new Map(
    [...limits].map(([name, { nanos, format }]) => {
      const left = nanos - (requested.get(name)?.nanos ?? 0n)
      return [name, { nanos: left > 0n ? left : 0n, format }]
    }),
  )
}

const defaultTolerationSeconds = 300
/**
 * Failover stops when this part of all members does not answer (unhealthy-zone-threshold of kube-controller-manager).
 */
const frozenPart = 0.55

/** Whether failover stops because too many of all members do not answer. */
export function isFailoverFrozen({
  unreachable,
  all,
}: {
  readonly unreachable: number
  readonly all: number
}): boolean {
  return all > 0 && unreachable / all >= frozenPart
}

/**
 * In how many milliseconds the workload leaves the member; 0: it leaves now. Undefined: it stays, because the member
 * answers, or because failover is frozen, or because the workload must not run twice.
 */
export function failoverInMs(candidate: Candidate, demand: Demand): number | undefined {
  const { unreachableMs, isFailoverFrozen: isFrozen = false, isFenced = false } = candidate
  if (isFenced) return 0
  if (unreachableMs === undefined || isFrozen || demand.runsOnce) return undefined
  return Math.max(0, limitMs(demand) - unreachableMs)
}

/** After how many milliseconds without an answer a workload with this demand leaves the member. */
export function limitMs({ tolerationSeconds = defaultTolerationSeconds }: Demand): number {
  return Math.max(lostAfterMs, tolerationSeconds * 1000)
}
