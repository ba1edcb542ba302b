// Forwards the requests of a tunnel to the member's API, with the agent's own credentials. What the installation claims
// about its users means nothing here: such headers are removed.
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import https from 'node:https'
import type { Duplex, Readable, Writable } from 'node:stream'
import type { Endpoint, EndpointSource } from '#client/index.ts'
import { pipeSockets } from '#network/sockets/index.ts'
import type { Logger } from '#telemetry/index.ts'

/** Headers of one connection (RFC 9110, section 7.6.1). */
const ofConnection = ['connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'proxy-connection']
/** Headers by which a client names an identity, or a proxy its client. */
const ofIdentity = ['authorization', 'cookie', 'set-cookie', 'proxy-authorization', 'forwarded', 'host']
const removed: ReadonlySet<string> = new Set([...ofConnection, ...ofIdentity])
const removedPrefixes = ['impersonate-', 'x-remote-', 'x-forwarded-']

/** Milliseconds for which a connection of the tunnel may be idle; the installation closes its own earlier. */
const idleMs = 120_000
/** Milliseconds until credentials are read again after a failure. */
const againMs = 5000

export interface ForwarderOptions {
  /** The member's API, with the credentials of the agent. */
  readonly api: EndpointSource
  readonly log: Logger
}

interface Target {
  readonly endpoint: Endpoint
  readonly agent: https.Agent
  refreshAt: number
}

export class Forwarder implements Disposable {
  readonly #api: EndpointSource
  readonly #log: Logger
  readonly #server: http.Server
  #target: Target | undefined

  constructor({ api, log }: ForwarderOptions) {
    this.#api = api
    this.#log = log
    this.#server = http.createServer({ keepAliveTimeout: idleMs, requestTimeout: 0 })
    this.#server.on('request', (request, response) => void this.#forward(request, response))
    this.#server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      socket.on('error', () => undefined)
      void this.#forwardUpgrade(request, socket, head)
    })
  }

  /** Serves HTTP/1.1 on a connection of the tunnel. */
  serve(connection: Duplex): void {
    this.#server.emit('connection', connection)
  }

  [Symbol.dispose](): void {
    this.#server.close()
    this.#target?.agent.destroy()
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const target = await this.#current()
      const sent = this.#send(target, request, [])
      response.once('close', () => sent.destroy())
      // Nobody waits any more for a request that the installation has given up.
      sent.once('error', (error) => {
        if (!response.destroyed) this.#refuse(response, error)
      })
      sent.once('response', (answer) => {
        if (answer.statusCode === 401) target.refreshAt = 0
        // A watch may have no event for minutes, and its client waits for the headers. A body that is already here is
        // sent with them, in one message.
        const { socket } = response
        socket?.cork()
        response.writeHead(answer.statusCode ?? 502, kept(answer.rawHeaders))
        response.flushHeaders()
        passOn(answer, response)
        process.nextTick(() => socket?.uncork())
      })
      passOn(request, sent)
    } catch (error) {
      this.#refuse(response, error)
    }
  }

  async #forwardUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    try {
      const target = await this.#current()
      const { upgrade = '' } = request.headers
      const sent = this.#send(target, request, ['connection', 'Upgrade', 'upgrade', upgrade])
      socket.once('close', () => sent.destroy())
      sent.once('error', () => socket.destroy())
      sent.once('response', (answer) => {
        socket.write(headOf(answer, ['connection', 'close']))
        passOn(answer, socket)
      })
      sent.once('upgrade', (answer, remote, remoteHead) => {
        socket.write(headOf(answer, ['connection', 'Upgrade', 'upgrade', answer.headers.upgrade ?? '']))
        if (remoteHead.length > 0) socket.write(remoteHead)
        if (head.length > 0) remote.write(head)
        void pipeSockets(socket, remote, { signal: new AbortController().signal })
      })
      sent.end()
    } catch (error) {
      this.#log.warn('a connection was not forwarded', { error })
      socket.destroy()
    }
  }

  #send({ endpoint, agent }: Target, { method = 'GET', url = '/', rawHeaders }: IncomingMessage, more: string[]) {
    const base = new URL(endpoint.server)
    const asked = actingIn(url)
    const headers = ['host', base.host, ...kept(rawHeaders), ...more]
    if (asked.account !== undefined) headers.push('impersonate-user', asked.account)
    if (endpoint.token !== undefined) headers.push('authorization', `Bearer ${endpoint.token}`)
    const path = (base.pathname === '/' ? '' : base.pathname) + asked.url
    const options = {
      host: base.hostname.replace(/^\[|\]$/g, ''),
      port: base.port || 443,
      method,
      path,
      headers,
      agent,
    }
    const sent = https.request(options)
    sent.setNoDelay(true)
    return sent
  }

  #refuse(response: ServerResponse, error: unknown): void {
    this.#log.warn('a request was not forwarded', { error })
    if (response.headersSent) {
      response.destroy()
      return
    }
    const message = `the agent could not reach the API of its cluster: ${(error as Error).message}`
    const status = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      reason: 'ServiceUnavailable',
      code: 503,
    }
    response.writeHead(503, { 'content-type': 'application/json' }).end(JSON.stringify(status))
  }

  /** The API with credentials that are valid now. */
  async #current(): Promise<Target> {
    const known = this.#target
    if (known !== undefined && performance.now() < known.refreshAt) return known
    try {
      const endpoint = await this.#api.endpoint({ refused: known?.refreshAt === 0 })
      const agent = known !== undefined && isSameServer(known.endpoint, endpoint) ? known.agent : agentFor(endpoint)
      const refreshAt = performance.now() + (this.#api.refreshAfterMs ?? Infinity)
      return (this.#target = { endpoint, agent, refreshAt })
    } catch (error) {
      if (known === undefined) throw error
      known.refreshAt = performance.now() + againMs
      return known
    }
  }
}

/**
 * Passes all bytes on; when one of both ends early, so does the other. node:stream's pipeline does the same with an
 * AbortController for each call, whose abort at the end is a tenth of the processor time of a request.
 */
function passOn(from: Readable, to: Writable): void {
  from.once('error', () => to.destroy())
  from.once('close', () => {
    if (!from.readableEnded) to.destroy()
  })
  to.once('close', () => {
    if (!to.writableFinished) from.destroy()
  })
  from.pipe(to)
}

/**
 * The request of `/as/NAMESPACE/NAME/...`, and the ServiceAccount as which it is made. The member's RBAC says which
 * ServiceAccounts the agent may act as: none, unless an admin of the member grants it.
 */
function actingIn(url: string): { readonly url: string; readonly account?: string } {
  const found = /^\/as\/([a-z0-9][-a-z0-9]*)\/([a-z0-9][-.a-z0-9]*)(\/.*)$/.exec(url)
  if (found === null) return { url }
  const [, namespace = '', name = '', rest = ''] = found
  return { url: rest, account: `system:serviceaccount:${namespace}:${name}` }
}

function kept(rawHeaders: readonly string[]): string[] {
  const found: string[] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    const lower = name.toLowerCase()
    if (removed.has(lower) || removedPrefixes.some((prefix) => lower.startsWith(prefix))) continue
    found.push(name, rawHeaders[i + 1] ?? '')
  }
  return found
}

function headOf({ statusCode = 502, statusMessage = '', rawHeaders }: IncomingMessage, more: string[]): string {
  const headers = [...kept(rawHeaders), ...more]
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage}`]
  for (let i = 0; i + 1 < headers.length; i += 2) lines.push(`${headers[i] ?? ''}: ${headers[i + 1] ?? ''}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}

function agentFor({ ca, cert, key, serverName }: Endpoint): https.Agent {
  return new https.Agent({
    keepAlive: true,
    maxSockets: Infinity,
    maxFreeSockets: 64,
    scheduling: 'lifo',
    timeout: 60_000,
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(serverName !== undefined && { servername: serverName }),
  })
}

function isSameServer(a: Endpoint, b: Endpoint): boolean {
  return a.server === b.server && String(a.ca) === String(b.ca) && String(a.cert) === String(b.cert)
}
