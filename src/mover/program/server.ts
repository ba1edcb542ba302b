// The listener of a mover: TLS with a certificate of the same move. Control speaks HTTP, the target the protocol of
// frames; everybody else is refused.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { constants } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { PendingConnections } from '#network/listening/index.ts'
import {
  errorBody,
  isIdentity,
  MoverError,
  type MoverRole,
  type PartyCredentials,
  type Party,
} from '#mover/contract/index.ts'
import { peerProtocol } from '#mover/wire/peer-connection.ts'

export interface MoverServerOptions {
  readonly credentials: PartyCredentials
  readonly move: string
  readonly role: MoverRole
  readonly host: string
  readonly port: number
  /** Answers a request of control. */
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void
  /** Takes the raw connection of an upgrade to a relay; false if it is not wanted. */
  readonly onRelay: (stream: Duplex, head: Buffer) => boolean
  /** Takes the connection of the target; only the source has it. */
  readonly onTarget: (stream: TLSSocket) => void
  readonly onRefused: (reason: string) => void
}

export interface MoverServer extends AsyncDisposable {
  readonly port: number
}

const pendingBounds = { maxMs: 10_000, maxPerNetwork: 16, max: 64 }
/** Control has one connection for each call. */
const maxConnections = 128

/** Listens. Rejects if the port cannot be used. */
export async function startMoverServer(options: MoverServerOptions): Promise<MoverServer> {
  const pending = new PendingConnections(pendingBounds)
  const http = createHttp(options)
  const server = createTlsServer({
    ca: options.credentials['ca.crt'],
    cert: options.credentials['tls.crt'],
    key: options.credentials['tls.key'],
    minVersion: 'TLSv1.3',
    requestCert: true,
    rejectUnauthorized: true,
    // A resumed session shows no certificate.
    secureOptions: constants.SSL_OP_NO_TICKET,
    handshakeTimeout: pendingBounds.maxMs,
    ALPNProtocols: options.role === 'source' ? ['http/1.1', peerProtocol] : ['http/1.1'],
    noDelay: true,
    keepAlive: true,
  })
  server.maxConnections = maxConnections
  const open = new Set<Socket>()
  server.on('connection', (raw: Socket) => {
    raw.on('error', () => undefined)
    open.add(raw)
    raw.once('close', () => open.delete(raw))
    pending.add(raw)
  })
  server.on('tlsClientError', (error, secure) => {
    // A probe of the kubelet opens a connection and closes it.
    if (!isProbe(error)) options.onRefused(error.message)
    setImmediate(() => secure.destroy())
  })
  server.on('secureConnection', (secure) => {
    secure.on('error', () => undefined)
    pending.settle(secure)
    admit(secure, http, options)
  })
  server.listen(options.port, options.host)
  await once(server, 'listening')
  server.on('error', () => undefined)
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      pending[Symbol.dispose]()
      const closed = new Promise((resolve) => server.close(resolve))
      for (const raw of open) raw.destroy()
      await closed
    },
  }
}

function admit(secure: TLSSocket, http: Server, options: MoverServerOptions): void {
  const names = secure.getPeerX509Certificate()?.subjectAltName
  const isOf = (party: Party): boolean => isIdentity(names, options.move, party)
  if (secure.alpnProtocol === 'http/1.1' && isOf('control')) http.emit('connection', secure)
  else if (secure.alpnProtocol === peerProtocol && options.role === 'source' && isOf('target')) options.onTarget(secure)
  else {
    options.onRefused(`a certificate of "${String(names)}"`)
    secure.destroy()
  }
}

function isProbe(error: Error & { readonly code?: string }): boolean {
  return error.code === 'ECONNRESET'
}

function createHttp({ onRequest, onRelay }: MoverServerOptions): Server {
  const http = createHttpServer({ maxHeaderSize: 8192, requestTimeout: 30_000 }, onRequest)
  http.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => undefined)
    const isRelay = request.url === '/relay' && request.headers.upgrade === 'kcp-mover-relay'
    if (!isRelay || !onRelay(socket, head)) socket.end('HTTP/1.1 409 Conflict\r\nconnection: close\r\n\r\n')
  })
  http.on('clientError', (_error, socket) => socket.destroy())
  return http
}

/** Sends an object, or the body of an error. */
export function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' })
  response.end(`${JSON.stringify(body)}\n`)
}

export function refuse(response: ServerResponse, status: number, error: MoverError): void {
  answer(response, status, { error: errorBody(error) })
}

const maxBodyBytes = 16_384

/** The JSON of a request. Rejects with ProtocolViolated. */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > maxBodyBytes) throw new MoverError('ProtocolViolated', 'the request is too long')
    chunks.push(chunk)
  }
  try {
    return length === 0 ? {} : parseJsonText(Buffer.concat(chunks).toString())
  } catch (cause) {
    throw new MoverError('ProtocolViolated', 'the request is no JSON', { cause })
  }
}
