// The server side of WebSockets, on the library `ws`: for watches, which only send, and for the tunnels of agents. exec
// and the like do not use it; their bytes are piped to the member unread.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer, type WebSocket } from 'ws'
import { badRequest } from '#apimachinery/status/index.ts'

/** The first header of this lower-case name, or undefined. */
type HeaderOf = (name: string) => string | undefined

/** Browsers send their bearer token as a subprotocol, which must not be selected. */
const tokenProtocol = 'base64url.bearer.authorization.k8s.io.'
/**
 * Maximum size of a message from the client, bytes. A watch needs no messages from its client: they are read and
 * dropped.
 */
const maxMessageBytes = 64 * 1024
/** How long a client may keep its connection after the close frame, milliseconds. */
const closeTimeoutMs = 2000

// A separate constant, because the published types do not have closeTimeout yet.
const options = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxFragments: 64,
  maxBufferedChunks: 1024,
  closeTimeout: closeTimeoutMs,
  autoPong: false,
} as const
const watchOptions = {
  ...options,
  maxPayload: maxMessageBytes,
  handleProtocols: (offered: ReadonlySet<string>) =>
    [...offered].find((protocol) => !protocol.startsWith(tokenProtocol)) ?? false,
}
const watchAcceptor = new WebSocketServer(watchOptions)
/** Maximum size of a message of an agent, bytes: HTTP/2 frames are written together. */
const maxTunnelMessageBytes = 8 * 1024 * 1024
const tunnelAcceptor = new WebSocketServer({ ...options, maxPayload: maxTunnelMessageBytes })

/** True if the client asks for an upgrade to WebSocket. */
export function isWebSocketRequest(header: HeaderOf): boolean {
  return /\bupgrade\b/i.test(header('connection') ?? '') && header('upgrade')?.toLowerCase() === 'websocket'
}

/**
 * Throws 400 unless the request is a handshake of version 13 (RFC 6455): called before anything else is done for it.
 */
export function requireHandshake(header: HeaderOf): void {
  const key = header('sec-websocket-key') ?? ''
  if (header('sec-websocket-version') !== '13' || Buffer.from(key, 'base64').length !== 16)
    throw badRequest('this is no WebSocket handshake of version 13')
}

/** Answers the handshake of a watch with 101. Undefined if the client has disconnected or was refused. */
export function acceptWebSocket(request: IncomingMessage, socket: Duplex, head: Buffer): WebSocket | undefined {
  return accept(watchAcceptor, request, socket, head)
}

/** Answers the handshake of an agent with 101 and these headers. Undefined if the agent has disconnected or was refused. */
export function acceptTunnel(
  request: IncomingMessage,
  socket: Duplex,
  { head, headers }: { readonly head: Buffer; readonly headers: Readonly<Record<string, string>> },
): WebSocket | undefined {
  const add = (lines: string[]): void => {
    lines.push(...Object.entries(headers).map(([name, value]) => `${name}: ${value}`))
  }
  // The event comes before the call returns.
  tunnelAcceptor.on('headers', add)
  try {
    return accept(tunnelAcceptor, request, socket, head)
  } finally {
    tunnelAcceptor.off('headers', add)
  }
}

function accept(
  acceptor: WebSocketServer,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): WebSocket | undefined {
  let accepted: WebSocket | undefined
  acceptor.handleUpgrade(request, socket, head, (webSocket) => {
    accepted = webSocket
  })
  // Drop pongs to a client that does not read, or they would fill our memory.
  accepted?.on('ping', (payload) => {
    if (!socket.writableNeedDrain) accepted?.pong(payload)
  })
  return accepted
}
