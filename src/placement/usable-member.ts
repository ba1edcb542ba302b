// Whether a member takes new workloads of a logical cluster, whatever these demand. Pure.
import type { DeepReadonly } from '../apimachinery/meta/index.ts'
import { memberState, type MemberCluster } from '../crds/index.ts'
import { noDemand } from './candidate.ts'
import { filters } from './filters.ts'
import { memberFacts } from './member-facts.ts'
import type { Rejection } from './move/decision.ts'
import { unreachableSince } from './unreachable-since.ts'

/** Why nothing new is placed there; undefined if something may be. What workloads request is not looked at. */
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
