// A connection to a port of a tenant's pod, by port-forward. Webhooks and proxies use it; the member only passes the
// bytes on.
import type { Duplex } from 'node:stream'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { podStreamOf, portForwardHeaders } from '#client/member/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { PodConnector } from './pod-connector.ts'

export interface PodPort {
  readonly cluster: LogicalCluster
  /** The upstream Pod, as in PodConnection. */
  readonly pod: KubeObject
  readonly port: number
}

/**
 * Opens a byte stream to the port. The signal ends the connection attempt and, later, the stream. Rejects as
 * PodConnector, and with ServiceUnavailable if the member refuses.
 */
export async function dialPod(
  connector: Pick<PodConnector, 'upgrade'>,
  { cluster, pod, port }: PodPort,
  signal: AbortSignal,
): Promise<Duplex> {
  const result = await connector.upgrade({
    cluster,
    pod,
    subresource: 'portforward',
    method: 'GET',
    query: `?ports=${port}`,
    signal,
    rawHeaders: portForwardHeaders(),
  })
  return await podStreamOf(result, { name: pod.metadata.name ?? '', port })
}
