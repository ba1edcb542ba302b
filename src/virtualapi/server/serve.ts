// Serves one request on a socket: makes the IncomingRequest, and aborts when the client disconnects.
import type { IncomingMessage } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import type { DetailedPeerCertificate } from 'node:tls'
import type { PendingConnections } from '#network/listening/index.ts'
import { headerOf, type IncomingRequest, type Push, type PushResponse } from '#virtualapi/request/exchange.ts'
import type { ConnectionTurns } from './limits/connection-turns.ts'
import type { MisplacedConnections } from './limits/misplaced-connections.ts'
import { agentPath, type AgentDoor } from './agent-door.ts'
import { consolePath, type ConsoleDoor } from './console-door.ts'
import { handle, type Handled } from './handle.ts'
import { forward } from './forward.ts'
import { hopClient } from './wire/hop-headers.ts'
import type { ServerDependencies } from './dependencies.ts'
import type { RawRequest } from './wire/raw-request.ts'
import type { RawResponse } from './wire/raw-response.ts'
import { readBody } from './wire/read-body.ts'
import { isGone, send, sendPush } from './send.ts'

/** The status in traces if the client went away. It is never sent, and HTTP itself has no such status. */
const clientClosedRequest = 499

const unauthorizedCode = 401

/** State that all requests of a listener share. */
export interface Serving {
  readonly dependencies: ServerDependencies
  /** Aborted when the server stops. */
  readonly signal: AbortSignal
  /** Connections whose clients are not known yet. */
  readonly pending: PendingConnections
  readonly turns: ConnectionTurns
  /** Undefined where no other workers listen on the same port. */
  readonly misplaced?: MisplacedConnections | undefined
  /** True if the clients are our other processes, whose certificates the listener has verified. */
  readonly isForPeers: boolean
  /** Answers requests below /console; undefined: no console is served. */
  readonly console: ConsoleDoor | undefined
  /** Answers requests of agents of members; undefined: none are served. */
  readonly agents: AgentDoor | undefined
  /** Requests that are being answered, watches not counted; the listener waits for them when the server stops. */
  readonly requests: { inFlight: number }
  /** Open pushes; the listener ends them when the server stops. */
  readonly pushes: Set<Push>
}

/** A request of HTTP/1.1. `url`: the original URL, where Fastify has rewritten that of `request`. */
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
  const { dependencies, signal, pending, turns } = serving
  const life = new AbortController()
  // The response does not tell whether it was sent: an HTTP/2 stream is "finished" also when the client has
  // disconnected.
  let sent = false
  const closed = (): void => {
    if (!sent) life.abort(new Error('the client went away'))
  }
  response.on('close', closed)
  const failed = (): void => life.abort(new Error('the connection failed'))
  response.on('error', failed)
  serving.requests.inFlight++
  try {
    if (serving.isForPeers) pending.settle(request.socket)
    else {
      pending.renew(request.socket)
      const turn = turns.turn(request.connection)
      if (turn !== undefined) await turn
      // Streams that were reset meanwhile cost nothing more.
      if (life.signal.aborted) return
    }
    const incoming = incomingOf(request, life.signal, serving)
    const arrived = { ...incoming, stopping: signal }
    const { answer, finish } = await (doorFor(request.url, serving)?.handle(arrived) ?? handle(arrived, dependencies))
    if (answer.kind === 'forward') {
      response.off('error', failed)
      response.off('close', closed)
      finish()
      const { to, isLongRunning, trace } = answer
      const { peerCertificate: certificate, peerAddress } = incoming
      const client = { address: peerAddress?.(), certificate, traceparent: trace?.traceparent }
      const stopping = isLongRunning ? signal : undefined
      const answered = (status: number): void => {
        // Any status but 401 means that the other process has authenticated the client.
        if (status !== unauthorizedCode && hasCredentials(incoming)) incoming.known?.()
        trace?.answered(status)
      }
      const peers = required(dependencies.peers)
      const isLocal = peers.isLocal(to)
      dependencies.metrics.forwarded.inc({ to: isLocal ? 'worker' : 'replica' })
      if (isLocal) serving.misplaced?.hopped(request, response)
      await forward({ request, response, client, to, stopping, answered }, peers)
      // The client went away before the other process answered.
      trace?.answered(clientClosedRequest)
      return
    }
    turns.answered(request.connection, answer.status)
    serving.misplaced?.answered(request)
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
    if (!life.signal.aborted) dependencies.log.error('an answer could not be sent', { url: request.url, error })
    response.destroy()
  } finally {
    serving.requests.inFlight--
  }
}

/** The part of the server that answers these requests instead of the stages. */
function doorFor(url: string, { console, agents }: Serving): Pick<ConsoleDoor, 'handle'> | undefined {
  if (console !== undefined && url.startsWith(consolePath)) return console
  return url.startsWith(agentPath) ? agents : undefined
}

function pushTo(
  response: RawResponse,
  { answer, finish }: { answer: PushResponse; finish: Handled['finish'] },
  { url, method }: RawRequest,
  { dependencies: { log }, signal, pushes }: Serving,
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

function hasCredentials({ peerCertificate, rawHeaders }: IncomingRequest): boolean {
  return peerCertificate !== undefined || headerOf(rawHeaders, 'authorization') !== undefined
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
export function incomingOf(
  request: RawRequest,
  signal: AbortSignal,
  { isForPeers, pending, turns }: Pick<Serving, 'isForPeers' | 'pending' | 'turns'>,
): IncomingRequest {
  const { method, url, rawHeaders, isOpen = false, socket, connection } = request
  const client = isForPeers ? hopClient(rawHeaders) : undefined
  let body: Promise<Uint8Array> | undefined
  return {
    method,
    url,
    rawHeaders,
    peerCertificate: client === undefined ? peerCertificateOf(request) : client.certificate,
    peerAddress: () => (client === undefined ? socket.remoteAddress : client.address),
    isForwarded: isForPeers,
    known: () => {
      if (!isForPeers) turns.known(connection)
      if (pending.size === 0 || pending.find(socket) === undefined) return
      pending.settle(socket)
      pending.trust(socket.remoteAddress ?? '')
    },
    hasOpenBody: isOpen,
    body: (limit) => (body ??= readBody(request, limit)),
    signal,
  }
}

function required<T>(peers: T | undefined): T {
  if (peers === undefined) throw new Error('a request is to be passed on, and no other process is known')
  return peers
}
