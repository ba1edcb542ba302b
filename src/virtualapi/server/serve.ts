// Serves one request on a socket: makes the IncomingRequest, and aborts when the client disconnects.
import type { IncomingMessage } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls'
import { badRequest, isStatusError, requestEntityTooLarge } from '../../apimachinery/status/index.ts'
import { maxBodyBytes } from '../codec/read-object.ts'
import { headerOf, type IncomingRequest, type Push, type PushAnswer } from '../exchange/exchange.ts'
import { handle, type Handled } from './handle.ts'
import type { FirstRequestTimeout } from './first-request-timeout.ts'
import type { ServerParts } from './parts.ts'
import type { RawResponse } from './raw-response.ts'
import { isGone, send, sendPush } from './send.ts'

/** The socket; for HTTP/2 the session's proxy of it. */
type PeerSocket = Socket & Partial<Pick<TLSSocket, 'getPeerCertificate'>>

/** A request of either protocol. */
export interface RawRequest {
  readonly method: string
  /** Path and query as sent. */
  readonly url: string
  /** Raw headers: name, value, name, value; for HTTP/2 with the pseudo headers. */
  readonly rawHeaders: readonly string[]
  /** HTTP/2: the stream does not end with the headers. */
  readonly isOpen?: boolean
  readonly body: Readable
  readonly socket: PeerSocket
  /** Identifies the connection: the same object for all its requests. */
  readonly connection: object
}

/** What all requests of a listener share. */
export interface Serving {
  readonly parts: ServerParts
  /** Aborted when the server stops. */
  readonly signal: AbortSignal
  readonly firstRequestTimeout: FirstRequestTimeout
  /** Open pushes; the listener ends them when the server stops. */
  readonly pushes: Set<Push>
}

/** A request of HTTP/1.1; `url` overrides a rewritten one. */
export function rawRequest(request: IncomingMessage, url = request.url ?? '/'): RawRequest {
  const { method = 'GET', rawHeaders, socket } = request
  return { method, url, rawHeaders, body: request, socket, connection: socket }
}

/** A request of HTTP/2; undefined if its connection is closed already. */
export function rawStream(stream: ServerHttp2Stream, rawHeaders: readonly string[]): RawRequest | undefined {
  const { session } = stream
  if (session === undefined) return undefined
  const method = headerOf(rawHeaders, ':method') ?? 'GET'
  const url = headerOf(rawHeaders, ':path') ?? '/'
  const isOpen = !stream.endAfterHeaders
  return { method, url, rawHeaders, isOpen, body: stream, socket: session.socket, connection: session }
}

/** Answers a request. Never rejects. */
export async function serve(request: RawRequest, response: RawResponse, serving: Serving): Promise<void> {
  const { parts, signal, firstRequestTimeout } = serving
  const life = new AbortController()
  // The response does not tell: an HTTP/2 stream is "finished" also when the client has disconnected.
  let sent = false
  const closed = (): void => {
    if (!sent) life.abort(new Error('the client went away'))
  }
  response.on('close', closed)
  const failed = (): void => life.abort(new Error('the connection failed'))
  response.on('error', failed)
  try {
    firstRequestTimeout.asked(request.socket)
    const handled = await handle({ ...incomingOf(request, life.signal), stopping: signal }, parts)
    const { answer, finish } = handled
    if (answer.kind === 'push') {
      pushTo(response, { answer, finish }, request, serving)
      // A watch is long-lived, so it must not retain the request.
      response.on('error', ignoreError)
      response.off('error', failed)
      response.off('close', closed)
      return
    }
    try {
      await send(answer, { response, headOnly: request.method === 'HEAD', signal: life.signal })
      sent = true
    } finally {
      finish()
    }
    // An unread body would block the connection.
    if (!request.body.readableEnded) request.body.resume()
  } catch (error) {
    if (!life.signal.aborted) parts.log.error('an answer could not be sent', { url: request.url, error })
    response.destroy()
  }
}

function pushTo(
  response: RawResponse,
  { answer, finish }: { answer: PushAnswer; finish: Handled['finish'] },
  { url, method }: RawRequest,
  { parts: { log }, signal, pushes }: Serving,
): void {
  if (isGone(response) || method === 'HEAD') {
    answer.drop()
    finish()
    response.end()
    return
  }
  const push = sendPush(answer, response, (failure) => {
    if (failure !== undefined) log.warn('a stream ended early', { url, error: failure })
    pushes.delete(push)
    finish()
  })
  pushes.add(push)
  if (signal.aborted) push.end()
}

function ignoreError(): void {
  // 'close' follows and is handled.
}

// Cached by connection, because getPeerCertificate decodes the certificate each time.
const certificates = new WeakMap<object, { certificate: DetailedPeerCertificate | undefined }>()

function peerCertificateOf({ socket, connection }: RawRequest): DetailedPeerCertificate | undefined {
  const known = certificates.get(connection)
  if (known !== undefined) return known.certificate
  const peer = socket.getPeerCertificate?.(true)
  if (peer === undefined) return undefined
  const certificate = Object.keys(peer).length === 0 ? undefined : peer
  certificates.set(connection, { certificate })
  return certificate
}

/** The IncomingRequest for the stages. */
export function incomingOf(request: RawRequest, signal: AbortSignal): IncomingRequest {
  const { method, url, rawHeaders, isOpen = false, socket } = request
  let body: Promise<Uint8Array> | undefined
  return {
    method,
    url,
    rawHeaders,
    peerCertificate: peerCertificateOf(request),
    peerAddress: () => socket.remoteAddress,
    hasOpenBody: isOpen,
    body: () => (body ??= readBody(request)),
    signal,
  }
}

async function readBody({ rawHeaders, body }: RawRequest): Promise<Uint8Array> {
  const announced = Number(headerOf(rawHeaders, 'content-length') ?? 0)
  if (announced > maxBodyBytes) throw tooLarge()
  const chunks: Buffer[] = []
  let length = 0
  try {
    // In HTTP/2, body and answer share a stream: it must stay open for the answer 413.
    const source = 'respond' in body ? body.iterator({ destroyOnReturn: false }) : body
    for await (const chunk of source as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > maxBodyBytes) throw tooLarge()
      chunks.push(chunk)
    }
  } catch (cause) {
    throw isStatusError(cause) ? cause : brokenOff(cause)
  }
  if (length < announced) throw brokenOff()
  return chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks)
}

function brokenOff(cause?: unknown): Error {
  return badRequest('the client broke off before the end of the body', cause)
}

function tooLarge(): Error {
  return requestEntityTooLarge(`Request entity too large: limit is ${maxBodyBytes}`)
}
