// The departure of a workload from a member that does not answer.
import { lostAfterMs } from '#crds/index.ts'
import type { Candidate, Demand } from '#placement/rules/candidate.ts'

const defaultTolerationSeconds = 300
/** With this part of all members not answering, failover stops (as kube-controller-manager's unhealthy-zone-threshold). */
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
 * In how many milliseconds the workload leaves the member; 0: it leaves now. Undefined: it stays, because the member answers, or
 * because failover is frozen, or because the workload must not run twice.
 */
export function failoverInMs(candidate: Candidate, demand: Demand): number | undefined {
  const { unreachableMs, isFailoverFrozen: isFrozen = false, isFenced = false } = candidate
  if (isFenced) return 0
  if (unreachableMs === undefined || isFrozen || demand.runsOnce) return undefined
  return Math.max(0, limitMs(demand) - unreachableMs)
}

/** After how long without an answer a workload with this demand leaves. */
export function limitMs({ tolerationSeconds = defaultTolerationSeconds }: Demand): number {
  return Math.max(lostAfterMs, tolerationSeconds * 1000)
}
