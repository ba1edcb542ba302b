// Pods where they run: logs, exec, attach, port-forward. We find the pod; its member's API server does the rest.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { badRequest, serviceUnavailable } from '../../apimachinery/status/index.ts'
import { decodeObject } from '../resources/object-bytes.ts'
import type { PodConnection } from '../members/pod-connector.ts'
import type { Answer } from '../exchange/exchange.ts'
import { requireSubresource, type EndpointCall } from './endpoint-call.ts'
import type { EndpointParts } from './parts.ts'

const connectable = ['log', 'exec', 'attach', 'portforward'] as const
type Connectable = (typeof connectable)[number]

/** True for subresources that are answered by the cluster where the pod runs. */
export function isConnect(resource: string, group: string, subresource: string): boolean {
  return group === '' && resource === 'pods' && (connectable as readonly string[]).includes(subresource)
}

/** Logs, and whatever the member answers to an exec that asked for no upgrade. */
export async function connectPod(call: EndpointCall<EndpointParts>): Promise<Answer> {
  const { parts, request, target } = call
  if (request.subresource === 'log') {
    const pod = decodeObject(parts.registry.get(target, request.name).bytes)
    // Of a pod that no member has yet there are no logs, which is no error: clients that follow come again.
    if (memberOf(pod) === undefined) {
      requireContainer(pod, call)
      return { kind: 'bytes', status: 204, headers: {}, body: new Uint8Array() }
    }
  }
  if (parts.podConnector === undefined) throw notConnected()
  const response = await parts.podConnector.request(await podConnection(call))
  const { 'content-type': type = 'text/plain' } = response.headers
  return { kind: 'stream', status: response.status, headers: { 'content-type': type }, chunks: response.body }
}

/** What the connector needs of this call. Throws 404 for a pod that is not there, 400 for one that runs nowhere yet. */
export async function podConnection(call: EndpointCall): Promise<PodConnection> {
  const { request, exchange, cluster, parts, target } = call
  requireSubresource(call)
  const pod = decodeObject(parts.registry.get(target, request.name).bytes)
  if (memberOf(pod) === undefined) {
    if (request.subresource !== 'portforward') requireContainer(pod, call)
    throw badRequest(`pod ${request.name} does not have a host assigned`)
  }
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

interface PodContainers {
  readonly spec?: Partial<Record<'containers' | 'initContainers' | 'ephemeralContainers', readonly { name: string }[]>>
}

/** Throws 400 for a container that the pod does not have, or where it is not clear which is meant. Members ask likewise. */
function requireContainer(pod: KubeObject, { request, query }: EndpointCall): void {
  const { containers = [], initContainers = [], ephemeralContainers = [] } = (pod as PodContainers).spec ?? {}
  const all = [...initContainers, ...containers, ...ephemeralContainers].map(({ name }) => name)
  const wanted = query.get('container') ?? ''
  if (wanted === '' && containers.length !== 1)
    throw badRequest(`a container name must be specified for pod ${request.name}, choose one of: [${all.join(' ')}]`)
  if (wanted !== '' && !all.includes(wanted))
    throw badRequest(`container ${wanted} is not valid for pod ${request.name}`)
}

function memberOf({ metadata }: KubeObject): string | undefined {
  return metadata.annotations?.['kcp.dev/member']
}

export function notConnected(): Error {
  return serviceUnavailable('this server has no connection to member clusters')
}
