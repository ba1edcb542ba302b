// Whether an autoscaler in this member sets the replicas of a workload: then the syncer keeps the number it finds there.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { scaleTargetOf } from '#syncer/context/references.ts'
import { downstreamNamespaceOf, downstreamObject, type SyncContext, type Visit } from '#syncer/context/sync-context.ts'

/** True if the member has an autoscaler for the workload. */
export function isScaled(context: SyncContext, workload: DeepReadonly<KubeObject>, visit: Visit): boolean {
  const memberNamespace = downstreamNamespaceOf(context, visit)
  if (memberNamespace === undefined) return false
  const target = `${workload.kind}/${visit.name}`
  for (const autoscaler of context.upstreamIn('horizontalpodautoscalers', visit.cluster, visit.namespace)) {
    const { name = '' } = autoscaler.metadata
    if (scaleTargetOf(autoscaler) !== target) continue
    if (downstreamObject(context, 'horizontalpodautoscalers', memberNamespace, name) !== undefined) return true
  }
  return false
}
