// A connection to a port of a pod, by port-forward: the API server of the member and the kubelet pass the bytes on.
import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { serviceUnavailable } from '#apimachinery/status/index.ts'
import type { Transport } from '#client/index.ts'
import { PodStream } from './pod-stream.ts'

/** The raw headers that ask for the WebSocket protocol of port-forward. */
export function portForwardHeaders(): string[] {
  const headers = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': randomBytes(16).toString('base64'),
    'sec-websocket-protocol': 'v4.channel.k8s.io',
  }
  return Object.entries(headers).flat()
}

/** The byte stream of a port-forward. Rejects with ServiceUnavailable if the upgrade was refused. */
export async function podStreamOf(
  result: Awaited<ReturnType<Transport['upgrade']>>,
  { name, port }: { readonly name: string; readonly port: number },
): Promise<Duplex> {
  if ('refused' in result) {
    await result.refused.body[Symbol.asyncIterator]().return?.()
    throw serviceUnavailable(`the member cluster refused a connection to port ${port} of pod "${name}"`)
  }
  const { socket, head } = result.upgraded
  return new PodStream(socket, head)
}

export interface PodPortOfMember {
  readonly namespace: string
  readonly name: string
  readonly port: number
}

/** Opens a byte stream to a port of a pod of ours in the member. The signal ends the attempt and, later, the stream. */
export async function dialMemberPod(
  transport: Pick<Transport, 'upgrade'>,
  { namespace, name, port }: PodPortOfMember,
  signal: AbortSignal,
): Promise<Duplex> {
  const result = await transport.upgrade({
    method: 'GET',
    path: `/api/v1/namespaces/${namespace}/pods/${name}/portforward?ports=${port}`,
    rawHeaders: portForwardHeaders(),
    signal,
  })
  return await podStreamOf(result, { name, port })
}
