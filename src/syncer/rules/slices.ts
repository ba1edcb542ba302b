// Facts about EndpointSlices: which member a slice is of, which pods it names, and which of its endpoints are believed.
import { serviceSelects } from '#apimachinery/selector/index.ts'
import { memberLostAnnotation, syncerFieldManager } from '#crds/index.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import type { Scope } from '#syncer/context/scope.ts'
import { managedByLabel, serviceNameLabel } from '#syncer/transform/slice-labels.ts'
import { isShownFrom } from './entitlement.ts'

/** True for a slice that a syncer created for the pods of another member. */
export function isRemote(slice: CachedObject): boolean {
  return slice.metadata.labels?.[managedByLabel] === syncerFieldManager
}

/** The prefix of the name, in a member, of a slice that was copied from another member. */
export const remotePrefix = 'kcp-'

/** The upstream name of the slice of another member. */
export function remoteNameOf({ metadata: { name = '' } }: CachedObject): string {
  return name.startsWith(remotePrefix) ? name.slice(remotePrefix.length) : name
}

/** True for a slice of a member that is lost: its endpoints are not ready, though its pods may serve. */
export function isLost({ metadata }: CachedObject): boolean {
  return metadata.annotations?.[memberLostAnnotation] !== undefined
}

/** The number of its endpoints that are ready. */
export function readyEndpointsOf(slice: CachedObject): number {
  const endpoints = (slice['endpoints'] ?? []) as readonly { readonly conditions?: { readonly ready?: boolean } }[]
  return endpoints.filter(({ conditions }) => conditions?.ready !== false).length
}

export interface MemberEndpoint {
  readonly addresses?: readonly string[]
  readonly hostname?: string
  readonly targetRef?: { readonly kind?: string; readonly name?: string; readonly uid?: string }
}

/** Names of the pods that a slice names. */
export function podsIn(slice: CachedObject): string[] {
  if (isRemote(slice)) return []
  const endpoints = (slice['endpoints'] ?? []) as readonly MemberEndpoint[]
  return endpoints.flatMap(({ targetRef }) => (targetRef?.kind === 'Pod' && targetRef.name ? [targetRef.name] : []))
}

/**
 * The slice with the labels of its Service, and only with the endpoints of pods that upstream pods of this member show
 * and that the Service selects upstream.
 */
export function withBelievedEndpoints(scope: Scope, slice: CachedObject, service: CachedObject): CachedObject {
  const endpoints = (slice['endpoints'] ?? []) as readonly MemberEndpoint[]
  const believed = endpoints.filter((endpoint) => isBelieved(scope, endpoint, service))
  const { labels: own = {}, annotations = {} } = slice.metadata
  const kept = Object.entries(own).filter(([label]) => label === headlessLabel || label === serviceNameLabel)
  const labels = { ...service.metadata.labels, ...Object.fromEntries(kept) }
  const times = Object.entries(annotations).filter(([name]) => name.startsWith(ownPrefix))
  const metadata = { ...slice.metadata, labels, annotations: Object.fromEntries(times) }
  return { ...slice, metadata, endpoints: believed }
}

/** Besides the labels of the Service, a slice has this one. */
const headlessLabel = 'service.kubernetes.io/headless'
/** The prefix of annotations of the EndpointSlice controller. */
const ownPrefix = 'endpoints.kubernetes.io/'

function isBelieved(
  scope: Scope,
  { addresses = [], hostname, targetRef: { kind, name = '', uid } = {} }: MemberEndpoint,
  service: CachedObject,
): boolean {
  const pod = kind === 'Pod' ? scope.upstream('pods', name) : undefined
  if (pod === undefined || !isShownFrom(scope, pod, uid)) return false
  // The upstream Service and the upstream pod decide.
  if (!serviceSelects(service, pod.metadata.labels)) return false
  if (hostname !== undefined && hostname !== (pod['spec'] as { hostname?: string } | undefined)?.hostname) return false
  const live = scope.live('pods', name)
  const own = live?.metadata.uid === uid ? podAddresses(live) : []
  return addresses.every((address) => own.includes(address))
}

/** The addresses of a pod. */
export function podAddresses(pod: CachedObject | undefined): readonly string[] {
  const { podIP, podIPs } = (pod?.['status'] ?? {}) as { podIP?: string; podIPs?: readonly { readonly ip?: string }[] }
  const all = [podIP, ...(podIPs ?? []).map(({ ip }) => ip)]
  return all.filter((address) => address !== undefined)
}
