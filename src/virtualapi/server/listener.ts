// The TLS listener: HTTP/1.1 and HTTP/2 on one port. It turns sockets into IncomingRequests and Answers into bytes, and is
// the only writer to sockets. Fastify owns connections and their end; the stages own everything about a request.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Duplex } from 'node:stream'
import type { AddressInfo, Server, Socket } from 'node:net'
import fastify from 'fastify'
import { statusError } from '../../apimachinery/status/index.ts'
import { statusAnswer } from '../codec/answers.ts'
import type { Push } from './exchange.ts'
import { Newcomers } from './newcomers.ts'
import type { ServerParts } from './parts.ts'
import { incomingOf, rawRequest, rawStream, serve, type Serving } from './serve.ts'
import { upgrade } from './upgrade.ts'

export interface ListenOptions {
  readonly host: string
  readonly port: number
  /** PEM. */
  readonly certificate: string
  readonly key: string
  readonly signal: AbortSignal
  /** What a connection may take from its opening to its first request. Default 60,000. */
  readonly firstRequestMs?: number
}

export interface Listener extends AsyncDisposable {
  readonly port: number
  /** Serves new connections with another certificate; open ones go on. */
  setCertificate(pair: { certificate: string; key: string }): void
}

type Asked = { readonly raw: unknown; readonly originalUrl: string }

/** How long requests under way may take to end when the server stops, milliseconds. */
const drainMs = 3000
const minVersion = 'TLSv1.2'

export async function listen(parts: ServerParts, options: ListenOptions): Promise<Listener> {
  const { host, port, certificate, key, signal, firstRequestMs = 60_000 } = options
  const newcomers = new Newcomers({ maxMs: firstRequestMs })
  const pushes = new Set<Push>()
  const serving: Serving = { parts, signal, newcomers, pushes }
  const app = fastify({
    logger: false,
    // No schemas, so no compilers for them: 300 modules that would be loaded at every start.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    // One route for everything: the raw path is ours to parse, no router may have touched it.
    rewriteUrl: () => '/',
    exposeHeadRoutes: false,
    clientErrorHandler: refuseBytes,
    http2: true,
    https: {
      allowHTTP1: true,
      cert: certificate,
      key,
      // Asked for, not verified: which CA may vouch for whom is authentication's business, not one TLS pool's.
      requestCert: true,
      rejectUnauthorized: false,
      // Node's defaults fail behind an aggregator that sends everything over few connections.
      maxSessionMemory: 256,
      maxHeaderListPairs: 1024,
      settings: { maxConcurrentStreams: 1000, maxHeaderListSize: 256 * 1024, initialWindowSize: 1024 * 1024 },
      minVersion,
    },
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  const answer = ({ raw, originalUrl }: Asked, reply: { hijack(): unknown; readonly raw: unknown }): void => {
    reply.hijack()
    void serve(rawRequest(raw as IncomingMessage, originalUrl), reply.raw as ServerResponse, serving)
  }
  app.all('/', answer)
  // Methods and media types that Fastify refuses by itself: the stages have an answer for them too.
  app.setNotFoundHandler(answer)
  app.setErrorHandler((_error, request, reply) => answer(request, reply))
  // Over HTTP/1.1; with HTTP/2 on the same port Fastify leaves Node's 5 s, which a client's pool meets as resets.
  Object.assign(app.server, { keepAliveTimeout: 120_000 })
  app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    newcomers.asked(request.socket)
    void upgrade({ incoming: incomingOf(rawRequest(request), signal), socket, head }, parts)
  })
  // Streams of HTTP/2 as they are: what Node lays over them, to look like HTTP/1.1, costs a watch more than all of ours.
  app.server.removeAllListeners('stream')
  app.server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _: number, raw: string[]) => {
    if (isToBeServed(stream, headers)) answerStream(stream, raw, serving)
  })
  const endPushes = (): void => {
    for (const push of pushes) push.end()
  }
  signal.addEventListener('abort', endPushes, { once: true })
  // Clients that break off a handshake or a session are no event.
  app.server.on('sessionError', () => undefined)
  app.server.on('tlsClientError', () => undefined)
  const connections = new Set<Socket>()
  app.server.on('connection', (connection: Socket) => {
    connections.add(connection)
    // Node does so for HTTP/2 alone where both are on a port: an answer would wait 40 ms for what it follows to be confirmed.
    connection.setNoDelay(true)
    newcomers.add(connection)
    connection.once('close', () => connections.delete(connection))
  })
  await app.listen({ host, port })
  return {
    port: (app.server.address() as AddressInfo).port,
    setCertificate: (pair) => app.server.setSecureContext({ cert: pair.certificate, key: pair.key, minVersion }),
    [Symbol.asyncDispose]: () => {
      newcomers[Symbol.dispose]()
      signal.removeEventListener('abort', endPushes)
      return close(app.server, connections, () => app.close())
    },
  }
}

function answerStream(stream: ServerHttp2Stream, rawHeaders: readonly string[], serving: Serving): void {
  const request = rawStream(stream, rawHeaders)
  if (request === undefined) stream.destroy()
  else void serve(request, stream, serving)
}

/** Tells a client that waits for it to send its body. False where it asked for what no server here does; it is told so. */
function isToBeServed(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): boolean {
  stream.on('error', () => undefined)
  if (stream.destroyed) return false
  const { expect } = headers
  const refusal = headers[':method'] === 'CONNECT' ? 405 : expect === undefined || expect === '100-continue' ? 0 : 417
  if (refusal > 0) stream.respond({ ':status': refusal }, { endStream: true })
  else if (expect !== undefined) stream.additionalHeaders({ ':status': 100 })
  return refusal === 0
}

/** What is no HTTP, or too long a head for it, never becomes a request: answered here, as a Status like everything. */
function refuseBytes({ code }: Error & { code?: string }, socket: Duplex): void {
  if (!socket.writable || code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const [status, reason] =
    code === 'HPE_HEADER_OVERFLOW' ? ([431, 'RequestHeaderFieldsTooLarge'] as const) : ([400, 'BadRequest'] as const)
  const { body } = statusAnswer(statusError(status, reason, 'the request could not be read as HTTP').status)
  const head = [`HTTP/1.1 ${status} ${reason}`, 'connection: close', 'content-type: application/json']
  socket.write(`${[...head, `content-length: ${body.length}`].join('\r\n')}\r\n\r\n`)
  socket.end(body, () => socket.destroy())
}

async function close(server: Server, connections: Iterable<Socket>, end: () => PromiseLike<unknown>): Promise<void> {
  const closed = end()
  ;(server as { closeIdleConnections?: () => void }).closeIdleConnections?.()
  // Upgraded ones, and those that never sent a request, are nobody's to end but ours.
  const timer = setTimeout(() => {
    for (const connection of connections) connection.destroy()
  }, drainMs)
  try {
    await closed
  } finally {
    clearTimeout(timer)
  }
}

function noSchemas(): never {
  throw new Error('no route here has a schema')
}
