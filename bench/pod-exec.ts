// Requests to a pod without kubectl, whose own start takes longer than what is measured: exec over a WebSocket, and
// logs.
import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import type { Way } from './stream-pod.ts'

/** Runs a command in container `tools`; the socket speaks `v5.channel.k8s.io`. */
export async function openExec(way: Way, command: readonly string[], signal: AbortSignal): Promise<Duplex> {
  const query = new URLSearchParams({ container: 'tools', stdout: 'true', stderr: 'true' })
  for (const part of command) query.append('command', part)
  const rawHeaders = [
    ...['Connection', 'Upgrade', 'Upgrade', 'websocket', 'Sec-WebSocket-Version', '13'],
    ...['Sec-WebSocket-Key', randomBytes(16).toString('base64'), 'Sec-WebSocket-Protocol', 'v5.channel.k8s.io'],
  ]
  const path = `${podPath(way)}/exec?${query.toString()}`
  const response = await way.transport.upgrade({ method: 'GET', path, rawHeaders, signal })
  if ('refused' in response) throw new Error(`exec was refused with ${response.refused.status}`)
  const { socket, head } = response.upgraded
  // When the signal aborts, the socket fails, also while nobody reads it.
  socket.on('error', () => undefined)
  if (head.length > 0) socket.unshift(head)
  return socket
}

/** Runs a command to its end. */
export async function execOnce(way: Way, command: readonly string[], signal: AbortSignal): Promise<void> {
  const socket = await openExec(way, command, signal)
  let text = ''
  // The last message on the channel for errors says how the command ended; frames of a server are not masked.
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    text += chunk.toString('latin1')
    if (text.includes('"status":"Success"')) break
    if (text.includes('"status":"Failure"')) throw new Error(`the command failed: ${text}`)
  }
  socket.destroy()
  if (!text.includes('"status":"Success"')) throw new Error('exec ended without a result')
}

/** The bytes of the log of a container. */
export async function openLog(way: Way, query: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
  const { status, body } = await way.transport.request({ method: 'GET', path: `${podPath(way)}/log?${query}`, signal })
  if (status !== 200) throw new Error(`logs were answered ${status}`)
  return body
}

function podPath({ namespace, pod }: Way): string {
  return `/api/v1/namespaces/${namespace}/pods/${pod}`
}
