// Judges from the objects alone whether a Service can serve an APIService. Reasons and messages are kube-aggregator's.
import { isJsonObject } from '#apimachinery/meta/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { RemoteServer } from './remote-api-service.ts'

/** The condition Available without its time. */
export interface Verdict {
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

interface Slice {
  readonly endpoints?: readonly { readonly conditions?: { readonly ready?: boolean | null } }[] | null
  readonly ports?: readonly { readonly name?: string; readonly port?: number | null }[] | null
}

/** The reason why the Service cannot serve; undefined if only a request to it can tell. */
export function unavailableService(objects: ClusterObjects, { service }: RemoteServer): Verdict | undefined {
  const { namespace, name, port } = service
  const at = `service/${name} in ${goQuote(namespace)}`
  const entry = objects.get('services', namespace, name)
  if (entry === undefined) return failed('ServiceNotFound', `${at} is not present`)
  const { spec } = decodeObject(entry.bytes)
  const { type = 'ClusterIP', ports } = isJsonObject(spec) ? spec : {}
  if (type !== 'ClusterIP') return undefined
  const row = Array.isArray(ports) ? ports.find((one) => isJsonObject(one) && one['port'] === port) : undefined
  if (!isJsonObject(row)) return failed('ServicePortError', `${at} is not listening on port ${port}`)
  const portName = typeof row['name'] === 'string' ? row['name'] : ''
  const slices = slicesOf(objects, namespace, name)
  if (slices.length === 0)
    return failed('EndpointsNotFound', `cannot find endpointslices for service/${name} in ${goQuote(namespace)}`)
  if (slices.some((slice) => isReady(slice, portName))) return undefined
  return failed('MissingEndpoints', `endpointslices for ${at} have no addresses with port name ${goQuote(portName)}`)
}

function failed(reason: string, message: string): Verdict {
  return { status: 'False', reason, message }
}

function slicesOf(objects: ClusterObjects, namespace: string, service: string): Slice[] {
  return objects
    .list({ resource: 'endpointslices.discovery.k8s.io', namespace })
    .filter(({ facts }) => facts.labels?.['kubernetes.io/service-name'] === service)
    .map(({ bytes }) => decodeObject(bytes) as Slice)
}

function isReady({ endpoints, ports }: Slice, portName: string): boolean {
  const ready = (endpoints ?? []).some(({ conditions }) => conditions?.ready !== false)
  return ready && (ports ?? []).some(({ name = '', port }) => name === portName && port != null)
}
