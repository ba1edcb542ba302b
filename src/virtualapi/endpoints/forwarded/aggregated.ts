// Requests for group versions that an APIService gives to another server. They are passed on as they are, with the
// identity of the client in headers. They were authorized here; the other server authorizes them again.
import { EgressError } from '#network/egress/index.ts'
import type { TransportResponse } from '#client/index.ts'
import { processTracer, traceparentOf } from '#telemetry/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import { identityHeaders } from '#virtualapi/outbound/aggregation/identity-headers.ts'
import { remoteApiServices, type RemoteApiService } from '#virtualapi/outbound/aggregation/remote-api-service.ts'
import { textResponse } from '#virtualapi/codec/responses.ts'
import type { ApiResponse, Exchange } from '#virtualapi/request/exchange.ts'
import { isBuiltInGroup } from '#virtualapi/kinds/resources/builtin-resources.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import { proxiedHeaders, proxyOver, shownHeaders, type Upgraded } from './proxy-exchange.ts'

/** How long a client may read nothing before it is cut off, milliseconds. */
const maxStallMs = 60_000

/**
 * The APIService that gives this group version to another server; undefined if there is none. Group versions of
 * built-in kinds and of served CustomResourceDefinitions are always served here.
 */
export function aggregatedTo(
  { catalog }: Pick<EndpointDependencies, 'catalog'>,
  objects: ClusterObjects,
  { group, version }: { group: string; version: string },
): RemoteApiService | undefined {
  if (isBuiltInGroup(group)) return undefined
  const found = remoteApiServices(objects).get(`${version}.${group}`)
  if (found === undefined) return undefined
  const isCustom = catalog
    .crds(objects)
    .some(({ compiled }) => compiled.versions.some(({ info }) => info.group === group && info.version === version))
  return isCustom ? undefined : found
}

/** The APIService that gives the resource of a request to another server; undefined if there is none. */
export async function aggregatedRequest(
  { info, cluster, signal }: Exchange,
  dependencies: EndpointDependencies,
): Promise<RemoteApiService | undefined> {
  const { target } = info
  if (target.kind === 'path' || cluster === undefined || isBuiltInGroup(target.group)) return undefined
  return aggregatedTo(dependencies, await dependencies.watchCache.cluster(cluster.id, { signal }), target)
}

/**
 * Keeps the APIServices of the logical cluster checked while the request is open, and for a minute after it. Does
 * nothing for our own controllers.
 */
export function keepAvailability(
  { cluster, request, cleanups }: Exchange,
  { aggregation }: EndpointDependencies,
): void {
  if (cluster === undefined || request.loopbackUser !== undefined) return
  cleanups.push(aggregation.availability.use(cluster.id))
}

/** The response of the other server, as it arrives. */
export async function passOn(
  exchange: Exchange,
  dependencies: EndpointDependencies,
  to: RemoteApiService,
): Promise<ApiResponse> {
  keepAvailability(exchange, dependencies)
  const result = await exchange.whileWaiting(passed(exchange, dependencies, to, { upgrade: false }))
  if ('failure' in result) return textResponse(result.failure, result.status)
  if ('upgraded' in result) {
    result.upgraded.socket.destroy()
    return textResponse('error trying to reach service: the server switched protocols', 502)
  }
  const { status, headers, body } = result.answered
  return { kind: 'stream', status, headers: shownHeaders(headers), chunks: body, maxStallMs }
}

/** Passes an upgrade on. Returns the stream to the other server, or its refusal. */
export async function upgradePassedOn(
  exchange: Exchange,
  dependencies: EndpointDependencies,
  to: RemoteApiService,
): Promise<{ upgraded: Upgraded } | { refused: TransportResponse }> {
  const result = await passed(exchange, dependencies, to, { upgrade: true })
  if ('upgraded' in result) return result
  if ('answered' in result) return { refused: { ...result.answered, headers: shownHeaders(result.answered.headers) } }
  const headers = { 'content-type': 'text/plain; charset=utf-8' }
  return { refused: { status: result.status, headers, body: single(Buffer.from(result.failure)) } }
}

type Result =
  | { answered: TransportResponse }
  | { upgraded: Upgraded }
  /** A failure in the words of kube-aggregator, as text. */
  | { failure: string; status: number }

async function passed(
  exchange: Exchange,
  { aggregation }: EndpointDependencies,
  to: RemoteApiService,
  { upgrade }: { upgrade: boolean },
): Promise<Result> {
  const { cluster, request, signal, user } = exchange
  if (cluster === undefined) throw new Error('a request without a logical cluster is not passed on')
  const via = `1.1 kcp-${cluster.id}`
  if ((exchange.header('via') ?? '').includes(via))
    return { failure: 'the APIService leads back to this logical cluster', status: 508 }
  const body = upgrade ? Buffer.alloc(0) : await request.body()
  const headers = {
    ...proxiedHeaders(request.rawHeaders, { upgrade }),
    ...identityHeaders(user),
    host: `${to.remote.service.name}.${to.remote.service.namespace}.svc`,
    via: [exchange.header('via'), via].filter(Boolean).join(', '),
    ...traceHeaders(),
  }
  try {
    if (!to.isJudged) await aggregation.availability.untilJudged(cluster.id, to.name, signal)
    const stream = await aggregation.servers.connect(cluster.id, to, signal)
    // The scheme is http, because the connection is encrypted already.
    const path = pathOf(exchange)
    const result = await proxyOver(stream, { scheme: 'http', method: request.method, path, headers, body, signal })
    if (!('answered' in result) || !isRedirect(result.answered)) return result
    await result.answered.body[Symbol.asyncIterator]().return?.()
    return { failure: 'the backend attempted to redirect this request, which is not permitted', status: 502 }
  } catch (error) {
    if (signal.aborted) throw error
    const why = error instanceof EgressError ? error.message : 'the connection failed'
    return { failure: `error trying to reach service: ${why}`, status: 503 }
  }
}

/**
 * The header by which the trace goes on in the other server, as in kube-aggregator; empty without a tracer, so that the
 * client's own header stays.
 */
function traceHeaders(): Record<string, string> {
  const span = processTracer()?.current()
  return span === undefined ? {} : { traceparent: traceparentOf(span) }
}

/** Path and query inside the logical cluster, as they were sent. */
function pathOf({ request, info }: Exchange): string {
  const url = request.url.startsWith('/') ? request.url : request.url.replace(/^https?:\/\/[^/?]*/i, '')
  return url.slice(info.basePath.length)
}

function isRedirect({ status, headers }: TransportResponse): boolean {
  return status >= 300 && status < 400 && headers['location'] !== undefined
}

async function* single(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
