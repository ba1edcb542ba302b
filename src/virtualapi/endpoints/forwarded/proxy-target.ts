// The pod and port of a proxy request to `pods/[SCHEME:]NAME[:PORT]/proxy` or `services/[SCHEME:]NAME[:PORT]/proxy`.
import { isJsonObject, type JsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { badRequest, forbidden, notFound, statusError, type StatusError } from '#apimachinery/status/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import { memberAnnotation } from '#crds/index.ts'
import { podsOfService } from '#virtualapi/outbound/calls/resolve-service.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'

export interface ProxyTarget {
  readonly scheme: 'http' | 'https'
  readonly pod: KubeObject
  readonly port: number
}

/**
 * The pod and port of the request. Throws 400 and 404 like kube-apiserver, 503 if no pod in a member is ready, and 403
 * for nodes: the nodes of members do not belong to the tenant.
 */
export function proxyTarget(call: EndpointCall): ProxyTarget {
  const { request, definition } = call
  if (request.resource === 'nodes')
    throw forbidden(definition.info, request.name, 'nodes of member clusters are not reached through a logical cluster')
  const what = request.resource === 'pods' ? 'pod' : 'service'
  const parsed = parseName(request.name)
  if (parsed === undefined) throw badRequest(`invalid ${what} request ${goQuote(request.name)}`)
  return what === 'pod' ? podTarget(call, parsed) : serviceTarget(call, parsed)
}

interface ProxiedName {
  readonly scheme: 'http' | 'https'
  readonly name: string
  readonly port: string
}

/** `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`, where the port may be empty. */
function parseName(text: string): ProxiedName | undefined {
  const parts = text.split(':')
  const [scheme, name = '', port = ''] = parts.length === 3 ? parts : ['', ...parts]
  if (parts.length > 3 || name === '' || !['', 'http', 'https'].includes(scheme ?? '')) return undefined
  return { scheme: scheme === 'https' ? 'https' : 'http', name, port }
}

function podTarget(
  { cluster, objects, request, definition }: EndpointCall,
  { scheme, name, port }: ProxiedName,
): ProxyTarget {
  const entry = objects.get('pods', request.namespace, name)
  if (entry === undefined) throw notFound(definition.info, name)
  const pod = decodeObject(entry.bytes)
  // A plain cluster runs its pods itself.
  const isRun = cluster.isPlain === true || pod.metadata.annotations?.[memberAnnotation] !== undefined
  if (!isRun) throw badRequest('address not allowed')
  const number = port === '' ? (firstPort(pod) ?? (scheme === 'https' ? 443 : 80)) : Number(port)
  if (!Number.isInteger(number) || number < 1 || number > 65535)
    throw badRequest(`invalid pod request ${goQuote(request.name)}`)
  return { scheme, pod, port: number }
}

function firstPort(pod: KubeObject): number | undefined {
  const { containers = [] } = (pod['spec'] ?? {}) as { containers?: readonly { ports?: { containerPort: number }[] }[] }
  return containers.find(({ ports = [] }) => ports.length > 0)?.ports?.[0]?.containerPort
}

function serviceTarget({ objects, request }: EndpointCall, { scheme, name, port }: ProxiedName): ProxyTarget {
  const { namespace } = request
  const entry = objects.get('services', namespace, name)
  const isNumber = /^[+-]?\d+$/.test(port)
  if (entry === undefined) throw notFound({ group: '', resource: 'services' }, name)
  const portName = isNumber ? nameOfPort(decodeObject(entry.bytes), Number(port)) : port
  const ready = podsOfService(objects, { namespace, name }, portName)
  const chosen = ready[Math.floor(Math.random() * ready.length)]
  if (chosen !== undefined) return { scheme, ...chosen }
  const named = podsOfService(objects, { namespace, name }).length === 0 ? name : request.name
  throw unreachable(`no endpoints available for service ${goQuote(named)}`)
}

/**
 * The name of a Service port that is given by its number, since endpoints have ports by name. Throws 503 if the Service
 * has no such port.
 */
function nameOfPort({ metadata, spec }: KubeObject, number: number): string {
  const { ports } = isJsonObject(spec) ? spec : ({} as JsonObject)
  const one = Array.isArray(ports) ? ports.find((row) => isJsonObject(row) && row['port'] === number) : undefined
  if (!isJsonObject(one))
    throw unreachable(`no service port ${number} found for service ${goQuote(metadata.name ?? '')}`)
  return typeof one['name'] === 'string' ? one['name'] : ''
}

/** As kube-apiserver without Retry-After, for which kubectl would ask ten times, a second apart. */
function unreachable(message: string): StatusError {
  return statusError(503, 'ServiceUnavailable', message)
}
