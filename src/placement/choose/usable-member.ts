// The suitability of a member for new workloads of a logical cluster, before their own demands are considered. Pure.
import type { DeepReadonly } from '#apimachinery/meta/index.ts'
import { findCondition, type MemberCluster, memberState } from '#crds/index.ts'
import type { Rejection } from '#placement/move/move-input.ts'
import { noDemand } from '#placement/rules/candidate.ts'
import { memberFacts } from '#placement/rules/member-facts.ts'
import { filters } from './filters.ts'

/** Why no new workload can be placed in the member; undefined if one can. Ignores what workloads demand. */
export function whyNotUsable(
  member: DeepReadonly<MemberCluster>,
  {
    clusterLabels,
    nowMs,
  }: { readonly clusterLabels: Readonly<Record<string, string>> | undefined; readonly nowMs: number },
): Omit<Rejection, 'cluster'> | undefined {
  const since = unreachableSince(member)
  const candidate = {
    ...memberFacts(member, { clusterLabels }),
    state: memberState(member),
    load: 0,
    ...(since !== undefined && { unreachableMs: nowMs - since, isFenced: member.spec?.fenced === true }),
  }
  for (const { reason, refuse } of filters) {
    const message = refuse(candidate, noDemand)
    if (message !== undefined) return { reason, message }
  }
  return undefined
}

/**
 * When the operator noticed that the member does not answer, in Unix milliseconds; undefined while it answers. A member
 * that refuses our credentials answers, so it is not lost.
 */
export function unreachableSince(member: DeepReadonly<MemberCluster>): number | undefined {
  const reachable = findCondition(member, 'Reachable')
  if (reachable?.status !== 'False' || reachable.reason === 'ConnectionUnusable') return undefined
  const since = Date.parse(reachable.lastTransitionTime)
  return Number.isNaN(since) ? undefined : since
}
