// The contract for writing pods in their member cluster: what a tenant changes of a pod that runs there.
import type { JsonObject, KubeObject, Int64 } from '#apimachinery/meta/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'

/** A pod, as it is upstream before the write, and how it is written. */
export interface PodWrite {
  readonly cluster: LogicalCluster
  readonly pod: KubeObject
  readonly dryRun: boolean
  readonly signal: AbortSignal
}

/**
 * Each resolves once the member's API server has accepted the write, for the pod of that uid only. Rejects with the
 * member's own error, in the names of the logical cluster; with NotFound if the member has no such pod, with
 * ServiceUnavailable if it cannot be reached.
 */
export interface PodWriter {
  /** Makes the change from `pod` to `next` in the member; repeating it is harmless. */
  update(write: PodWrite & { readonly next: KubeObject; readonly subresource: string }): Promise<void>
  /** A pod that is gone there already, or has another uid, is no error. */
  delete(write: PodWrite & { readonly gracePeriodSeconds?: Int64 }): Promise<void>
  /** Rejects with TooManyRequests where a PodDisruptionBudget in the member does not allow it. */
  evict(write: PodWrite & { readonly deleteOptions: JsonObject }): Promise<void>
}
