// The interface for writes of a tenant to a pod that runs in a member.
import type { JsonObject, KubeObject, Int64 } from '#apimachinery/meta/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'

/** The upstream pod before the write, and the options of the write. */
export interface PodWrite {
  readonly cluster: LogicalCluster
  readonly pod: KubeObject
  readonly dryRun: boolean
  readonly signal: AbortSignal
}

/**
 * Each method resolves once the member's API server has accepted the write. A write applies only to the pod with the
 * uid of the upstream pod's copy. Rejects with the member's own error, in the names of the logical cluster; with
 * NotFound if the member has no such pod, with ServiceUnavailable if the member cannot be reached.
 */
export interface PodWriter {
  /** Makes the change from `pod` to `next` in the member; repeating it is harmless. */
  update(write: PodWrite & { readonly next: KubeObject; readonly subresource: string }): Promise<void>
  /** Deletes the pod in the member. A pod that is already gone in the member, or has another uid, is no error. */
  delete(write: PodWrite & { readonly gracePeriodSeconds?: Int64 }): Promise<void>
  /**
   * Evicts the pod in the member. Rejects with TooManyRequests if a PodDisruptionBudget in the member does not allow
   * it.
   */
  evict(write: PodWrite & { readonly deleteOptions: JsonObject }): Promise<void>
}
