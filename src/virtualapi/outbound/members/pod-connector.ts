// The interface to pods in their members: logs, exec, attach, port-forward.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { serviceUnavailable } from '#apimachinery/status/index.ts'
import type { Transport, TransportResponse } from '#client/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'

export interface PodConnection {
  readonly cluster: LogicalCluster
  /**
   * The upstream Pod, as the tenant sees it. The pod in the member must have the uid that this pod names, or no
   * connection is made.
   */
  readonly pod: KubeObject
  readonly subresource: 'log' | 'exec' | 'attach' | 'portforward'
  readonly method: string
  /** The query with its leading `?`, or empty. */
  readonly query: string
  readonly rawHeaders: readonly string[]
  readonly body?: Uint8Array
  readonly signal: AbortSignal
}

/** Connects through the member's kube-apiserver, and only to pods that were placed for that logical cluster, by uid. */
export interface PodConnector {
  /** Rejects with NotFound if the member has no such pod, with ServiceUnavailable if the member cannot be reached. */
  request(connection: PodConnection): Promise<TransportResponse>
  upgrade(connection: PodConnection): ReturnType<Transport['upgrade']>
}

/** The error of a request to a pod if the server has no connection to members. */
export function noPodConnector(): Error {
  return serviceUnavailable('this server has no connection to member clusters')
}
