// `pods/NAME/proxy` and `services/NAME/proxy`: HTTP to a pod of the logical cluster in its member, any path and method.
import { Buffer } from 'node:buffer'
import type { Duplex } from 'node:stream'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { TransportResponse } from '#client/index.ts'
import { textResponse } from '#virtualapi/codec/responses.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import { noPodConnector } from '#virtualapi/outbound/members/pod-connector.ts'
import { requireSubresource, type EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import { proxiedHeaders, proxyOver, shownHeaders, type Upgraded } from './proxy-exchange.ts'
import { proxyTarget } from './proxy-target.ts'

/** How long a client may read nothing before its connection is cut, milliseconds. */
const maxStallMs = 60_000

export function isProxySubresource(group: string, subresource: string): boolean {
  return group === '' && subresource === 'proxy'
}

/** Answers with the response of the pod, or with 503 as text if the pod cannot be reached, as kube-apiserver does. */
export async function proxy(call: EndpointCall<EndpointDependencies>): Promise<ApiResponse> {
  const { exchange } = call
  const { path, prefix } = pathsOf(call)
  if (path === '' && ['GET', 'HEAD'].includes(exchange.request.method)) {
    // As in kube-apiserver, the pod is looked up first.
    requireSubresource(call)
    proxyTarget(call)
    return redirectToRoot(call)
  }
  const result = await proxied(call, path, { upgrade: false })
  if ('failure' in result) return textResponse(`error trying to reach service: ${result.failure}`, 503)
  if ('upgraded' in result) {
    result.upgraded.socket.destroy()
    return textResponse('error trying to reach service: the pod switched protocols', 502)
  }
  const { status, headers, body } = result.answered
  return { kind: 'stream', status, headers: headersBelow(headers, prefix), chunks: body, maxStallMs }
}

/** Passes an upgrade on to the pod. Returns the stream to the pod, or the refusal. */
export async function upgradeProxied(
  call: EndpointCall<EndpointDependencies>,
): Promise<{ upgraded: Upgraded } | { refused: TransportResponse }> {
  const { path } = pathsOf(call)
  const result = await proxied(call, path === '' ? '/' : path, { upgrade: true })
  if ('upgraded' in result) return result
  if (!('answered' in result)) return { refused: refusal(result.failure) }
  return { refused: { ...result.answered, headers: shownHeaders(result.answered.headers) } }
}

type Result = { answered: TransportResponse } | { upgraded: Upgraded } | { failure: string }

async function proxied(
  call: EndpointCall<EndpointDependencies>,
  asked: string,
  { upgrade }: { upgrade: boolean },
): Promise<Result> {
  requireSubresource(call)
  const { exchange, dependencies, cluster } = call
  const { method, rawHeaders } = exchange.request
  const { scheme, pod, port } = proxyTarget(call)
  const path = await admittedPath(call, asked === '' ? '/' : asked)
  const body = upgrade ? Buffer.alloc(0) : await exchange.request.body()
  if (dependencies.podConnector === undefined) throw noPodConnector()
  const { signal } = exchange
  let stream: Duplex
  try {
    stream = await dependencies.connectToPod(cluster.id, { pod, port }, signal)
    const headers = proxiedHeaders(rawHeaders, { upgrade })
    return await proxyOver(stream, { scheme, method, path: path + queryOf(call), headers, body, signal })
  } catch (error) {
    if (signal.aborted) throw error
    return { failure: (error as Error).message }
  }
}

/** `path`: the path at the pod, as sent; empty if there is none. `prefix`: the path of the proxy itself. */
function pathsOf({ exchange, request }: EndpointCall): { readonly path: string; readonly prefix: string } {
  const [raw = ''] = exchange.request.url.split('?')
  // Names may be percent-encoded, but none has a slash: the first `proxy` after the resource is the subresource.
  const start = raw.indexOf(`/${request.resource}/`, exchange.info.basePath.length)
  const at = raw.indexOf('/proxy', raw.indexOf('/', start + request.resource.length + 2))
  const end = at + '/proxy'.length
  return { path: raw.slice(end), prefix: raw.slice(0, end) }
}

function queryOf({ exchange }: EndpointCall): string {
  const { url } = exchange.request
  const at = url.indexOf('?')
  return at < 0 ? '' : url.slice(at)
}

/** The path as the webhooks leave it; without webhooks the requested path. */
async function admittedPath({ request, dependencies, target }: EndpointCall, path: string): Promise<string> {
  const kind = {
    group: '',
    version: 'v1',
    kind: request.resource === 'pods' ? 'PodProxyOptions' : 'ServiceProxyOptions',
  }
  const object = { kind: kind.kind, apiVersion: 'v1', path } as unknown as KubeObject
  const { subresource, name } = request
  await dependencies.registry.admitPart(target, { operation: 'CONNECT', subresource, name, kind }, object)
  const admitted = object['path']
  return typeof admitted === 'string' && admitted.startsWith('/') ? admitted : path
}

/** Redirects to the same path with a slash at its end, so that relative links of the page lead to the pod. */
function redirectToRoot(call: EndpointCall): ApiResponse {
  const [path = ''] = call.exchange.request.url.split('?')
  const location = `${path}/${queryOf(call)}`
  return { kind: 'bytes', status: 301, headers: { location }, body: new Uint8Array() }
}

/**
 * The headers for the client. A Location at the pod leads through the proxy again; any other Location is left out,
 * because it would lead out of the proxy.
 */
function headersBelow(headers: Readonly<Record<string, string>>, prefix: string): Record<string, string> {
  const { location } = headers
  const stays = location !== undefined && /^\/(?![/\\])/.test(location)
  return { ...shownHeaders(headers), ...(stays ? { location: prefix + location } : {}) }
}

function refusal(failure: string): TransportResponse {
  const chunks = [Buffer.from(`error trying to reach service: ${failure}`)]
  return { status: 503, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: iterate(chunks) }
}

async function* iterate(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks
}
