// Objects on their way into a member: what is left of an upstream object when a member is to have a copy.
import { cloneJson, type ClusterId, type KubeObject } from '../../apimachinery/meta/index.ts'
import type { DeepReadonly } from '../../client/index.ts'
import {
  contentHash,
  downstreamNamespace,
  locatorAnnotation,
  managedLabel,
  memberAnnotation,
  servingLabel,
  type Locator,
} from '../../crds/index.ts'
import { podTemplateDown, type PodContext } from './pod-template.ts'
import type { PodTemplate } from './pod-types.ts'

/**
 * On downstream workloads: the content hash of the upstream spec they were made from. Not its generation: that also counts
 * changes of annotations, our own among them.
 */
export const sourceAnnotation = 'kcp.dev/source'

export interface Place {
  readonly cluster: string
  readonly clusterId: ClusterId
}

/** Annotations that say something only where they were written. */
const ownAnnotations = [
  'kcp.dev/',
  'status.kcp.dev/',
  'kubectl.kubernetes.io/last-applied-configuration',
  'deployment.kubernetes.io/',
]

/** True for an annotation that stays upstream. */
export function staysUpstream(annotation: string): boolean {
  return ownAnnotations.some((prefix) => annotation.startsWith(prefix))
}

/** Name, namespace, labels and annotations of the copy; nothing that the upstream server owns. */
export function copyMetadata(object: DeepReadonly<KubeObject>, { cluster, clusterId }: Place): KubeObject['metadata'] {
  const { name = '', namespace = '', uid = '', labels = {}, annotations = {} } = object.metadata
  const locator: Locator = { cluster, clusterId, namespace, name, uid }
  const kept = Object.entries(annotations).filter(([annotation]) => !staysUpstream(annotation))
  return {
    name,
    namespace: downstreamNamespace(clusterId, namespace),
    labels: { ...labels, [managedLabel]: 'true' },
    annotations: { ...Object.fromEntries(kept), [locatorAnnotation]: JSON.stringify(locator) },
  }
}

interface DeploymentSpec {
  template: PodTemplate
  [field: string]: unknown
}

/** A Deployment for a member. */
export function deploymentDown(object: DeepReadonly<KubeObject>, place: Place, context: PodContext): KubeObject {
  const spec = cloneJson(object['spec']) as DeploymentSpec
  const metadata = copyMetadata(object, place)
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    metadata: {
      ...metadata,
      annotations: { ...metadata.annotations, [sourceAnnotation]: contentHash(object['spec']) },
    },
    spec: { ...spec, template: podTemplateDown(spec.template, context) },
  }
}

/** Given by the member's own API server, or meaningless in another cluster. */
const serviceFieldsOfAServer = [
  'clusterIP',
  'clusterIPs',
  'healthCheckNodePort',
  'ipFamilies',
  'loadBalancerClass',
] as const
/** Every node of the member would send what goes to these addresses to the tenant's pods, whoever's they are. */
const addressesOfOthers = 'externalIPs'

/** A Service for a member: its selector also asks for pods that take traffic. */
export function serviceDown(object: DeepReadonly<KubeObject>, place: Place): KubeObject {
  const spec = cloneJson(object['spec'] ?? {}) as Record<string, unknown> & {
    clusterIP?: string
    selector?: Record<string, string>
    ports?: { nodePort?: number }[]
  }
  const headless = spec.clusterIP === 'None'
  for (const field of [...serviceFieldsOfAServer, addressesOfOthers]) Reflect.deleteProperty(spec, field)
  if (headless) spec.clusterIP = 'None'
  for (const port of spec.ports ?? []) delete port.nodePort
  if (spec.selector && Object.keys(spec.selector).length > 0)
    spec.selector = { ...spec.selector, [servingLabel]: 'true' }
  return { apiVersion: object.apiVersion, kind: object.kind, metadata: copyMetadata(object, place), spec }
}

const tokenType = 'kubernetes.io/service-account-token'
const tokenAnnotations = 'kubernetes.io/service-account.'

/**
 * ConfigMaps and Secrets: their content as it is. A Secret with a token holds one of the logical cluster. It goes down as
 * ordinary bytes: the member would write a token of its own into one of that type, for its own API, or delete it, again
 * and again, where it knows no such ServiceAccount.
 */
export function contentDown(object: DeepReadonly<KubeObject>, place: Place): KubeObject {
  const { metadata: _metadata, status: _status, ...content } = cloneJson(object) as KubeObject
  const metadata = copyMetadata(object, place)
  if (object['type'] !== tokenType) return { ...content, metadata }
  const kept = Object.entries(metadata.annotations ?? {}).filter(([name]) => !name.startsWith(tokenAnnotations))
  return { ...content, type: 'Opaque', metadata: { ...metadata, annotations: Object.fromEntries(kept) } }
}

/** A ServiceAccount: its name and its pull secrets. Tokens are the member's own, with our audience. */
export function serviceAccountDown(object: DeepReadonly<KubeObject>, place: Place): KubeObject {
  const pullSecrets = object['imagePullSecrets']
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: copyMetadata(object, place),
    ...(pullSecrets !== undefined && { imagePullSecrets: cloneJson(pullSecrets) }),
  }
}

interface Endpoint {
  addresses: string[]
  conditions?: { ready?: boolean }
  nodeName?: string
  targetRef?: unknown
  zone?: string
  hints?: unknown
  deprecatedTopology?: unknown
}

/** The EndpointSlice of another member, for this one: ready endpoints only, of pods and nodes that don't exist here. */
export function remoteSliceDown(object: DeepReadonly<KubeObject>, place: Place, name: string): KubeObject {
  const slice = cloneJson(object) as KubeObject & {
    endpoints?: Endpoint[] | null
    ports?: unknown
    addressType?: unknown
  }
  const service = slice.metadata.labels?.['kubernetes.io/service-name'] ?? ''
  const metadata = copyMetadata(object, place)
  const from = slice.metadata.annotations?.[memberAnnotation] ?? ''
  return {
    apiVersion: slice.apiVersion,
    kind: slice.kind,
    metadata: {
      ...metadata,
      name,
      labels: {
        'kubernetes.io/service-name': service,
        'endpointslice.kubernetes.io/managed-by': 'kcp-syncer',
        [managedLabel]: 'true',
        [memberAnnotation]: from,
      },
    },
    addressType: slice.addressType,
    ports: slice.ports ?? [],
    endpoints: (slice.endpoints ?? [])
      .filter(({ conditions }) => conditions?.ready !== false)
      .map(({ addresses }) => ({ addresses, conditions: { ready: true } })),
  }
}
