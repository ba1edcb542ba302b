// Finds out whether an autoscaler in this member sets the replicas of a workload: then the syncer keeps the number that
// the copy has.
import { scaleTargetOf } from '#syncer/context/references.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import type { Scope } from '#syncer/context/scope.ts'

/** True if the member has an autoscaler for the workload. */
export function isScaled(scope: Scope, { kind, metadata: { name } }: CachedObject): boolean {
  for (const autoscaler of scope.allUpstream('horizontalpodautoscalers'))
    if (
      scaleTargetOf(autoscaler) === `${kind}/${name}` &&
      scope.live('horizontalpodautoscalers', autoscaler.metadata.name ?? '') !== undefined
    )
      return true
  return false
}
