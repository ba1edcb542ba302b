// Passes a request on to the process that owns its logical cluster, and passes the response back. Bytes are passed on
// as they arrive, neither parsed nor kept. A request is never sent twice.
import { constants, type ClientHttp2Stream, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from 'node:http2'
import { statusError, type StatusError } from '#apimachinery/status/index.ts'
import { errorResponse } from '#virtualapi/codec/responses.ts'
import type { Peer } from '#virtualapi/request/ownership.ts'
import { headerOf } from '#virtualapi/request/exchange.ts'
import { endToEndHeaders, hopHeaders, type HopClient } from './wire/hop-headers.ts'
import { isRead, moving, unknownOutcome } from './own.ts'
import type { PeerConnections } from './peer-connections.ts'
import type { RawRequest } from './wire/raw-request.ts'
import type { RawResponse } from './wire/raw-response.ts'
import { isGone, send } from './send.ts'

export interface Forwarding {
  readonly request: RawRequest
  readonly response: RawResponse
  readonly client: HopClient
  readonly to: Peer
  /**
   * Aborted when the server stops, which ends the response between two events; undefined for responses that do not end
   * with the server.
   */
  readonly stopping: AbortSignal | undefined
  /**
   * Called with the status that the client gets: from the other process, or from the refusal if that process did not
   * answer.
   */
  readonly answered?: ((status: number) => void) | undefined
}

type ResponseHeaders = IncomingHttpHeaders & IncomingHttpStatusHeader

/** nghttp2 takes no field above 64 KiB. */
const maxFieldLength = 60 * 1024
/**
 * Maximum of all fields together: nghttp2 sends 16 KiB per frame and ends a session at the ninth CONTINUATION frame.
 */
const maxHeadersLength = 124 * 1024
const newline = 0x0a
/** When the server stops: how long a response may take to reach the end of its current event, milliseconds. */
const lastEventMs = 500

/** Resolves when the answer was passed on, or the client has gone. Never rejects. */
export async function forward(forwarding: Forwarding, peers: PeerConnections): Promise<void> {
  if (isGone(forwarding.response)) return
  await passOn(forwarding, peers)
  const { body } = forwarding.request
  // An unread body would block the connection. It is unpiped first, because a pipe that ends later would pause the body
  // again.
  body.unpipe()
  if (!body.readableEnded) body.resume()
}

async function passOn(forwarding: Forwarding, peers: PeerConnections): Promise<void> {
  const { request, response, to } = forwarding
  const headers = headersOf(forwarding)
  // nghttp2 would end the session over such headers, and with it the requests of all other clients.
  const problem = problemOf(headers)
  if (problem !== undefined) {
    await refuse(forwarding, statusError(431, 'RequestHeaderFieldsTooLarge', problem))
    return
  }
  const stream = tryOpen(peers.session(to), headers, request)
  if (stream === undefined) {
    await refuse(forwarding, moving())
    return
  }
  const cancel = (): void => stream.close(constants.NGHTTP2_CANCEL)
  response.once('close', cancel)
  response.on('error', cancel)
  if (hasBody(request)) request.body.pipe(stream)
  let failure: unknown
  stream.on('error', (error: unknown) => (failure = error))
  const answered = await responseOf(stream)
  if (answered === undefined) await refuse(forwarding, failureOf(stream, request, failure))
  else await passBack(answered, stream, forwarding)
  response.off('close', cancel)
}

/** The headers to send, as raw pairs: name, value, name, value. */
function headersOf({ request: { method, url, rawHeaders }, client }: Forwarding): string[] {
  const authority = headerOf(rawHeaders, 'host') ?? headerOf(rawHeaders, ':authority') ?? 'kcp'
  const pseudo = [':method', method, ':path', url, ':scheme', 'https', ':authority', authority]
  return [...pseudo, ...endToEndHeaders(rawHeaders), ...hopHeaders(client)]
}

/** Why the headers cannot be passed on; undefined if they can. */
function problemOf(headers: readonly string[]): string | undefined {
  let length = 0
  for (const text of headers) {
    if (text.length > maxFieldLength) return 'a header field is too large'
    length += text.length
  }
  return length > maxHeadersLength ? 'the header fields are too large together' : undefined
}

/** Opens a stream for the request; undefined if the session takes no more requests. */
function tryOpen(
  session: ReturnType<PeerConnections['session']>,
  headers: string[],
  request: RawRequest,
): ClientHttp2Stream | undefined {
  try {
    return session.request(headers, { endStream: !hasBody(request) })
  } catch {
    return undefined
  }
}

/** The headers of the response; undefined if the stream closes before they arrive. */
function responseOf(stream: ClientHttp2Stream): Promise<ResponseHeaders | undefined> {
  return new Promise((resolve) => {
    stream.once('response', (headers: ResponseHeaders) => resolve(headers))
    stream.once('close', () => resolve(undefined))
  })
}

/** Passes the response on to the client. Resolves when all of it is passed on or either side has gone. */
async function passBack(
  { ':status': status = 502, ...headers }: ResponseHeaders,
  stream: ClientHttp2Stream,
  { response, request, stopping, answered }: Forwarding,
): Promise<void> {
  answered?.(status)
  if (isGone(response)) return
  if ('respond' in response) response.respond({ ...headers, ':status': status }, { endStream: false })
  else {
    response.writeHead(status, headers)
    if (request.method !== 'HEAD') response.flushHeaders()
  }
  const { promise, resolve } = Promise.withResolvers<undefined>()
  // If the stream broke, the client must see that the answer is not whole.
  stream.once('close', () => {
    if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) response.destroy()
    resolve(undefined)
  })
  response.once('close', () => resolve(undefined))
  const unlink = stopping === undefined ? undefined : endBetweenEvents(stream, response, stopping)
  stream.pipe(response)
  await promise
  unlink?.()
}

/**
 * Ends the response when the server stops: at once if the last event is whole, else after that event. Returns a
 * function that cancels this.
 */
function endBetweenEvents(stream: ClientHttp2Stream, response: RawResponse, stopping: AbortSignal): () => void {
  let last = newline
  const end = (): void => {
    stream.unpipe(response)
    response.end()
    stream.close(constants.NGHTTP2_CANCEL)
  }
  stream.on('data', (chunk: Buffer) => {
    last = chunk.at(-1) ?? last
    if (stopping.aborted && last === newline) end()
  })
  const stop = (): void => {
    if (last === newline) end()
    else setTimeout(end, lastEventMs).unref()
  }
  if (stopping.aborted) stop()
  else stopping.addEventListener('abort', stop, { once: true })
  return () => stopping.removeEventListener('abort', stop)
}

function failureOf(stream: ClientHttp2Stream, { method }: RawRequest, cause: unknown): StatusError {
  const wasSent = !stream.pending && stream.rstCode !== constants.NGHTTP2_REFUSED_STREAM
  return wasSent && !isRead(method) ? unknownOutcome(cause) : moving(cause)
}

async function refuse({ request, response, answered }: Forwarding, error: StatusError): Promise<void> {
  answered?.(error.code)
  const { signal } = new AbortController()
  await send(errorResponse(error), { response, headOnly: request.method === 'HEAD', signal })
}

function hasBody({ method, rawHeaders, isOpen }: RawRequest): boolean {
  if (isOpen !== undefined) return isOpen
  if (headerOf(rawHeaders, 'transfer-encoding') !== undefined) return true
  const length = headerOf(rawHeaders, 'content-length')
  return length === undefined ? false : Number(length) > 0 || !isRead(method)
}
