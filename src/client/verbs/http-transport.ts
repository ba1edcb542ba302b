// HTTP/1.1 over TLS with node:https and a keep-alive agent without connection limit: a watch occupies a connection, and
// no number of watches delays a request. (Measured on Node 24: as fast as undici, and no additional memory.)
import http from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex, Readable } from 'node:stream'
import { setImmediate as immediate } from 'node:timers/promises'
import { serviceUnavailable } from '#apimachinery/status/index.ts'
import { abortable, endAfterInterim } from '#async/index.ts'
import { processTracer } from '#telemetry/index.ts'
import type { Endpoint, EndpointSource } from '#client/kubeconfig/endpoint.ts'
import { openTunnel } from './proxy-tunnel.ts'
import { tracedTransport } from './traced-transport.ts'
import {
  SilentConnection,
  type Transport,
  type TransportRequest,
  type TransportResponse,
  type UpgradedConnection,
} from './transport.ts'

export interface HttpTransportOptions {
  /** Idle connections kept for reuse. Default 64. */
  readonly maxIdleConnections?: number
  /**
   * An idle connection is closed after this time. Default 30 s: less than the idle limit of usual servers and load
   * balancers.
   */
  readonly idleTimeoutMs?: number
  /**
   * Without the first byte of a response within this time, a request rejects with ServiceUnavailable. Default 90 s (a
   * server ends its requests after 60).
   */
  readonly responseTimeoutMs?: number
  /** Without a connection, TLS included, within this time, a request rejects with ServiceUnavailable. Default 30 s. */
  readonly connectTimeoutMs?: number
}

/** A request that is aborted after this time without a response suggests a dead connection or server. */
const longWaitMs = 8000

const tooManyInterim = (): Error => new Error('too many interim answers (1xx)')

type CreateConnection = https.Agent['createConnection']

interface Link {
  readonly endpoint: Endpoint
  readonly agent: http.Agent
  readonly base: URL
  readonly pathPrefix: string
  readonly headers: Readonly<Record<string, string>>
  refreshAt: number
  /** Whether the server has responded with 401. */
  refused: boolean
}

/** Delay before credentials are read again after a failure, such as a half-written file or a failed plugin. */
const refreshAgainMs = 5000

/** A Transport to this endpoint. Dispose of it to close its connections. */
export function httpTransport(target: Endpoint | EndpointSource, options: HttpTransportOptions = {}): Transport {
  const source = 'endpoint' in target ? target : { endpoint: () => Promise.resolve(target) }
  const transport = new HttpTransport(source, options)
  const tracer = processTracer()
  return tracer === undefined ? transport : tracedTransport(transport, { tracer, server: () => transport.server })
}

class HttpTransport implements Transport {
  readonly #source: EndpointSource
  readonly #options: Required<HttpTransportOptions>
  #link: Link | undefined
  #linking: Promise<Link> | undefined
  #closed = false
  /** The agents whose connections are closed on disposal. */
  readonly #agents = new Set<http.Agent>()

  constructor(
    source: EndpointSource,
    {
      maxIdleConnections = 64,
      idleTimeoutMs = 30_000,
      responseTimeoutMs = 90_000,
      connectTimeoutMs = 30_000,
    }: HttpTransportOptions,
  ) {
    this.#source = source
    this.#options = { maxIdleConnections, idleTimeoutMs, responseTimeoutMs, connectTimeoutMs }
  }

  /** Host and port of the server; undefined before the first connection. */
  get server(): string | undefined {
    return this.#link?.base.host
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    request.signal.throwIfAborted()
    const link = this.#current() ?? (await abortable(this.#connected(), request.signal))
    const response = await this.#send(link, request)
    // The token may have been renewed on disk: read it again before the next request.
    if (response.status === 401) {
      link.refreshAt = 0
      link.refused = true
    }
    return response
  }

  async upgrade(request: {
    readonly method: string
    readonly path: string
    readonly rawHeaders: readonly string[]
    readonly signal: AbortSignal
  }): Promise<{ upgraded: UpgradedConnection } | { refused: TransportResponse }> {
    request.signal.throwIfAborted()
    const link = this.#current() ?? (await abortable(this.#connected(), request.signal))
    const rawHeaders = ['host', link.base.host]
    for (const [name, value] of Object.entries(link.headers)) rawHeaders.push(name, value)
    for (let i = 0; i + 1 < request.rawHeaders.length; i += 2) {
      const [name = '', value = ''] = request.rawHeaders.slice(i, i + 2)
      if (name.toLowerCase() !== 'host') rawHeaders.push(name, value)
    }
    // Without this header, node:http would send a POST with chunked encoding, and its last chunk would count as bytes
    // of the other protocol.
    if (request.method !== 'GET') rawHeaders.push('content-length', '0')
    return await new Promise((resolve, reject) => {
      // A new connection: after the upgrade it belongs to the caller.
      const sent = requestOf(link)({
        ...addressOf(link, request),
        headers: rawHeaders,
        agent: this.#agentForOne(link),
        ...tlsOf(link.endpoint),
      })
      const abort = (): void => void sent.destroy(abortError(request.signal))
      request.signal.addEventListener('abort', abort, { once: true })
      const settled = (): void => {
        sent.setTimeout(0)
        request.signal.removeEventListener('abort', abort)
      }
      sent.setTimeout(this.#options.responseTimeoutMs, () => sent.destroy(new Error('no answer in time')))
      endAfterInterim(sent, tooManyInterim)
      sent.on('upgrade', (response, socket, head) => {
        settled()
        const end = (): void => void socket.destroy(abortError(request.signal))
        request.signal.addEventListener('abort', end, { once: true })
        socket.once('close', () => request.signal.removeEventListener('abort', end))
        resolve({ upgraded: { headers: response.rawHeaders, socket, head } })
      })
      sent.on('response', (response) => {
        settled()
        resolve({ refused: responseOf(response, { signal: request.signal, silent: () => undefined }) })
      })
      sent.on('error', (error) => {
        settled()
        reject(failure(link, request, error))
      })
      sent.end()
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    for (const agent of this.#agents) agent.destroy()
    this.#agents.clear()
  }

  async #connected(): Promise<Link> {
    if (this.#closed) throw serviceUnavailable('this client is closed')
    return await (this.#linking ??= this.#refresh().finally(() => (this.#linking = undefined)))
  }

  #current(): Link | undefined {
    if (this.#closed || this.#link === undefined || performance.now() >= this.#link.refreshAt) return undefined
    return this.#link
  }

  async #refresh(): Promise<Link> {
    let endpoint: Endpoint
    try {
      endpoint = await this.#source.endpoint({ refused: this.#link?.refused ?? false })
    } catch (error) {
      // Credentials that the server accepts are kept, even if the file cannot be read now.
      if (this.#link === undefined || this.#link.refused) throw error
      this.#link.refreshAt = performance.now() + refreshAgainMs
      return this.#link
    }
    const refreshAt =
      this.#source.refreshAfterMs === undefined ? Infinity : performance.now() + this.#source.refreshAfterMs
    const old = this.#link
    if (old !== undefined && sameConnection(old.endpoint, endpoint)) {
      this.#link = { ...old, endpoint, headers: headersOf(endpoint), refreshAt, refused: false }
      return this.#link
    }
    const base = new URL(endpoint.server)
    const agent = this.#agentOf(base, endpoint)
    if (old !== undefined) this.#retire(old.agent)
    this.#agents.add(agent)
    this.#link = {
      endpoint,
      agent,
      base,
      pathPrefix: base.pathname === '/' ? '' : base.pathname,
      headers: headersOf(endpoint),
      refreshAt,
      refused: false,
    }
    return this.#link
  }

  #agentOf(base: URL, endpoint: Endpoint): http.Agent {
    const common: http.AgentOptions = {
      keepAlive: true,
      maxSockets: Infinity,
      maxFreeSockets: this.#options.maxIdleConnections,
      scheduling: 'lifo',
      // Closes idle sockets only: for a socket in use, nothing listens to the agent's timeout.
      timeout: this.#options.idleTimeoutMs,
    }
    if (endpoint.dial !== undefined) return withConnector(new http.Agent(common), connectorOf(endpoint.dial))
    if (base.protocol === 'http:') return new http.Agent(common)
    const agent = new https.Agent({ ...common, ...tlsOf(endpoint), maxCachedSessions: 16 })
    // Node would build a name from the certificates, several times per request. This agent has only one endpoint.
    agent.getName = () => endpoint.server
    return endpoint.proxyUrl === undefined ? agent : withConnector(agent, this.#tunnelTo(base, endpoint))
  }

  /** The agent of a connection that is used once; false for Node's default. */
  #agentForOne({ base, endpoint }: Link): http.Agent | false {
    if (endpoint.dial !== undefined) return withConnector(new http.Agent(), connectorOf(endpoint.dial))
    return endpoint.proxyUrl !== undefined && withConnector(new https.Agent(), this.#tunnelTo(base, endpoint))
  }

  /** Connects through the proxy of the endpoint. */
  #tunnelTo(base: URL, endpoint: Endpoint): CreateConnection {
    const host = base.hostname.replace(/^\[|\]$/g, '')
    const { proxyUrl = '' } = endpoint
    const timeoutMs = this.#options.connectTimeoutMs
    const options = { proxyUrl, host, port: base.port || 443, tls: tlsOf(endpoint), timeoutMs }
    return (_, done) => {
      // Node's type has a socket even beside an error.
      openTunnel(options, done as Parameters<typeof openTunnel>[1])
      return undefined
    }
  }

  /** Closes idle connections. Connections in use end with their responses. */
  #retire(agent: http.Agent): void {
    closeIdle(agent)
    agent.maxFreeSockets = 0
    this.#agents.delete(agent)
  }

  async #send(link: Link, request: TransportRequest, { retried = false } = {}): Promise<TransportResponse> {
    const { promise, resolve, reject } = Promise.withResolvers<TransportResponse>()
    const body = request.body
    const headers: Record<string, string | number> = { ...link.headers, ...request.headers }
    if (body !== undefined) headers['content-length'] = Buffer.byteLength(body)
    const sent = requestOf(link)({ ...addressOf(link, request), headers, agent: link.agent })
    const sentAt = performance.now()
    const abort = (): void => {
      if (tellsOfSilence(request.signal) || performance.now() - sentAt > longWaitMs) closeIdle(link.agent)
      sent.destroy(abortError(request.signal))
    }
    request.signal.addEventListener('abort', abort, { once: true })
    const timer = setTimeout(() => {
      closeIdle(link.agent)
      sent.destroy(new Error('no answer in time'))
    }, this.#options.responseTimeoutMs)
    endAfterInterim(sent, tooManyInterim)
    sent.on('socket', (socket) => endUnconnected(socket, sent, this.#options.connectTimeoutMs))
    let answered = false
    sent.on('response', (response) => {
      answered = true
      clearTimeout(timer)
      request.signal.removeEventListener('abort', abort)
      resolve(responseOf(response, { ...request, silent: () => closeIdle(link.agent) }))
    })
    sent.on('error', (error) => {
      // The reader of the response gets the error; a retry would have no reader.
      if (answered) return
      clearTimeout(timer)
      request.signal.removeEventListener('abort', abort)
      // The server closed an idle connection at the moment we used it and has not seen the request: reads can be
      // retried.
      const stale = sent.reusedSocket && !retried && !request.signal.aborted && request.method === 'GET'
      if (stale) resolve(this.#send(link, request, { retried: true }))
      else reject(failure(link, request, error))
    })
    sent.end(body)
    return promise
  }
}

function withConnector(agent: http.Agent, connect: CreateConnection): http.Agent {
  agent.createConnection = connect
  return agent
}

function connectorOf(dial: () => Promise<Duplex>): CreateConnection {
  return (_, done) => {
    // Node's type has a socket even beside an error.
    const settle = done as (error: Error | null, socket?: Duplex) => void
    dialAlive(dial).then(
      (socket) => settle(null, socket),
      (error: unknown) => settle(error as Error),
    )
    return undefined
  }
}

/** A connection that is open: node:http would wait for ever on one that has closed before it listens to it. */
async function dialAlive(dial: () => Promise<Duplex>): Promise<Duplex> {
  const socket = await dial()
  await immediate()
  if (socket.destroyed) throw new Error('the connection was cut as soon as it was opened')
  return socket
}

function requestOf(link: Link): (options: https.RequestOptions) => http.ClientRequest {
  return link.base.protocol === 'http:' ? (options) => http.request(options) : (options) => https.request(options)
}

function addressOf(link: Link, { method, path }: { method: string; path: string }): https.RequestOptions {
  const host = link.base.hostname.replace(/^\[|\]$/g, '')
  return {
    method,
    path: link.pathPrefix + path,
    host,
    port: link.base.port || (link.base.protocol === 'http:' ? 80 : 443),
  }
}

function tlsOf({ server, ca, cert, key, serverName, insecureSkipTlsVerify }: Endpoint): https.AgentOptions {
  const keepAlive = { keepAlive: true, keepAliveInitialDelay: 30_000 }
  if (server.startsWith('http:')) return keepAlive
  return {
    ...keepAlive,
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(serverName !== undefined && { servername: serverName }),
    ...(insecureSkipTlsVerify && { rejectUnauthorized: false }),
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
  }
}

function headersOf({ token, headers }: Endpoint): Record<string, string> {
  return { 'user-agent': 'kcp', ...(token !== undefined && { authorization: `Bearer ${token}` }), ...headers }
}

function sameConnection(a: Endpoint, b: Endpoint): boolean {
  const text = (value: string | Buffer | undefined): string => value?.toString() ?? ''
  return (
    a.server === b.server &&
    a.serverName === b.serverName &&
    a.proxyUrl === b.proxyUrl &&
    a.dial === b.dial &&
    a.insecureSkipTlsVerify === b.insecureSkipTlsVerify &&
    text(a.ca) === text(b.ca) &&
    text(a.cert) === text(b.cert) &&
    text(a.key) === text(b.key)
  )
}

/** Closes the idle connections: after one connection was dead, the others may be dead, too. */
function closeIdle(agent: http.Agent): void {
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy()
}

/** Limits the time for a new connection, TLS handshake included. */
function endUnconnected(socket: Socket, sent: http.ClientRequest, connectTimeoutMs: number): void {
  if (!socket.connecting) return
  const timer = setTimeout(() => sent.destroy(new Error('no connection in time')), connectTimeoutMs)
  const settled = (): void => clearTimeout(timer)
  socket.once('encrypted' in socket ? 'secureConnect' : 'connect', settled)
  socket.once('close', settled)
}

interface Reading {
  readonly signal: AbortSignal
  readonly maxSilenceMs?: number
  /** Called if the connection is dead. */
  readonly silent: () => void
}

function responseOf(response: http.IncomingMessage, reading: Reading): TransportResponse {
  const { signal, silent } = reading
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(response.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  }
  const abort = (): void => {
    if (tellsOfSilence(signal)) silent()
    response.destroy(abortError(signal))
  }
  signal.addEventListener('abort', abort, { once: true })
  response.once('close', () => signal.removeEventListener('abort', abort))
  // An unhandled error event would end the process; the reader of the body still gets the error.
  response.on('error', () => undefined)
  return { status: response.statusCode ?? 0, headers, body: bodyOf(response, reading) }
}

async function* bodyOf(response: Readable, { signal, maxSilenceMs, silent }: Reading): AsyncGenerator<Uint8Array> {
  // A slow reader is fine: only the time spent waiting for bytes counts.
  let waiting = true
  const gaveUp = (): void => {
    if (!waiting) return
    silent()
    response.destroy(new SilentConnection(`nothing came for ${String(maxSilenceMs)} ms`))
  }
  const timer = maxSilenceMs === undefined ? undefined : setTimeout(gaveUp, maxSilenceMs)
  try {
    for await (const chunk of response) {
      waiting = false
      yield chunk as Uint8Array
      waiting = true
      timer?.refresh()
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    throw serviceUnavailable(`the connection broke while reading the answer: ${(error as Error).message}`, error)
  } finally {
    clearTimeout(timer)
  }
}

function tellsOfSilence(signal: AbortSignal): boolean {
  return signal.reason instanceof SilentConnection
}

function abortError(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error('aborted', { cause: signal.reason })
}

function failure(link: Link, request: { method: string; path: string; signal: AbortSignal }, error: Error): Error {
  if (request.signal.aborted) return request.signal.reason as Error
  const { code } = error as NodeJS.ErrnoException
  const why = error.message !== '' ? error.message : (code ?? 'no connection')
  const path = request.path.split('?', 1)[0] ?? ''
  return serviceUnavailable(`could not ${request.method} "${path}" at "${link.base.host}": ${why}`, error)
}
