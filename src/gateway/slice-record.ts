// The gateway's record of an EndpointSlice: a slice of another member names the ports to listen on, a slice of this
// member the addresses of a Service's pods.
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import {
  gatewayTargetAnnotation,
  memberAnnotation,
  parseAnnotation,
  parseDownstreamNamespace,
  syncerFieldManager,
} from '#crds/index.ts'

const serviceNameLabel = 'kubernetes.io/service-name'
const managedByLabel = 'endpointslice.kubernetes.io/managed-by'
/** The controller of Kubernetes that writes the pods of Services; slices of other writers may contain any address. */
const endpointSliceController = 'endpointslice-controller.k8s.io'

export interface SlicePort {
  readonly name: string
  readonly port: number
}

export interface SliceEndpoint {
  readonly address: string
  /** The pod, `NAMESPACE/NAME`; empty if the slice does not name it. */
  readonly pod: string
  readonly isReady: boolean
}

/** A slice of another member's pods; this gateway listens on its ports. */
export interface RemoteSlice {
  readonly type: 'remote'
  /** The namespace of the slice. */
  readonly namespace: string
  readonly member: string
  readonly clusterId: string
  /** The usual name of the namespace, by which the other gateway knows it. */
  readonly targetNamespace: string
  readonly service: string
  readonly ports: readonly SlicePort[]
}

/** A slice of this member's pods that take connections. Pods that are not ready are ending, and serve until then. */
export interface LocalSlice {
  readonly type: 'local'
  readonly namespace: string
  readonly service: string
  readonly ports: readonly SlicePort[]
  readonly endpoints: readonly SliceEndpoint[]
}

export type SliceRecord = RemoteSlice | LocalSlice

/** The record of a slice; undefined if it does not concern the gateway. */
export function sliceRecord(slice: KubeObject): SliceRecord | undefined {
  const { namespace = '', labels = {} } = slice.metadata
  const ports = portsOf(slice)
  if (labels[managedByLabel] === syncerFieldManager) {
    const target = parseAnnotation(slice, gatewayTargetAnnotation)
    const member = labels[memberAnnotation]
    const { namespace: targetNamespace, service } = target
    if (member === undefined || typeof targetNamespace !== 'string') return undefined
    const clusterId = parseDownstreamNamespace(targetNamespace)?.clusterId
    if (clusterId === undefined || typeof service !== 'string' || service === '') return undefined
    return { type: 'remote', namespace, member, clusterId, targetNamespace, service, ports }
  }
  const service = labels[serviceNameLabel]
  if (labels[managedByLabel] !== endpointSliceController || service === undefined) return undefined
  return { type: 'local', namespace, service, ports, endpoints: endpointsOf(slice, namespace) }
}

/**
 * The record of a slice in a namespace with this usual name; undefined if the slice leads into another namespace: that
 * would lead a tenant to the Services of another one.
 */
export function sliceIn(record: SliceRecord, usual: string): SliceRecord | undefined {
  return record.type === 'local' || record.targetNamespace === usual ? record : undefined
}

function portsOf(slice: KubeObject): SlicePort[] {
  return listOf(slice['ports']).flatMap(({ name, port, protocol }) => {
    if (typeof port !== 'number' || (protocol !== undefined && protocol !== 'TCP')) return []
    return [{ name: typeof name === 'string' ? name : '', port }]
  })
}

function endpointsOf(slice: KubeObject, namespace: string): SliceEndpoint[] {
  return listOf(slice['endpoints']).flatMap(({ addresses, conditions, targetRef }) => {
    const address: unknown = Array.isArray(addresses) ? addresses[0] : undefined
    if (typeof address !== 'string') return []
    const { ready, serving } = isJsonObject(conditions) ? conditions : {}
    // As in kube-proxy, an absent condition counts as true.
    const isReady = ready !== false
    if (!isReady && serving !== true) return []
    const name = isJsonObject(targetRef) && typeof targetRef['name'] === 'string' ? targetRef['name'] : undefined
    return [{ address, pod: name === undefined ? '' : `${namespace}/${name}`, isReady }]
  })
}

function listOf(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? (value as unknown[]).filter(isJsonObject) : []
}
