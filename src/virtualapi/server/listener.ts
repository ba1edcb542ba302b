// The TLS listener: HTTP/1.1 and HTTP/2 on one port. Converts requests on sockets to IncomingRequests and writes the
// answers. Fastify manages connections and their end; the stages do everything about a request.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Duplex } from 'node:stream'
import type { AddressInfo, Server, Socket } from 'node:net'
import fastify from 'fastify'
import { statusError } from '#apimachinery/status/index.ts'
import { PendingConnections } from '#network/listening/index.ts'
import { statusResponse } from '#virtualapi/codec/responses.ts'
import type { Push } from '#virtualapi/request/exchange.ts'
import { ConnectionTurns, maxStreams } from './limits/connection-turns.ts'
import { MisplacedConnections } from './limits/misplaced-connections.ts'
import { agentPath, type AgentDoor } from './agent-door.ts'
import { consolePath, type ConsoleDoor } from './console-door.ts'
import type { ServerDependencies } from './dependencies.ts'
import { withProtocolToken } from './wire/protocol-token.ts'
import { incomingOf, rawRequest, rawStream, serve, type Serving } from './serve.ts'
import { upgrade, upgradeThroughConsole } from './upgrade.ts'

export interface ListenOptions {
  readonly host: string
  readonly port: number
  /** The server's certificate, PEM. */
  readonly certificate: string
  readonly key: string
  readonly signal: AbortSignal
  /**
   * The authorities of our other processes' certificates, PEM: the listener then serves only these processes. Absent:
   * it serves all clients.
   */
  readonly peerCa?: string
  /** Answers requests below /console. Absent: no console is served. */
  readonly console?: ConsoleDoor
  /** Answers requests of agents of members. Absent: none are served. */
  readonly agents?: AgentDoor
  /**
   * How long a connection whose client is not known yet may stay open after its last request, milliseconds. Default
   * 60,000.
   */
  readonly firstRequestMs?: number
  /** Other workers listen on the same port, and the kernel divides new connections among them. Default false. */
  readonly isShared?: boolean
}

export interface Listener extends AsyncDisposable {
  readonly port: number
  /** Serves new connections with another certificate; open ones go on. */
  setCertificate(pair: { certificate: string; key: string; peerCa?: string }): void
}

type Asked = { readonly raw: unknown; readonly originalUrl: string }

/**
 * How long connections stay open when the server stops, and how long while requests are still being answered,
 * milliseconds.
 */
const [drainMs, maxDrainMs] = [3000, 10_000]
/**
 * Bounds on connections whose clients are not known yet: each costs a TLS handshake of about a millisecond and some 100
 * KiB of memory.
 */
const pendingBounds = { maxPerNetwork: 500, max: 1500, maxTrusted: 1500 }
const minVersion = 'TLSv1.2'
/** Other processes send the requests of all their clients over one connection. */
export const maxPeerStreams = 2 ** 20
/** Node's defaults are too small for connections with the requests of many clients: MiB of memory, pairs of headers. */
export const peerSession = { maxSessionMemory: 1024, maxHeaderListPairs: 4096 }
/**
 * Maximum of all header fields of a request together, bytes. For HTTP/1.1, a flag of the process sets the same limit
 * (bin/kcp).
 */
const maxHeaderBytes = 256 * 1024
/**
 * The limit on headers that HTTP/2 clients are told, bytes, as in Go: above it, Node resets the stream without a
 * response.
 */
const maxReadHeaderBytes = 1024 * 1024
/** Settings of HTTP/2 on all listeners. */
export const streamSettings = {
  maxHeaderListSize: maxReadHeaderBytes,
  // nghttp2 ends a session over a request with more than nine frames of headers; clients in Go fill the frames.
  maxFrameSize: maxHeaderBytes,
  initialWindowSize: 1024 * 1024,
}

export async function listen(dependencies: ServerDependencies, options: ListenOptions): Promise<Listener> {
  const { host, port, certificate, key, signal, peerCa, firstRequestMs = 60_000 } = options
  const pending = new PendingConnections({ ...pendingBounds, maxMs: firstRequestMs })
  const pushes = new Set<Push>()
  const shared = {
    dependencies,
    signal,
    pending,
    pushes,
    turns: new ConnectionTurns(),
    console: options.console,
    agents: options.agents,
  }
  const serving: Serving = {
    ...shared,
    requests: { inFlight: 0 },
    isForPeers: peerCa !== undefined,
    ...(options.isShared === true && { misplaced: new MisplacedConnections() }),
  }
  const app = fastify({
    logger: false,
    // The routes have no schemas. Without the compilers of schemas, 300 fewer modules are loaded at start.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    // One route for everything: we parse the raw path ourselves.
    rewriteUrl: () => '/',
    exposeHeadRoutes: false,
    clientErrorHandler: refuseBytes,
    http2: true,
    https: {
      allowHTTP1: true,
      cert: certificate,
      key,
      // Client certificates are requested but not verified here: authentication decides which CA counts for a request.
      // The certificates of our other processes are verified here, because we believe what these processes say about
      // their clients.
      requestCert: true,
      rejectUnauthorized: peerCa !== undefined,
      ...(peerCa !== undefined && { ca: peerCa }),
      // Node's defaults are too small for an aggregator, which sends all requests over few connections.
      ...(peerCa === undefined ? { maxSessionMemory: 256, maxHeaderListPairs: 1024 } : peerSession),
      settings: {
        ...streamSettings,
        maxConcurrentStreams: peerCa === undefined ? maxStreams.unknown : maxPeerStreams,
      },
      minVersion,
    },
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  const response = ({ raw, originalUrl }: Asked, reply: { hijack(): unknown; readonly raw: unknown }): void => {
    reply.hijack()
    void serve(rawRequest(raw as IncomingMessage, originalUrl), reply.raw as ServerResponse, serving)
  }
  app.all('/', response)
  // The stages also answer methods and media types that Fastify would refuse itself.
  app.setNotFoundHandler(response)
  app.setErrorHandler((_error, request, reply) => response(request, reply))
  // The idle timeout of HTTP/1.1 connections. With HTTP/2 on the same port, Fastify leaves Node's default of 5 s, and
  // pooled connections of clients are then reset.
  Object.assign(app.server, { keepAliveTimeout: 120_000, shouldUpgradeCallback: isUpgrade })
  app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const { rawHeaders, ...raw } = rawRequest(request)
    const incoming = incomingOf({ ...raw, rawHeaders: withProtocolToken(rawHeaders) }, signal, serving)
    const { console: door, agents } = serving
    const upgrading = { incoming, request, socket, head }
    if (agents !== undefined && raw.url.startsWith(agentPath)) void agents.upgrade(upgrading)
    else if (door === undefined || !raw.url.startsWith(consolePath)) void upgrade(upgrading, dependencies)
    else void upgradeThroughConsole(upgrading, door, dependencies)
  })
  // Use raw HTTP/2 streams: Node's compatibility layer takes more memory per watch than all of our own objects.
  app.server.removeAllListeners('stream')
  app.server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _: number, raw: string[]) => {
    if (acceptsStream(stream, headers)) answerStream(stream, raw, serving)
  })
  const endPushes = (): void => {
    for (const push of pushes) push.end()
  }
  signal.addEventListener('abort', endPushes, { once: true })
  // A client that aborts a handshake or a session is not an error.
  app.server.on('sessionError', () => undefined)
  app.server.on('tlsClientError', () => undefined)
  const connections = new Set<Socket>()
  app.server.on('connection', (connection: Socket) => {
    connections.add(connection)
    // With both protocols on one port, Node sets TCP_NODELAY for HTTP/2 only. With Nagle's algorithm, a response may
    // wait 40 ms for an ACK.
    connection.setNoDelay(true)
    pending.add(connection)
    connection.once('close', () => connections.delete(connection))
  })
  await app.listen({ host, port, ...(options.isShared === true && { reusePort: true }) })
  return {
    port: (app.server.address() as AddressInfo).port,
    setCertificate: ({ certificate: cert, key: newKey, peerCa: ca }) =>
      app.server.setSecureContext({ cert, key: newKey, minVersion, ...(ca !== undefined && { ca }) }),
    [Symbol.asyncDispose]: () => {
      pending[Symbol.dispose]()
      signal.removeEventListener('abort', endPushes)
      return closeServer(app.server, { connections, serving }, () => app.close())
    },
  }
}

/**
 * False for an upgrade to h2c (HTTP/2 without TLS), which Java clients ask for through `kubectl proxy`: such a request
 * is answered as if it did not ask for an upgrade.
 */
function isUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() !== 'h2c'
}

export function answerStream(stream: ServerHttp2Stream, rawHeaders: readonly string[], serving: Serving): void {
  const request = rawStream(stream, rawHeaders)
  if (request === undefined) stream.destroy()
  else if (rawHeaders.reduce((sum, text) => sum + text.length, 0) > maxHeaderBytes) refuseHeaders(stream)
  else void serve(request, stream, serving)
}

function refuseHeaders(stream: ServerHttp2Stream): void {
  const { body } = unread(431, 'RequestHeaderFieldsTooLarge')
  stream.respond({ ':status': 431, 'content-type': 'application/json', 'content-length': body.length })
  stream.end(body)
  // An unread body would block the connection.
  stream.resume()
}

function unread(status: number, reason: string): { readonly body: Uint8Array } {
  return statusResponse(statusError(status, reason, 'the request could not be read as HTTP').status)
}

/** Sends 100 Continue if expected. Returns false after it refused CONNECT or another expectation. */
export function acceptsStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): boolean {
  stream.on('error', () => undefined)
  if (stream.destroyed) return false
  const { expect } = headers
  const refusal = headers[':method'] === 'CONNECT' ? 405 : expect === undefined || expect === '100-continue' ? 0 : 417
  if (refusal > 0) stream.respond({ ':status': refusal }, { endStream: true })
  else if (expect !== undefined) stream.additionalHeaders({ ':status': 100 })
  return refusal === 0
}

/** Answers bytes that are not HTTP, or headers that are too large, with a Status. No request is made of them. */
function refuseBytes({ code }: Error & { code?: string }, socket: Duplex): void {
  if (!socket.writable || code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const [status, reason] =
    code === 'HPE_HEADER_OVERFLOW' ? ([431, 'RequestHeaderFieldsTooLarge'] as const) : ([400, 'BadRequest'] as const)
  const { body } = unread(status, reason)
  const head = [`HTTP/1.1 ${status} ${reason}`, 'connection: close', 'content-type: application/json']
  socket.write(`${[...head, `content-length: ${body.length}`].join('\r\n')}\r\n\r\n`)
  socket.end(body, () => socket.destroy())
}

/** Stops the server: closes idle connections at once, others when their requests are answered or time is up. */
export async function closeServer(
  server: Server,
  { connections, serving }: { connections: Iterable<Socket>; serving: Serving },
  end: () => PromiseLike<unknown>,
): Promise<void> {
  const began = performance.now()
  const closed = end()
  ;(server as { closeIdleConnections?: () => void }).closeIdleConnections?.()
  // Fastify does not close upgraded connections, nor connections that never sent a request.
  const timer = setInterval(() => {
    const elapsed = performance.now() - began
    if (elapsed < (serving.requests.inFlight > 0 ? maxDrainMs : drainMs)) return
    for (const connection of connections) connection.destroy()
  }, 100)
  try {
    await closed
  } finally {
    clearInterval(timer)
  }
}

function noSchemas(): never {
  throw new Error('no route here has a schema')
}
