// WebSocket connections of kubectl to simulated pods, within the process: every message begins with the number of its
// channel.
import type { IncomingMessage } from 'node:http'
import { duplexPair, type Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { badRequest } from '#apimachinery/status/index.ts'
import type { UpgradedConnection } from '#client/index.ts'

/** The protocols of exec and attach, the best first; port-forward has only the second. */
const protocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io']
export const channels = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const
/** Maximum size of a client's message: kubectl sends what somebody types, or 32 KiB of a file. */
const maxMessageBytes = 64 * 1024
/** What a client that reads nothing may let pile up. */
const maxBufferedBytes = 4 * 1024 * 1024
const maxHeaderBytes = 8 * 1024

const server = new WebSocketServer({
  noServer: true,
  maxPayload: maxMessageBytes,
  handleProtocols: (offered) => protocols.find((one) => offered.has(one)) ?? false,
})

/** The connection of one client. */
export class Channels {
  readonly #socket: WebSocket

  constructor(socket: WebSocket) {
    this.#socket = socket
  }

  send(channel: number, data: Uint8Array | string): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return
    if (this.#socket.bufferedAmount > maxBufferedBytes) this.#socket.terminate()
    else this.#socket.send(Buffer.concat([Buffer.of(channel), Buffer.from(data)]))
  }

  close(): void {
    this.#socket.close(1000)
  }

  onMessage(take: (channel: number, data: Buffer) => void): void {
    this.#socket.on('message', (data) => {
      const bytes = Buffer.isBuffer(data) ? data : Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)
      if (bytes.length > 0) take(bytes[0] ?? 0, bytes.subarray(1))
    })
  }

  onClose(ended: () => void): void {
    this.#socket.once('close', ended)
    this.#socket.on('error', () => this.#socket.terminate())
  }
}

/**
 * Accepts the upgrade and calls `open` with the connection. Rejects with BadRequest if the client does not speak
 * WebSocket.
 */
export async function acceptChannels(
  rawHeaders: readonly string[],
  open: (connection: Channels) => void,
): Promise<UpgradedConnection> {
  const headers = headersOf(rawHeaders)
  if (headers['upgrade']?.toLowerCase() !== 'websocket')
    throw badRequest('a simulated pod takes only connections by WebSocket (kubectl 1.31 or newer)')
  const [near, far] = duplexPair()
  const request = { method: 'GET', headers, url: '/' } as unknown as IncomingMessage
  server.handleUpgrade(request, near, Buffer.alloc(0), (socket) => open(new Channels(socket)))
  return await acceptedOf(far)
}

function headersOf(rawHeaders: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {}
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    headers[(rawHeaders[i] ?? '').toLowerCase()] = rawHeaders[i + 1] ?? ''
  return headers
}

/** Reads the answer to the handshake; the rest of the stream is the connection. */
async function acceptedOf(socket: Duplex): Promise<UpgradedConnection> {
  const { promise, resolve, reject } = Promise.withResolvers<UpgradedConnection>()
  let received = Buffer.alloc(0)
  const take = (chunk: Buffer): void => {
    received = Buffer.concat([received, chunk])
    const end = received.indexOf('\r\n\r\n')
    if (end < 0 && received.length < maxHeaderBytes) return
    socket.off('data', take)
    socket.pause()
    const [status = '', ...lines] = received.subarray(0, Math.max(0, end)).toString('latin1').split('\r\n')
    if (!status.startsWith('HTTP/1.1 101')) {
      socket.destroy()
      reject(badRequest(`the handshake of the WebSocket is not valid: ${status}`))
      return
    }
    const headers = lines.flatMap((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1).trim()]
    })
    resolve({ headers, socket, head: received.subarray(end + 4) })
  }
  socket.on('data', take)
  return await promise
}
