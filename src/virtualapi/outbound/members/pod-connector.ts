// The contract for reaching a pod in its member cluster: logs, exec, attach, port-forward.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { serviceUnavailable } from '#apimachinery/status/index.ts'
import type { Transport, TransportResponse } from '#client/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'

export interface PodConnection {
  readonly cluster: LogicalCluster
  /** The upstream Pod, as the tenant sees it. Its uid must be that of the pod in the member, or nothing is dialled. */
  readonly pod: KubeObject
  readonly subresource: 'log' | 'exec' | 'attach' | 'portforward'
  readonly method: string
  /** With leading `?`, or empty. */
  readonly query: string
  readonly rawHeaders: readonly string[]
  readonly body?: Uint8Array
  readonly signal: AbortSignal
}

/** Dials only pods placed for that logical cluster, by uid, through the member's kube-apiserver. */
export interface PodConnector {
  /** Rejects with NotFound if the member has no such pod, with ServiceUnavailable if the member cannot be reached. */
  request(connection: PodConnection): Promise<TransportResponse>
  upgrade(connection: PodConnection): ReturnType<Transport['upgrade']>
}

/** The error of a request to a pod where the server knows no members. */
export function noPodConnector(): Error {
  return serviceUnavailable('this server has no connection to member clusters')
}
