// Resolves a Service of a logical cluster to a ready endpoint, as kube-apiserver does with aggregator routing.
import type { Duplex } from 'node:stream'
import { isJsonObject, type ClusterId, type JsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import { memberAnnotation } from '#crds/index.ts'
import { EgressError, type Tunnel } from '#network/egress/index.ts'
import type { ClusterObjects, WatchCache } from '#store/watch-cache/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ServiceReference, ServiceResolver } from './service-resolver.ts'

interface Endpoint {
  readonly addresses?: readonly string[]
  readonly conditions?: { readonly ready?: boolean | null }
  readonly targetRef?: { readonly kind?: string; readonly name?: string; readonly uid?: string }
}

interface Candidate {
  readonly endpoint: Endpoint
  readonly port: number
  /**
   * True: a member wrote the endpoint, so the connection goes through that member to the pod that the endpoint names.
   */
  readonly inMember: boolean
}

/** Connects to a port of a pod of this logical cluster, through its member. Rejects with StatusError. */
export type ConnectToPod = (
  cluster: ClusterId,
  to: { readonly pod: KubeObject; readonly port: number },
  signal: AbortSignal,
) => Promise<Duplex>

interface Dependencies {
  readonly watchCache: Pick<WatchCache, 'cluster'>
  readonly connectToPod: ConnectToPod
  /** Returns a number from 0 up to 1, which chooses among the ready endpoints. Default: Math.random. */
  readonly random?: () => number
}

export function createServiceResolver({
  watchCache,
  connectToPod,
  random = Math.random,
}: Dependencies): ServiceResolver {
  return async (cluster, service, signal) => {
    const objects = await watchCache.cluster(cluster, { signal })
    const found = requireService(objects, service)
    if (found.externalName !== undefined) throw new EgressError(`service type "ExternalName" is not supported`)
    const candidates = readyEndpoints(objects, service, found.portName)
    const chosen = candidates[Math.floor(random() * candidates.length)]
    const [address] = chosen?.endpoint.addresses ?? []
    if (chosen === undefined || address === undefined)
      throw new EgressError(`no endpoints available for service ${goQuote(service.name)}`)
    const { port, endpoint, inMember } = chosen
    if (!inMember) return { dial: { address, port } }
    const pod = podOf(objects, service.namespace, endpoint)
    if (pod === undefined) throw new EgressError(`no endpoints available for service ${goQuote(service.name)}`)
    return { tunnel: tunnelTo(pod, port, { cluster, connectToPod }) }
  }
}

/**
 * The ready endpoints of a Service that are pods in members, with the target port of the Service's port of this name.
 * Without `portName`: of any port.
 */
export function podsOfService(
  objects: ClusterObjects,
  service: Pick<ServiceReference, 'namespace' | 'name'>,
  portName?: string,
): { readonly pod: KubeObject; readonly port: number }[] {
  return readyEndpoints(objects, service, portName)
    .filter(({ inMember }) => inMember)
    .flatMap(({ endpoint, port }) => {
      const pod = podOf(objects, service.namespace, endpoint)
      return pod === undefined ? [] : [{ pod, port }]
    })
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
  portName: string | undefined,
): Candidate[] {
  return objects.list({ resource: 'endpointslices.discovery.k8s.io', namespace }).flatMap(({ bytes, facts }) => {
    if (facts.labels?.['kubernetes.io/service-name'] !== name) return []
    const slice = decodeObject(bytes) as KubeObject & {
      endpoints?: readonly Endpoint[] | null
      ports?: readonly { name?: string; port?: number | null }[] | null
    }
    const port = slice.ports?.find((row) => portName === undefined || (row.name ?? '') === portName)?.port
    if (port == null) return []
    // Only members write this annotation, and only they change endpoints of slices that have it.
    const inMember = slice.metadata.annotations?.[memberAnnotation] !== undefined
    const ready = (slice.endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false)
    return ready.map((endpoint) => ({ endpoint, port, inMember }))
  })
}

/** The pod behind an endpoint in a member. `connectToPod` checks that the pod in the member has this uid. */
function podOf(objects: ClusterObjects, namespace: string, { targetRef }: Endpoint): KubeObject | undefined {
  const entry = targetRef?.kind === 'Pod' ? objects.get('pods', namespace, targetRef.name ?? '') : undefined
  return entry && decodeObject(entry.bytes)
}

function tunnelTo(
  pod: KubeObject,
  port: number,
  { cluster, connectToPod }: { cluster: ClusterId; connectToPod: ConnectToPod },
): Tunnel {
  const { name = '', uid = '' } = pod.metadata
  return {
    key: `${cluster}/${uid}`,
    port,
    async open(signal) {
      try {
        return await connectToPod(cluster, { pod, port }, signal)
      } catch (error) {
        if (signal.aborted) throw error
        throw new EgressError(`dialing pod ${goQuote(name)}: ${(error as Error).message}`, { cause: error })
      }
    },
  }
}
