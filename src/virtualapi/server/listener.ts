// The TLS listener: HTTP/1.1 and HTTP/2 on one port. It turns sockets into IncomingRequests and Answers into bytes, and is
// the only writer to sockets. Fastify owns connections and their end; the stages own everything about a request.
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import type { Duplex } from 'node:stream'
import type { AddressInfo, Server, Socket } from 'node:net'
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls'
import fastify from 'fastify'
import { badRequest, isStatusError, requestEntityTooLarge, statusError } from '../../apimachinery/status/index.ts'
import { childSignal } from '../../async/index.ts'
import { largeAnswer, statusAnswer } from '../codec/answers.ts'
import { maxBodyBytes } from '../codec/read-object.ts'
import type { IncomingRequest, SentAnswer, StreamAnswer } from './exchange.ts'
import { handle, takeMs } from './handle.ts'
import { Newcomers } from './newcomers.ts'
import type { ServerParts } from './parts.ts'
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
  /** Serves new connections with another certificate. */
  setCertificate(pair: { certificate: string; key: string }): void
}

type RawRequest = IncomingMessage | Http2ServerRequest
type Asked = { readonly raw: unknown; readonly originalUrl: string }
/** What the responses of both protocols have in common, as far as it is used here. */
interface RawResponse extends NodeJS.EventEmitter {
  readonly destroyed: boolean
  readonly writableFinished?: boolean
  writeHead(status: number, headers: Readonly<Record<string, string>>): unknown
  flushHeaders?(): void
  write(chunk: Uint8Array): boolean
  end(chunk?: Uint8Array): unknown
  destroy(): unknown
}

/** How long requests under way may take to end when the server stops, milliseconds. */
const drainMs = 3000

export async function listen(parts: ServerParts, options: ListenOptions): Promise<Listener> {
  const { host, port, certificate, key, signal, firstRequestMs = 60_000 } = options
  const newcomers = new Newcomers({ maxMs: firstRequestMs })
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
      minVersion: 'TLSv1.2',
    },
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  const answer = ({ raw, originalUrl }: Asked, reply: { hijack(): unknown; readonly raw: unknown }): void => {
    reply.hijack()
    void serve(raw as RawRequest, reply.raw as RawResponse, originalUrl, { parts, signal, newcomers })
  }
  app.all('/', answer)
  // Methods and media types that Fastify refuses by itself: the stages have an answer for them too.
  app.setNotFoundHandler(answer)
  app.setErrorHandler((_error, request, reply) => answer(request, reply))
  // Over HTTP/1.1; with HTTP/2 on the same port Fastify leaves Node's 5 s, which a client's pool meets as resets.
  Object.assign(app.server, { keepAliveTimeout: 120_000 })
  app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    newcomers.asked(request.socket)
    void upgrade({ incoming: incomingOf(request, request.url ?? '/', signal), socket, head }, parts)
  })
  // Clients that break off a handshake or a session are no event.
  app.server.on('sessionError', () => undefined)
  app.server.on('tlsClientError', () => undefined)
  const connections = new Set<Socket>()
  app.server.on('connection', (connection: Socket) => {
    connections.add(connection)
    newcomers.add(connection)
    connection.once('close', () => connections.delete(connection))
  })
  await app.listen({ host, port })
  return {
    port: (app.server.address() as AddressInfo).port,
    setCertificate: ({ certificate: cert, key: newKey }) => app.server.setSecureContext({ cert, key: newKey }),
    [Symbol.asyncDispose]: () => {
      newcomers[Symbol.dispose]()
      return close(app.server, connections, () => app.close())
    },
  }
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

interface Served {
  readonly parts: ServerParts
  /** The server's own life. */
  readonly signal: AbortSignal
  readonly newcomers: Newcomers
}

async function serve(
  request: RawRequest,
  response: RawResponse,
  url: string,
  { parts, signal, newcomers }: Served,
): Promise<void> {
  const life = new AbortController()
  // Not asked of the response: over HTTP/2 it calls itself finished when the client has gone.
  let sent = false
  response.on('close', () => {
    if (!sent) life.abort(new Error('the client went away'))
  })
  response.on('error', () => life.abort(new Error('the connection failed')))
  try {
    newcomers.asked(request.socket)
    const { answer, finish } = await handle({ ...incomingOf(request, url, life.signal), stopping: signal }, parts)
    try {
      await send(response, answer, request.method === 'HEAD', life.signal)
      sent = true
    } finally {
      finish()
    }
    // What the client still sends of a body nobody wanted would block the connection.
    if (!request.complete) request.resume()
  } catch (error) {
    if (!life.signal.aborted) parts.log.error('an answer could not be sent', { url, error })
    response.destroy()
  }
}

async function send(response: RawResponse, answer: SentAnswer, headOnly: boolean, signal: AbortSignal): Promise<void> {
  if (signal.aborted && response.destroyed) return
  if (answer.kind === 'bytes') {
    response.writeHead(answer.status, { ...answer.headers, 'content-length': String(answer.body.length) })
    response.end(headOnly ? undefined : answer.body)
    // The place of the request is taken until the client has the answer: who asks for much and reads nothing asks no more.
    if (!headOnly && answer.body.length > largeAnswer) await taken(response, answer.body.length, signal)
    return
  }
  response.writeHead(answer.status, answer.headers)
  if (headOnly) {
    response.end()
    return
  }
  if (answer.maxMs === undefined) await stream(response, answer, signal)
  else await within(answer.maxMs, signal, (limited) => stream(response, answer, limited))
}

async function stream(response: RawResponse, { chunks, maxStallMs }: StreamAnswer, signal: AbortSignal): Promise<void> {
  // The client waits for the headers of a watch before anything happens in it.
  response.flushHeaders?.()
  for await (const chunk of chunks) {
    if (chunk.length === 0) continue
    if (!response.write(chunk)) await writable(response, maxStallMs, signal)
  }
  response.end()
}

async function writable(response: RawResponse, maxStallMs: number | undefined, signal: AbortSignal): Promise<void> {
  if (response.destroyed) throw new Error('the client went away')
  if (maxStallMs === undefined) await once(response, 'drain', { signal })
  else await within(maxStallMs, signal, (limited) => once(response, 'drain', { signal: limited }))
}

/** Resolves when all of an answer was handed to the connection. Rejects where the client is too slow for its size. */
async function taken(response: RawResponse, bytes: number, signal: AbortSignal): Promise<void> {
  if (response.destroyed || response.writableFinished) return
  await within(takeMs(bytes), signal, (limited) => once(response, 'finish', { signal: limited }))
}

async function within(
  ms: number,
  signal: AbortSignal,
  wait: (limited: AbortSignal) => Promise<unknown>,
): Promise<void> {
  using limited = childSignal(signal)
  const timer = setTimeout(() => limited.abort(new Error(`the client took nothing for ${ms / 1000} s`)), ms)
  try {
    await wait(limited.signal)
  } finally {
    clearTimeout(timer)
  }
}

// Asking TLS for the certificate decodes it; a connection's never changes.
const certificates = new WeakMap<object, { certificate: DetailedPeerCertificate | undefined }>()

function peerCertificateOf(request: RawRequest): DetailedPeerCertificate | undefined {
  const socket = ('stream' in request ? request.stream.session?.socket : request.socket) as TLSSocket | undefined
  const anchor = 'stream' in request ? request.stream.session : socket
  if (socket === undefined || anchor === undefined || typeof socket.getPeerCertificate !== 'function') return undefined
  const known = certificates.get(anchor)
  if (known !== undefined) return known.certificate
  const peer = socket.getPeerCertificate(true)
  const certificate = Object.keys(peer).length === 0 ? undefined : peer
  certificates.set(anchor, { certificate })
  return certificate
}

function incomingOf(request: RawRequest, url: string, signal: AbortSignal): IncomingRequest {
  let body: Promise<Uint8Array> | undefined
  return {
    method: request.method ?? 'GET',
    url,
    rawHeaders: request.rawHeaders,
    peerCertificate: peerCertificateOf(request),
    peerAddress: () => request.socket.remoteAddress,
    body: () => (body ??= readBody(request)),
    signal,
  }
}

async function readBody(request: RawRequest): Promise<Uint8Array> {
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > maxBodyBytes) throw tooLarge()
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > maxBodyBytes) throw tooLarge()
      chunks.push(chunk)
    }
  } catch (cause) {
    throw isStatusError(cause) ? cause : brokenOff(cause)
  }
  return chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks)
}

function brokenOff(cause?: unknown): Error {
  return badRequest('the client broke off before the end of the body', cause)
}

function tooLarge(): Error {
  return requestEntityTooLarge(`Request entity too large: limit is ${maxBodyBytes}`)
}

function noSchemas(): never {
  throw new Error('no route here has a schema')
}
