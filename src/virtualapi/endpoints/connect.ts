// Pods where they run: logs, exec, attach, port-forward. We find the pod; its member's API server does the rest.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { badRequest, serviceUnavailable } from '../../apimachinery/status/index.ts'
import { decodeObject } from '../registry/object-bytes.ts'
import type { PodConnection } from '../members/pod-connector.ts'
import type { Answer } from '../server/exchange.ts'
import { requireSubresource, type Call } from './call.ts'

const connectable = ['log', 'exec', 'attach', 'portforward'] as const
type Connectable = (typeof connectable)[number]

/** True for subresources that are answered by the cluster where the pod runs. */
export function isConnect(resource: string, group: string, subresource: string): boolean {
  return group === '' && resource === 'pods' && (connectable as readonly string[]).includes(subresource)
}

/** Logs, and whatever the member answers to an exec that asked for no upgrade. */
export async function connectPod(call: Call): Promise<Answer> {
  const { parts, request, target } = call
  // Of a pod that no member has yet there are no logs, which is no error: clients that follow come again.
  if (
    request.subresource === 'log' &&
    memberOf(decodeObject(parts.registry.get(target, request.name).bytes)) === undefined
  )
    return { kind: 'bytes', status: 200, headers: { 'content-type': 'text/plain' }, body: new Uint8Array() }
  if (parts.podConnector === undefined) throw notConnected()
  const response = await parts.podConnector.request(await podConnection(call))
  const { 'content-type': type = 'text/plain' } = response.headers
  return { kind: 'stream', status: response.status, headers: { 'content-type': type }, chunks: response.body }
}

/** What the connector needs of this call. Throws 404 for a pod that is not there, 400 for one that runs nowhere yet. */
export async function podConnection(call: Call): Promise<PodConnection> {
  const { request, exchange, cluster, parts, target } = call
  requireSubresource(call)
  const pod = decodeObject(parts.registry.get(target, request.name).bytes)
  if (memberOf(pod) === undefined) throw badRequest(`pod ${request.name} does not have a host assigned`)
  const { url, method, rawHeaders } = exchange.request
  const mark = url.indexOf('?')
  return {
    cluster,
    pod,
    subresource: request.subresource as Connectable,
    method,
    query: mark < 0 ? '' : url.slice(mark),
    rawHeaders,
    body: await exchange.request.body(),
    signal: exchange.signal,
  }
}

function memberOf({ metadata }: KubeObject): string | undefined {
  return metadata.annotations?.['kcp.dev/member']
}

export function notConnected(): Error {
  return serviceUnavailable('this server has no connection to member clusters')
}
