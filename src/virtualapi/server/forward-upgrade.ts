// Passes an upgrade (exec, port-forward, a watch over a WebSocket) on to the process that owns its logical cluster.
import type { Duplex } from 'node:stream'
import type { Peer } from '#virtualapi/request/ownership.ts'
import type { IncomingRequest } from '#virtualapi/request/exchange.ts'
import { hopHeaders } from './wire/hop-headers.ts'
import { moving } from './own.ts'
import type { ServerDependencies } from './dependencies.ts'
import { pipeSockets } from '#network/sockets/index.ts'

export interface ForwardedUpgrade {
  readonly incoming: IncomingRequest
  readonly socket: Duplex
  /** The bytes that the client sent after the request. */
  readonly head: Uint8Array
  readonly to: Peer
  /** Aborted when the client disconnects or the server stops. */
  readonly signal: AbortSignal
  /** The span of the request in this process; undefined where nothing is traced. */
  readonly traceparent?: string | undefined
}

/**
 * Sends the request with the hop headers and joins both sockets: whatever the other process answers, a refusal too,
 * reaches the client. Resolves when both sockets are closed. Rejects with 503 if the other process cannot be reached.
 */
export async function forwardUpgrade(
  { incoming, socket, head, to, signal, traceparent }: ForwardedUpgrade,
  { peers }: Pick<ServerDependencies, 'peers'>,
): Promise<void> {
  const { method, peerCertificate: certificate, peerAddress } = incoming
  const { url, rawHeaders } = incoming.received ?? incoming
  const remote = await peers?.socket(to, signal).catch((cause: unknown) => {
    throw moving(cause)
  })
  if (remote === undefined) throw moving()
  const headers = [...rawHeaders, ...hopHeaders({ address: peerAddress?.(), certificate, traceparent })]
  const lines = [`${method} ${url} HTTP/1.1`]
  for (let i = 0; i + 1 < headers.length; i += 2) lines.push(`${headers[i] ?? ''}: ${headers[i + 1] ?? ''}`)
  // Header bytes are Latin-1, as Node has read them.
  remote.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  if (head.length > 0) remote.write(head)
  await pipeSockets(socket, remote, { signal })
}
