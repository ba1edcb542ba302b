// The suitability of a member for new workloads of a logical cluster, before their own demands are considered. Pure.
import type { DeepReadonly } from '#apimachinery/meta/index.ts'
import { memberState, type MemberCluster } from '#crds/index.ts'
import { noDemand } from '#placement/rules/candidate.ts'
import { filters } from './filters.ts'
import { memberFacts } from '#placement/rules/member-facts.ts'
import type { Rejection } from '#placement/move/decision.ts'
import { unreachableSince } from './unreachable-since.ts'

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
