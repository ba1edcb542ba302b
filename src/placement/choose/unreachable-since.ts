// Since when a member has not answered.
import type { DeepReadonly } from '#apimachinery/meta/index.ts'
import { findCondition, type MemberCluster } from '#crds/index.ts'

/**
 * When the operator noticed that the member does not answer, in milliseconds; undefined while it answers, refusals of our
 * credentials included: then it is not lost.
 */
export function unreachableSince(member: DeepReadonly<MemberCluster>): number | undefined {
  const reachable = findCondition(member, 'Reachable')
  if (reachable?.status !== 'False' || reachable.reason === 'ConnectionUnusable') return undefined
  const since = Date.parse(reachable.lastTransitionTime)
  return Number.isNaN(since) ? undefined : since
}
