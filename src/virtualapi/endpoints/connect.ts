// Logs, exec, attach and port-forward of a pod. We find the pod; the API server of its member cluster answers the request.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { badRequest, serviceUnavailable } from '../../apimachinery/status/index.ts'
import { memberAnnotation } from '../../crds/index.ts'
import { decodeObject } from '../resources/object-bytes.ts'
import type { PodConnection } from '../members/pod-connector.ts'
import type { Answer } from '../exchange/exchange.ts'
import { requireSubresource, type EndpointCall } from './endpoint-call.ts'
import type { EndpointParts } from './parts.ts'

const connectable = ['log', 'exec', 'attach', 'portforward'] as const
type Connectable = (typeof connectable)[number]

/** True for subresources that the member cluster of the pod answers. */
export function isConnectSubresource(resource: string, group: string, subresource: string): boolean {
  return group === '' && resource === 'pods' && (connectable as readonly string[]).includes(subresource)
}

/** Answers logs, and exec, attach and port-forward requests without an upgrade, with the response of the member cluster. */
export async function connectPod(call: EndpointCall<EndpointParts>): Promise<Answer> {
  const { parts, request, target } = call
  if (request.subresource === 'log') {
    const pod = decodeObject(parts.registry.get(target, request.name).bytes)
    // A pod that is not placed yet has empty logs. This is no error: `kubectl logs -f` asks again.
    if (memberOf(pod) === undefined) {
      requireContainer(pod, call)
      return { kind: 'bytes', status: 204, headers: {}, body: new Uint8Array() }
    }
  }
  if (parts.podConnector === undefined) throw noPodConnector()
  const response = await parts.podConnector.request(await podConnection(call))
  const { 'content-type': type = 'text/plain' } = response.headers
  return { kind: 'stream', status: response.status, headers: { 'content-type': type }, chunks: response.body }
}

/** What the connector needs. Throws 404 for a pod that does not exist, 400 for a pod that is not placed yet. */
export async function podConnection(call: EndpointCall): Promise<PodConnection> {
  const { request, exchange, cluster, parts, target } = call
  requireSubresource(call)
  const pod = decodeObject(parts.registry.get(target, request.name).bytes)
  if (memberOf(pod) === undefined) {
    if (request.subresource !== 'portforward') requireContainer(pod, call)
    throw badRequest(`pod ${request.name} does not have a host assigned`)
  }
  const { url, method, rawHeaders } = exchange.request
  const queryStart = url.indexOf('?')
  return {
    cluster,
    pod,
    subresource: request.subresource as Connectable,
    method,
    query: queryStart < 0 ? '' : url.slice(queryStart),
    rawHeaders,
    body: await exchange.request.body(),
    signal: exchange.signal,
  }
}

interface PodContainers {
  readonly spec?: Partial<Record<'containers' | 'initContainers' | 'ephemeralContainers', readonly { name: string }[]>>
}

/** Throws 400 if the pod has no such container, or if none is given and the pod has several, as kube-apiserver does. */
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
  return metadata.annotations?.[memberAnnotation]
}

export function noPodConnector(): Error {
  return serviceUnavailable('this server has no connection to member clusters')
}
