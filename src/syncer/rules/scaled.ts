// Autoscalers in this member: while one sets the replicas of a workload, the syncer keeps the number that the copy has;
// while the workload is asleep, none sets them.
import { cloneJson, type KubeObject } from '#apimachinery/meta/index.ts'
import type { NamespaceView } from '#syncer/context/namespace-view.ts'
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

/**
 * The copy of an autoscaler whose workload is asleep: with a lower bound of at least 1 it does not scale a workload that
 * has no replicas. The same copy while the workload is awake.
 */
export function withoutScaling(copy: KubeObject, view: NamespaceView): KubeObject {
  const { minReplicas } = (copy['spec'] ?? {}) as { minReplicas?: number }
  if (minReplicas !== 0 || !view.isAsleep(scaleTargetOf(copy))) return copy
  return { ...copy, spec: { ...(cloneJson(copy['spec']) as object), minReplicas: 1 } }
}
