// Logs, exec, attach and port-forward of a pod. This server finds the pod; the API server of its member cluster answers
// the request.
import { isDeepStrictEqual } from 'node:util'
import type { GroupVersionKind, KubeObject } from '#apimachinery/meta/index.ts'
import { badRequest } from '#apimachinery/status/index.ts'
import { memberAnnotation } from '#crds/index.ts'
import { isTrue } from '#virtualapi/request/parse-request.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import { noPodConnector, type PodConnection } from '#virtualapi/outbound/members/pod-connector.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import { requireSubresource, type EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import { requireLogOptions } from './log-options.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'

const connectable = ['log', 'exec', 'attach', 'portforward'] as const
type Connectable = (typeof connectable)[number]

/** True for subresources that the member cluster of the pod answers. */
export function isConnectSubresource(resource: string, group: string, subresource: string): boolean {
  return group === '' && resource === 'pods' && (connectable as readonly string[]).includes(subresource)
}

/**
 * Answers logs, and exec, attach and port-forward requests without an upgrade, with the response of the member cluster.
 */
export async function connectPod(call: EndpointCall<EndpointDependencies>): Promise<ApiResponse> {
  const { dependencies, request, target } = call
  if (request.subresource === 'log') {
    const pod = decodeObject(dependencies.registry.get(target, request.name).bytes)
    requireLogOptions(call.query, request.name)
    // A pod that is not placed yet has empty logs. This is no error: `kubectl logs -f` asks again.
    if (!isPlaced(pod, call)) {
      requireContainer(pod, call)
      return { kind: 'bytes', status: 204, headers: {}, body: new Uint8Array() }
    }
  }
  if (dependencies.podConnector === undefined) throw noPodConnector()
  const response = await dependencies.podConnector.request(await podConnection(call))
  const { 'content-type': type = 'text/plain' } = response.headers
  return { kind: 'stream', status: response.status, headers: { 'content-type': type }, chunks: response.body }
}

/**
 * The request for the pod connector. Rejects with 404 for a pod that does not exist, and with 400 for a pod that is not
 * placed yet.
 */
export async function podConnection(call: EndpointCall): Promise<PodConnection> {
  const { request, exchange, cluster, dependencies, target } = call
  requireSubresource(call)
  const query = await admittedQuery(call)
  const pod = decodeObject(dependencies.registry.get(target, request.name).bytes)
  if (!isPlaced(pod, call)) {
    if (request.subresource !== 'portforward') requireContainer(pod, call)
    throw badRequest(`pod ${request.name} does not have a host assigned`)
  }
  const { method, rawHeaders } = exchange.request
  return {
    cluster,
    pod,
    subresource: request.subresource as Connectable,
    method,
    query,
    rawHeaders,
    body: await exchange.request.body(),
    signal: exchange.signal,
  }
}

/**
 * The query with its leading `?`, as the webhooks leave it; empty if there is none. Webhooks are not called for logs,
 * because reading logs is a GET.
 */
async function admittedQuery({ exchange, request, query, dependencies, target }: EndpointCall): Promise<string> {
  const { url } = exchange.request
  const queryStart = url.indexOf('?')
  const asked = queryStart < 0 ? '' : url.slice(queryStart)
  const { subresource, name } = request
  if (subresource === 'log') return asked
  const kind = connectKinds[subresource] ?? { group: '', version: 'v1', kind: '' }
  const object = connectOptions(kind.kind, query)
  const before = structuredClone(object)
  await dependencies.registry.admitPart(target, { operation: 'CONNECT', subresource, name, kind }, object)
  return isDeepStrictEqual(object, before) ? asked : queryOf(object)
}

const connectKinds: Readonly<Record<string, GroupVersionKind>> = {
  exec: { group: '', version: 'v1', kind: 'PodExecOptions' },
  attach: { group: '', version: 'v1', kind: 'PodAttachOptions' },
  portforward: { group: '', version: 'v1', kind: 'PodPortForwardOptions' },
}

/** The options of the query as an object of their kind. As in kube-apiserver, it has no metadata. */
function connectOptions(kind: string, query: URLSearchParams): KubeObject {
  const flags = ['stdin', 'stdout', 'stderr', 'tty'].filter((name) => isTrue(query.get(name) ?? 'false'))
  const container = query.get('container') ?? ''
  const ports = kind === 'PodPortForwardOptions' ? query.getAll('ports').map(portOf) : []
  const given = {
    kind,
    apiVersion: 'v1',
    ...Object.fromEntries(flags.map((name) => [name, true])),
    ...(container === '' ? {} : { container }),
    ...(kind === 'PodExecOptions' ? { command: query.has('command') ? query.getAll('command') : null } : {}),
    ...(ports.length > 0 ? { ports } : {}),
  }
  return given as unknown as KubeObject
}

/** The port as a number. Throws 400 with the messages of kube-apiserver, in which ports are numbers of 32 bits. */
function portOf(text: string): number {
  const wrong = (why: string): Error =>
    badRequest(`cannot convert to []int32: strconv.ParseUint: parsing ${JSON.stringify(text)}: ${why}`)
  if (!/^[0-9]+$/.test(text)) throw wrong('invalid syntax')
  if (Number(text) > 65_535) throw wrong('value out of range')
  return Number(text)
}

function queryOf(options: KubeObject): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(options)) {
    if (['kind', 'apiVersion', 'metadata'].includes(name)) continue
    for (const one of [value].flat())
      if (one !== null) query.append(name, typeof one === 'string' ? one : JSON.stringify(one))
  }
  return query.size === 0 ? '' : `?${query.toString()}`
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

/** True if the pod is in a member; in a plain cluster, which runs its pods itself, if it has a node. */
function isPlaced({ metadata, spec }: KubeObject, { cluster }: Pick<EndpointCall, 'cluster'>): boolean {
  if (cluster.isPlain !== true) return metadata.annotations?.[memberAnnotation] !== undefined
  return ((spec ?? {}) as { nodeName?: string }).nodeName !== undefined
}
