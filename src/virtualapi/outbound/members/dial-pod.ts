// A connection to a port of a pod in a member, by port-forward. Webhooks and proxies use it; the member only passes the
// bytes on.
import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { serviceUnavailable } from '#apimachinery/status/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { PodConnector } from './pod-connector.ts'
import { PodStream } from './pod-stream.ts'

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
  const headers = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': randomBytes(16).toString('base64'),
    'sec-websocket-protocol': 'v4.channel.k8s.io',
  }
  const result = await connector.upgrade({
    cluster,
    pod,
    subresource: 'portforward',
    method: 'GET',
    query: `?ports=${port}`,
    signal,
    rawHeaders: Object.entries(headers).flat(),
  })
  if ('refused' in result) {
    await result.refused.body[Symbol.asyncIterator]().return?.()
    const { name = '' } = pod.metadata
    throw serviceUnavailable(`the member cluster refused a connection to port ${port} of pod "${name}"`)
  }
  const { socket, head } = result.upgraded
  return new PodStream(socket, head)
}
