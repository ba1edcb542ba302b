// Copies for a member, made from upstream objects.
import { cloneJson, type ClusterId, type KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  downstreamNamespace,
  exportedNameOf,
  gatewayTargetAnnotation,
  hostnameFrom,
  isAnnotationForMembers,
  isAsAdopted,
  isForNames,
  isLocalAnnotation,
  locatorAnnotation,
  managedLabel,
  memberAnnotation,
  readyEndpointsAnnotation,
  serviceAddressFields,
  servingLabel,
  syncerFieldManager,
  type GatewayTarget,
  type Locator,
} from '#crds/index.ts'
import { externalNameDown } from './external-name.ts'
import { managedByLabel, serviceNameLabel } from './slice-labels.ts'

/** The logical cluster of an object. */
export interface OwnerCluster {
  readonly cluster: string
  readonly clusterId: ClusterId
  /** Prefixes of annotations that the member allows besides the default ones. */
  readonly annotationPrefixes?: readonly string[]
  /** The member, and the name that the namespace of the object has there, if it was adopted from this member. */
  readonly adoptedFrom?: { readonly member: string; readonly namespace: string }
}

/** Name, namespace, labels and annotations of a copy; nothing that the upstream server sets. */
export function copyMetadata(
  object: DeepReadonly<KubeObject>,
  { cluster, clusterId, annotationPrefixes, adoptedFrom }: OwnerCluster,
): KubeObject['metadata'] {
  const { name = '', namespace = '', uid = '', labels = {}, annotations = {} } = object.metadata
  const locator: Locator = { cluster, clusterId, namespace, name, uid }
  const kept = Object.entries(annotations).filter(
    ([annotation]) => !isLocalAnnotation(annotation) && isAnnotationForMembers(annotation, annotationPrefixes),
  )
  return {
    name,
    namespace: adoptedFrom?.namespace ?? downstreamNamespace(clusterId, namespace),
    labels: { ...labels, [managedLabel]: 'true' },
    annotations: { ...Object.fromEntries(kept), [locatorAnnotation]: JSON.stringify(locator) },
  }
}

/** Fields that the API server of the member sets, or that mean nothing in another cluster. */
const serverSetServiceFields = ['clusterIP', 'clusterIPs', 'ipFamilies'] as const

interface ServicePorts {
  readonly type?: string
  readonly loadBalancerClass?: string
  healthCheckNodePort?: number
  readonly ports?: readonly { readonly name?: string; readonly port?: number; nodePort?: number }[]
}

/**
 * A Service for a member. Its selector also requires that pods take traffic. It asks for the node ports that are shown
 * upstream. Fields of the present copy that cannot be changed stay as they are. The selector of an adopted Service stays
 * as it was until the tenant changes it or a workload of the namespace leaves the member (`isLeaving`).
 */
export function serviceDown(
  object: DeepReadonly<KubeObject>,
  owner: OwnerCluster,
  {
    copy: current,
    isLeaving = false,
  }: { readonly copy?: DeepReadonly<KubeObject> | undefined; readonly isLeaving?: boolean } = {},
): KubeObject {
  const spec = cloneJson(object['spec'] ?? {}) as Record<string, unknown> & {
    clusterIP?: string
    externalName?: string
    selector?: Record<string, string>
  }
  const headless = spec.clusterIP === 'None'
  for (const field of [...serverSetServiceFields, ...serviceAddressFields]) Reflect.deleteProperty(spec, field)
  if (headless) spec.clusterIP = 'None'
  if (spec.externalName) spec.externalName = externalNameDown(spec.externalName, owner.clusterId)
  keepFixed(spec, current?.['spec'] ?? {})
  const staysAsItIs = !isLeaving && isAsAdopted(object, owner.adoptedFrom?.member)
  if (spec.selector && Object.keys(spec.selector).length > 0 && !isForNames(object) && !staysAsItIs)
    spec.selector = { ...spec.selector, [servingLabel]: 'true' }
  return { apiVersion: object.apiVersion, kind: object.kind, metadata: copyMetadata(object, owner), spec }
}

/** The class of a load balancer, and the port of its health check, cannot be changed while the type stays. */
function keepFixed(spec: Record<string, unknown>, current: ServicePorts): void {
  if (current.type !== 'LoadBalancer' || spec['type'] !== 'LoadBalancer') return
  if (current.loadBalancerClass !== spec['loadBalancerClass']) {
    if (current.loadBalancerClass === undefined) delete spec['loadBalancerClass']
    else spec['loadBalancerClass'] = current.loadBalancerClass
  }
  if (current.healthCheckNodePort && spec['healthCheckNodePort'])
    spec['healthCheckNodePort'] = current.healthCheckNodePort
}

/** A Service without the node ports that the member has refused; undefined if it has refused something else. */
export function withoutRefusedPorts(copy: KubeObject, refusedFields: readonly string[]): KubeObject | undefined {
  const changed = cloneJson(copy)
  const spec = (changed['spec'] ?? {}) as ServicePorts
  const refused = new Set(refusedFields)
  const ports = (spec.ports ?? []).filter(
    ({ nodePort }, index) => nodePort !== undefined && refused.has(`spec.ports[${index}].nodePort`),
  )
  for (const port of ports) delete port.nodePort
  const isHealthRefused = spec.healthCheckNodePort !== undefined && refused.has('spec.healthCheckNodePort')
  if (isHealthRefused) delete spec.healthCheckNodePort
  return ports.length > 0 || isHealthRefused ? changed : undefined
}

const tokenType = 'kubernetes.io/service-account-token'
const tokenAnnotations = 'kubernetes.io/service-account.'

/**
 * ConfigMaps and Secrets with unchanged content. A Secret with a ServiceAccount token becomes type Opaque: the member's
 * controllers would replace the token by one for the member's API, or delete the Secret if it has no such
 * ServiceAccount.
 */
export function contentDown(object: DeepReadonly<KubeObject>, owner: OwnerCluster): KubeObject {
  const { metadata: _metadata, status: _status, ...content } = cloneJson(object) as KubeObject
  const metadata = copyMetadata(object, owner)
  if (object['type'] !== tokenType) return { ...content, metadata }
  const kept = Object.entries(metadata.annotations ?? {}).filter(([name]) => !name.startsWith(tokenAnnotations))
  return { ...content, type: 'Opaque', metadata: { ...metadata, annotations: Object.fromEntries(kept) } }
}

/** A ServiceAccount: its name and image pull Secrets. The member issues the tokens of pods, with our audience. */
export function serviceAccountDown(object: DeepReadonly<KubeObject>, owner: OwnerCluster): KubeObject {
  const pullSecrets = object['imagePullSecrets']
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: copyMetadata(object, owner),
    ...(pullSecrets !== undefined && { imagePullSecrets: cloneJson(pullSecrets) }),
  }
}

interface Endpoint {
  addresses: string[]
  conditions?: { ready?: boolean }
  hostname?: string
  nodeName?: string
  targetRef?: unknown
  zone?: string
  hints?: unknown
  deprecatedTopology?: unknown
}

/** How pods in this member reach the ready pods of another member's slice, through the gateway in this member. */
export interface GatewayWay {
  readonly target: GatewayTarget
  /** The addresses of the gateway in this member. */
  readonly addresses: readonly string[]
  readonly portFor: (portName: string) => number | undefined
  /** The slice as it is here; undefined: there is none yet. */
  readonly live: DeepReadonly<KubeObject> | undefined
}

/** The EndpointSlice of another member, for this one, with the gateway's addresses. It has only the TCP ports. */
export function remoteSliceThroughGateway(
  object: DeepReadonly<KubeObject>,
  owner: OwnerCluster,
  name: string,
  { target, addresses, portFor, live }: GatewayWay,
): KubeObject {
  const slice = remoteSliceDown(object, owner, name)
  const { endpoints = [], ports = [] } = slice as {
    endpoints?: readonly object[]
    ports?: readonly { readonly name?: string; readonly port?: number | null; readonly protocol?: string }[]
  }
  const passed = ports.flatMap(({ protocol = 'TCP', name: portName = '', ...rest }) => {
    const port = protocol === 'TCP' && rest.port ? portFor(portName) : undefined
    return port === undefined ? [] : [{ ...rest, name: portName, protocol, port }]
  })
  const annotations = {
    ...slice.metadata.annotations,
    [gatewayTargetAnnotation]: JSON.stringify(target),
    [readyEndpointsAnnotation]: String(endpoints.length),
  }
  return {
    ...slice,
    metadata: { ...slice.metadata, annotations },
    // A slice without endpoints has no ports. Its present ports stay, so the gateway goes on to listen: the nodes of
    // this member learn later that the endpoints are gone.
    ports: passed.length === 0 && endpoints.length === 0 ? (live?.['ports'] ?? []) : passed,
    endpoints:
      endpoints.length === 0 || passed.length === 0
        ? []
        : addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
  }
}

/**
 * The EndpointSlice of another member, for this one: ready addresses only, because its pods and nodes do not exist
 * here. It has no hostnames of pods if its Service `isExported`: in the member itself, that Service resolves
 * `web-0.MEMBER.db` of the cluster set, which must not lead to a pod of another member.
 */
export function remoteSliceDown(
  object: DeepReadonly<KubeObject>,
  owner: OwnerCluster,
  name: string,
  { isExported = false }: { readonly isExported?: boolean } = {},
): KubeObject {
  const slice = cloneJson(object) as KubeObject & {
    endpoints?: Endpoint[] | null
    ports?: unknown
    addressType?: unknown
  }
  const service = slice.metadata.labels?.[serviceNameLabel] ?? ''
  const metadata = copyMetadata(object, owner)
  const from = slice.metadata.annotations?.[memberAnnotation] ?? ''
  // In a slice of the second Service of an exported one, pods of several members may have the same hostname.
  const isSecond = exportedNameOf(slice) !== undefined
  const nameOf = (hostname: string): string | undefined =>
    isSecond ? hostnameFrom(hostname, from) : isExported ? undefined : hostname
  return {
    apiVersion: slice.apiVersion,
    kind: slice.kind,
    metadata: {
      ...metadata,
      name,
      labels: {
        [serviceNameLabel]: service,
        [managedByLabel]: syncerFieldManager,
        [managedLabel]: 'true',
        [memberAnnotation]: from,
      },
    },
    addressType: slice.addressType,
    ports: slice.ports ?? [],
    endpoints: (slice.endpoints ?? [])
      .filter(({ conditions }) => conditions?.ready !== false)
      .map(({ addresses, hostname }) => {
        const own = hostname === undefined ? undefined : nameOf(hostname)
        return { addresses, conditions: { ready: true }, ...(own !== undefined && { hostname: own }) }
      }),
  }
}
