// One HTTP exchange over a byte stream, for proxies. Hop-by-hop headers are passed on in neither direction, and the
// credentials of the client are not passed on.
import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { endAfterInterim, endWhenGivenUp } from '#async/index.ts'
import type { TransportResponse } from '#client/index.ts'
import { withoutConsoleCookie } from '#virtualapi/request/console-cookie.ts'

export interface ProxiedRequest {
  readonly method: string
  /** Path and query at the pod. */
  readonly path: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: Uint8Array
  readonly signal: AbortSignal
}

export interface Upgraded {
  readonly headers: readonly string[]
  readonly socket: Duplex
  readonly head: Uint8Array
}

/** Headers that are not passed on, above all hop-by-hop headers (RFC 9110, 7.6.1) and the credentials of the client. */
const dropped = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
  'expect',
  'accept-encoding',
  'http2-settings',
  'authorization',
])
const droppedPrefixes = ['impersonate-', 'x-remote-', ':', 'x-forwarded-']
/** The prefix of the subprotocol in which browsers send their bearer token. */
const tokenProtocol = 'base64url.bearer.authorization.k8s.io.'

/**
 * The headers of a pod's or a server's response that clients may see. The response has the origin of this server, which
 * all tenants share, so no tenant may decide what browsers keep or do for an origin (HSTS, cookies, cleared data,
 * alternative services, permissions, reports, service workers, opened access of other origins).
 */
const shownResponseHeaders: ReadonlySet<string> = new Set([
  'accept-ranges',
  'allow',
  'age',
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-range',
  'content-type',
  'date',
  'deprecation',
  'etag',
  'expires',
  'last-modified',
  'pragma',
  'retry-after',
  'sunset',
  'traceparent',
  'vary',
  'warning',
  'audit-id',
  'digest',
])
/**
 * Headers with the prefix `x-` that clients may not see, because they are orders to a reverse proxy in front of this
 * server. Programs define other headers with this prefix for themselves.
 */
const proxyOrders = /^x-(?:accel-|sendfile$|lighttpd-send-file$|reproxy-)/
/** The headers of a switch of protocols that clients may see; other headers could apply to the origin, too. */
const upgradeHeaders = /^(?:connection|upgrade|date|x-stream-protocol-version|sec-websocket-.*)$/i

/**
 * The headers that clients may see, with headers that keep a page from acting with the rights of the user who opens it.
 */
export function shownHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const shown = Object.entries(headers).filter(
    ([name]) => shownResponseHeaders.has(name) || (name.startsWith('x-') && !proxyOrders.test(name)),
  )
  return {
    ...Object.fromEntries(shown),
    'content-security-policy': 'sandbox',
    'x-content-type-options': 'nosniff',
  }
}

/** The raw headers of a switch of protocols that clients may see. */
export function shownUpgradeHeaders(rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_, i) => upgradeHeaders.test(rawHeaders[i - (i % 2)] ?? ''))
}

/** The headers of a client's request that a pod may see. */
export function proxiedHeaders(
  rawHeaders: readonly string[],
  { upgrade }: { upgrade: boolean },
): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {}
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [given, value] = [(rawHeaders[i] ?? '').toLowerCase(), rawHeaders[i + 1] ?? '']
    // HTTP/2 has this name for the header `host`.
    const name = given === ':authority' ? 'host' : given
    if (upgrade && name === 'upgrade') headers[name] = value
    if (dropped.has(name) || droppedPrefixes.some((prefix) => name.startsWith(prefix))) continue
    const kept = withoutSecrets(name, value)
    if (kept === '') continue
    const before = headers[name]
    headers[name] = before === undefined ? kept : [before, kept].flat()
  }
  if (upgrade) headers['connection'] = 'Upgrade'
  return headers
}

/** The value without what authenticates the client at this server. */
function withoutSecrets(name: string, value: string): string {
  if (name === 'cookie') return withoutConsoleCookie(value)
  return name === 'sec-websocket-protocol' ? withoutTokens(value) : value
}

function withoutTokens(value: string): string {
  return value
    .split(',')
    .map((protocol) => protocol.trim())
    .filter((protocol) => !protocol.startsWith(tokenProtocol))
    .join(', ')
}

/**
 * Sends the request over the stream, which belongs to the exchange from then on. As in kube-apiserver, the certificate
 * of a pod that speaks TLS is not verified: only the member knows the pod. Rejects with the error of the connection.
 */
export async function proxyOver(
  stream: Duplex,
  { scheme, ...request }: ProxiedRequest & { readonly scheme: 'http' | 'https' },
): Promise<{ answered: TransportResponse } | { upgraded: Upgraded }> {
  const { method, path, headers, body, signal } = request
  const socket = scheme === 'https' ? connectTls({ socket: stream, rejectUnauthorized: false }) : stream
  // An error after the exchange concerns no request, but without a listener it would end the process.
  for (const one of [socket, stream]) one.on('error', () => undefined)
  const end = (): void => {
    socket.destroy()
    stream.destroy()
  }
  signal.addEventListener('abort', end, { once: true })
  stream.once('close', () => signal.removeEventListener('abort', end))
  return await new Promise((resolve, reject) => {
    const sent = httpRequest({
      method,
      path,
      setHost: false,
      createConnection: () => socket,
      headers: {
        host: 'pod',
        ...headers,
        ...(body.length > 0 || hasBody(method) ? { 'content-length': String(body.length) } : {}),
      },
    })
    sent.on('error', (error) => {
      end()
      reject(signal.aborted ? (signal.reason as Error) : error)
    })
    endAfterInterim(sent, () => new Error('net/http: too many 1xx informational responses'))
    sent.on('response', (response) => resolve({ answered: responseOf(response, end) }))
    sent.on('upgrade', (response, upgraded, head) => {
      resolve({ upgraded: { headers: response.rawHeaders, socket: upgraded, head } })
    })
    sent.end(body)
  })
}

function hasBody(method: string): boolean {
  return method === 'POST' || method === 'PUT' || method === 'PATCH'
}

function responseOf(response: IncomingMessage, end: () => void): TransportResponse {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(response.headers))
    if (!dropped.has(name) && value !== undefined) headers[name] = [value].flat().join(', ')
  return { status: response.statusCode ?? 502, headers, body: endWhenGivenUp(() => chunksOf(response, end), end) }
}

async function* chunksOf(response: IncomingMessage, end: () => void): AsyncGenerator<Uint8Array, undefined> {
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) yield chunk
  } finally {
    end()
  }
}
