// HTTP upgrades: the same stages as for other requests. Then exec, attach and port-forward are piped to the member
// unchanged (SPDY or WebSocket), and a watch sends one WebSocket message per event.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { badRequest, statusError } from '#apimachinery/status/index.ts'
import type { TransportResponse } from '#client/index.ts'
import { errorResponse } from '#virtualapi/codec/responses.ts'
import { isConnectSubresource, podConnection } from '#virtualapi/endpoints/forwarded/connect.ts'
import { noPodConnector } from '#virtualapi/outbound/members/pod-connector.ts'
import { isProxySubresource, upgradeProxied } from '#virtualapi/endpoints/forwarded/proxy.ts'
import { upgradeToMember } from '#virtualapi/endpoints/forwarded/member-api.ts'
import { aggregatedRequest, upgradePassedOn } from '#virtualapi/endpoints/forwarded/aggregated.ts'
import { shownUpgradeHeaders } from '#virtualapi/endpoints/forwarded/proxy-exchange.ts'
import { prepareCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import { dispatch } from '#virtualapi/endpoints/dispatch.ts'
import { processTracer } from '#telemetry/index.ts'
import { Exchange, type BytesResponse, type IncomingRequest } from '#virtualapi/request/exchange.ts'
import type { ConsoleDoor } from './console-door.ts'
import { toStatusError } from './handle.ts'
import { forwardUpgrade } from './forward-upgrade.ts'
import { endTenure } from './own.ts'
import type { ServerDependencies } from './dependencies.ts'
import { end, pipeSockets } from '#network/sockets/index.ts'
import { RequestTrace } from './request-trace.ts'
import { stagesOfUpgrade } from './stages.ts'
import { watchOverWebSocket } from './watch-over-web-socket.ts'
import { isWebSocketRequest, requireHandshake } from './wire/web-socket.ts'

export interface UpgradeRequest {
  readonly incoming: IncomingRequest
  /** Node's object for the same request. */
  readonly request: IncomingMessage
  readonly socket: Duplex
  /** The bytes that the client sent after the request. */
  readonly head: Buffer
}

/** Maximum size of a member's refusal that is forwarded, bytes. */
const maxRefusalBytes = 64 * 1024
/** How long a refused client may keep its connection open, milliseconds. */
const refusedLingerMs = 2000

/** Answers an upgrade on its socket. Never rejects. */
export async function upgrade(
  { incoming, request, socket, head }: UpgradeRequest,
  dependencies: ServerDependencies,
): Promise<void> {
  const gone = new AbortController()
  const stop = (): void => gone.abort(new Error('the client went away'))
  socket.once('close', stop)
  socket.on('error', stop)
  const forward = (): void => gone.abort(incoming.signal.reason)
  incoming.signal.addEventListener('abort', forward, { once: true })
  const exchange = new Exchange({ ...incoming, body: () => Promise.resolve(new Uint8Array()), signal: gone.signal })
  const tracer = processTracer()
  const trace = tracer === undefined ? undefined : new RequestTrace(exchange, tracer)
  exchange.trace = trace
  try {
    for (const stage of trace?.traced(stagesOfUpgrade) ?? stagesOfUpgrade) {
      await stage(exchange, dependencies)
      if (exchange.forwardTo === undefined) continue
      exchange.audit?.discard()
      const traceparent = trace?.forward().traceparent
      trace?.answered()
      await forwardUpgrade(
        { incoming, socket, head, to: exchange.forwardTo, signal: gone.signal, traceparent },
        dependencies,
      )
      return
    }
    const join = (): Promise<void> => answer(exchange, { request, socket, head }, { dependencies, gone })
    await (trace === undefined ? join() : trace.within(join))
  } catch (error) {
    const failure = toStatusError(error, exchange, dependencies)
    answered(exchange, socket, errorResponse(failure))
  } finally {
    endTenure(exchange, dependencies)
    incoming.signal.removeEventListener('abort', forward)
    exchange.unlink()
    for (const cleanup of exchange.cleanups.splice(0).reverse()) cleanup()
  }
}

/** Answers an upgrade below /console on its socket. Never rejects. */
export async function upgradeThroughConsole(
  upgrading: UpgradeRequest,
  door: ConsoleDoor,
  dependencies: ServerDependencies,
): Promise<void> {
  const { incoming, socket } = upgrading
  socket.on('error', () => undefined)
  const verdict = await door.upgrade(incoming)
  if ('refused' in verdict) {
    writeResponse(socket, verdict.refused)
    return
  }
  if (!socket.destroyed) await upgrade({ ...upgrading, incoming: verdict.admitted }, dependencies)
  verdict.finish()
}

async function answer(
  exchange: Exchange,
  { request, socket, head }: Omit<UpgradeRequest, 'incoming'>,
  { dependencies, gone }: { dependencies: ServerDependencies; gone: AbortController },
): Promise<void> {
  if (exchange.move === 'left') {
    await pipe(exchange, { socket, head, dependencies }, await dependencies.moved.upgrade(exchange))
    return
  }
  if (exchange.info.member !== undefined) {
    await pipe(exchange, { socket, head, dependencies }, await upgradeToMember(exchange, dependencies))
    return
  }
  const remote = await aggregatedRequest(exchange, dependencies)
  if (remote !== undefined)
    await pipe(exchange, { socket, head, dependencies }, await upgradePassedOn(exchange, dependencies, remote))
  else if (exchange.info.verb === 'watch' && isWebSocketRequest((name) => exchange.header(name)))
    await watch(exchange, { request, socket, head }, { dependencies, gone })
  else await connect(exchange, { socket, head }, dependencies)
}

async function connect(
  exchange: Exchange,
  { socket, head }: { socket: Duplex; head: Uint8Array },
  dependencies: ServerDependencies,
): Promise<void> {
  const { target } = exchange.info
  const isProxy = target.kind === 'resource' && isProxySubresource(target.group, target.subresource)
  if (
    target.kind !== 'resource' ||
    !(isProxy || isConnectSubresource(target.resource, target.group, target.subresource))
  )
    throw badRequest(`${exchange.request.url.split('?')[0] ?? ''} takes no upgrade`)
  if (dependencies.podConnector === undefined) throw noPodConnector()
  const call = await prepareCall(exchange, dependencies, target)
  const result = isProxy
    ? await upgradeProxied(call)
    : await dependencies.podConnector.upgrade(await podConnection(call))
  await pipe(exchange, { socket, head, dependencies }, result)
}

async function pipe(
  exchange: Exchange,
  { socket, head, dependencies }: { socket: Duplex; head: Uint8Array; dependencies: ServerDependencies },
  result: Awaited<ReturnType<typeof upgradeProxied>>,
): Promise<void> {
  if ('refused' in result) {
    answered(exchange, socket, await refusal(result.refused))
    return
  }
  const { socket: remote, head: remoteHead } = result.upgraded
  const headers = shownUpgradeHeaders(result.upgraded.headers)
  // From here on nothing is answered from our own data.
  requireUnlost(exchange, dependencies, () => remote.destroy())
  exchange.audit?.started({ status: 101 })
  exchange.trace?.answered(101)
  const lines = ['HTTP/1.1 101 Switching Protocols']
  for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i] ?? ''}: ${headers[i + 1] ?? ''}`)
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  if (remoteHead.length > 0) socket.write(remoteHead)
  if (head.length > 0) remote.write(head)
  await pipeSockets(socket, remote, { signal: exchange.signal })
}

async function watch(
  exchange: Exchange,
  connection: Omit<UpgradeRequest, 'incoming'>,
  { dependencies, gone }: { dependencies: ServerDependencies; gone: AbortController },
): Promise<void> {
  requireHandshake((name) => exchange.header(name))
  const response = await dispatch(exchange, dependencies)
  if (response.kind !== 'push') throw new Error('a watch was not answered by a push')
  requireUnlost(exchange, dependencies, response.drop)
  await watchOverWebSocket(connection, response, { exchange, gone, log: dependencies.log })
}

function requireUnlost(exchange: Exchange, dependencies: ServerDependencies, drop: () => void): void {
  const lost = endTenure(exchange, dependencies)
  if (lost === undefined) return
  drop()
  throw lost
}

async function refusal({ status, headers, body }: TransportResponse): Promise<BytesResponse> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body) {
    length += chunk.length
    if (length > maxRefusalBytes) throw statusError(502, 'BadGateway', 'the member cluster refused the connection')
    chunks.push(chunk)
  }
  return {
    kind: 'bytes',
    status,
    headers: { 'content-type': headers['content-type'] ?? 'text/plain' },
    body: Buffer.concat(chunks),
  }
}

function answered(exchange: Exchange, socket: Duplex, response: BytesResponse): void {
  exchange.audit?.started(response)
  exchange.trace?.answered(response.status)
  writeResponse(socket, response)
}

/** Writes the refusal of an upgrade, and closes the connection. */
export function writeResponse(socket: Duplex, { status, headers, body }: BytesResponse): void {
  if (socket.destroyed) return
  const lines = [
    `HTTP/1.1 ${status} ${status === 101 ? 'Switching Protocols' : 'Refused'}`,
    'connection: close',
    `content-length: ${body.length}`,
  ]
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`)
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  socket.write(body)
  socket.once('finish', () => setTimeout(() => socket.destroy(), refusedLingerMs).unref())
  end(socket)
}
