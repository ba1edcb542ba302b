// From a Service of a logical cluster to an endpoint that is ready, as kube-apiserver does with aggregator routing.
import { isJsonObject, type JsonObject, type KubeObject } from '../../apimachinery/meta/index.ts'
import { goQuote } from '../../apimachinery/text/index.ts'
import { EgressError } from '../../egress/index.ts'
import type { ClusterObjects, Hub } from '../../store/hub/index.ts'
import { decodeObject } from '../resources/object-bytes.ts'
import type { ServiceReference, ServiceResolver } from './service-resolver.ts'

interface Endpoint {
  readonly addresses?: readonly string[]
  readonly conditions?: { readonly ready?: boolean | null }
}

interface Candidate {
  readonly endpoint: Endpoint
  readonly port: number
}

/** `random` chooses among the ready endpoints: a number from 0 up to 1. */
export function createServiceResolver({
  hub,
  random = Math.random,
}: {
  hub: Pick<Hub, 'cluster'>
  random?: () => number
}): ServiceResolver {
  return async (cluster, service, signal) => {
    const objects = await hub.cluster(cluster, { signal })
    const found = requireService(objects, service)
    if (found.externalName !== undefined) throw new EgressError(`service type "ExternalName" is not supported`)
    const candidates = readyEndpoints(objects, service, found.portName)
    const chosen = candidates[Math.floor(random() * candidates.length)]
    const [address] = chosen?.endpoint.addresses ?? []
    if (chosen === undefined || address === undefined)
      throw new EgressError(`no endpoints available for service ${goQuote(service.name)}`)
    return { dial: { address, port: chosen.port } }
  }
}

function requireService(
  objects: ClusterObjects,
  { namespace, name, port }: Omit<ServiceReference, 'path'>,
): { readonly portName: string; readonly externalName?: true } {
  const entry = objects.get('services', namespace, name)
  if (entry === undefined) throw new EgressError(`service ${goQuote(name)} not found`)
  const { spec } = decodeObject(entry.bytes)
  const { type, ports } = isJsonObject(spec) ? spec : ({} as JsonObject)
  if (type === 'ExternalName') return { portName: '', externalName: true }
  const one = Array.isArray(ports) ? ports.find((row) => isJsonObject(row) && row['port'] === port) : undefined
  if (!isJsonObject(one)) throw new EgressError(`no service port ${port} found for service ${goQuote(name)}`)
  return { portName: typeof one['name'] === 'string' ? one['name'] : '' }
}

function readyEndpoints(
  objects: ClusterObjects,
  { namespace, name }: Pick<ServiceReference, 'namespace' | 'name'>,
  portName: string,
): Candidate[] {
  return objects.list({ resource: 'endpointslices.discovery.k8s.io', namespace }).flatMap(({ bytes, facts }) => {
    if (facts.labels?.['kubernetes.io/service-name'] !== name) return []
    const slice = decodeObject(bytes) as KubeObject & {
      endpoints?: readonly Endpoint[] | null
      ports?: readonly { name?: string; port?: number | null }[] | null
    }
    const port = slice.ports?.find((row) => (row.name ?? '') === portName)?.port
    if (port == null) return []
    const ready = (slice.endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false)
    return ready.map((endpoint) => ({ endpoint, port }))
  })
}
