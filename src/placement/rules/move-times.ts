// The durations of a move's steps for one workload. Pure.
import type { PlacementMove } from '#crds/index.ts'
import type { ApplicableRules } from './applicable-rules.ts'
import { byRank } from './target.ts'

/** What the first Placement that speaks of it says: the tenant's, then those for the logical cluster, then those for all, by rank. */
export function moveTimes({ ofTenant, ofCluster, global }: ApplicableRules): PlacementMove | undefined {
  for (const level of [ofTenant, ofCluster, global]) {
    const [first] = level.filter(({ move }) => move !== undefined).toSorted(byRank)
    if (first !== undefined) return first.move
  }
  return undefined
}
