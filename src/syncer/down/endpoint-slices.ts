// EndpointSlices: those that this member created are copied upstream; those of other members whose pods can be reached are
// copied into this member. Each Service gets a report of the ready endpoints this member knows: moves wait for it.
import { isIP } from 'node:net'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { serviceSelects } from '#apimachinery/selector/index.ts'
import { serviceUnavailable, tolerate } from '#apimachinery/status/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  clusterSetServiceName,
  exportedNameOf,
  crossesGateways,
  managedLabel,
  memberAnnotation,
  memberLostAnnotation,
  memberParts,
  reachabilityOf,
  reachableAnnotation,
  readyEndpointsAnnotation,
  syncerFieldManager,
  systemNamespace,
  type StatusRule,
} from '#crds/index.ts'
import { countOf } from '#syncer/rules/count.ts'
import { isSubset } from '#syncer/context/is-subset.ts'
import { ensureNamespace } from './ensure-namespace.ts'
import { isEndingNamespace } from '#syncer/rules/ending.ts'
import { copyHere, isShownFrom, speaksFor } from '#syncer/rules/entitlement.ts'
import { writeMemberStatus, writeStatus, writeSynced } from '#syncer/report/member-status.ts'
import { ingressBackends } from '#syncer/context/references.ts'
import { gvrs } from '#syncer/context/resources.ts'
import {
  downstreamObject,
  downstreamNamespaceOf,
  isOurs,
  locatorOf,
  ownerCluster,
  upstreamObject,
  type SyncContext,
  type Visit,
} from '#syncer/context/sync-context.ts'
import { remoteSliceDown, remoteSliceThroughGateway } from '#syncer/transform/down.ts'
import { managedByLabel, serviceNameLabel } from '#syncer/transform/slice-labels.ts'
import { endpointSliceUp } from '#syncer/transform/up.ts'

type CachedObject = DeepReadonly<KubeObject>

/** True for a slice that a syncer created for the pods of another member. */
export function isRemote(slice: CachedObject): boolean {
  return slice.metadata.labels?.[managedByLabel] === syncerFieldManager
}

/** Copies one slice of this member upstream, or deletes the copy. */
export async function visitSlice(context: SyncContext, visit: Visit, signal: AbortSignal): Promise<void> {
  const { cluster, namespace, name } = visit
  const memberNamespace = downstreamNamespaceOf(context, visit)
  if (memberNamespace === undefined || context.member.loss?.isLost()) return
  const live = downstreamObject(context, 'endpointslices', memberNamespace, name)
  const copy = sliceUpstream(context, visit)
  const serviceName = live?.metadata.labels?.[serviceNameLabel] ?? ''
  const service = upstreamObject(context, 'services', { cluster, namespace, name: serviceName })
  const client = context.upstream.client(cluster)
  if (live === undefined || service === undefined || !isOurs(context, memberNamespace)) {
    if (copy === undefined) return
    if (live === undefined) await confirmGoneInMember(context, visit, memberNamespace, signal)
    else if (service === undefined) await confirmServiceGone(context, visit, serviceName, signal)
    await removeCopy(context, visit, copy, signal)
    return
  }
  if (copy !== undefined) await confirmPodsGone(context, visit, copy, signal)
  const believed = withBelievedEndpoints(context, visit, live, service)
  // What has had endpoints stays: the next ones may come soon.
  if (copy === undefined && (isEmptySlice(believed) || hasTooMany(context, visit, serviceName))) return
  const reference = {
    apiVersion: 'v1',
    kind: 'Service',
    name: serviceName,
    uid: service.metadata.uid ?? '',
    controller: true,
    blockOwnerDeletion: true,
  }
  const { member } = context
  const desired = endpointSliceUp(believed, {
    name: copy?.metadata.name ?? freeName(context, visit),
    namespace,
    member: member.name,
    reachable: reachabilityOf(member.serviceNetwork),
    service: reference,
    hostnameOf: (pod) => hostnameOf(context, visit, pod, exportedNameOf(service)),
  })
  if (copy === undefined) await client.create(gvrs.endpointslices, desired, { signal })
  else if (!isSubset(copy, desired)) {
    const { resourceVersion, uid } = copy.metadata
    const metadata = { ...desired.metadata, ...(resourceVersion && { resourceVersion }), ...(uid && { uid }) }
    await client.update(gvrs.endpointslices, { ...desired, metadata }, { signal })
  }
}

interface MemberEndpoint {
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

/** With the labels of the Service, and the endpoints that are pods which the member has, by what is upstream, and which the Service selects there. */
function withBelievedEndpoints(
  context: SyncContext,
  visit: Visit,
  slice: CachedObject,
  service: CachedObject,
): CachedObject {
  const endpoints = (slice['endpoints'] ?? []) as readonly MemberEndpoint[]
  const believed = endpoints.filter((endpoint) => isBelieved(context, visit, endpoint, service))
  const { labels: own = {}, annotations = {} } = slice.metadata
  const kept = Object.entries(own).filter(([label]) => label === headlessLabel || label === serviceNameLabel)
  const labels = { ...service.metadata.labels, ...Object.fromEntries(kept) }
  const times = Object.entries(annotations).filter(([name]) => name.startsWith(ownPrefix))
  const metadata = { ...slice.metadata, labels, annotations: Object.fromEntries(times) }
  return { ...slice, metadata, endpoints: believed }
}

/** Besides the labels of the Service, a slice has this one. */
const headlessLabel = 'service.kubernetes.io/headless'
/** Of the annotations of the controller of EndpointSlices. */
const ownPrefix = 'endpoints.kubernetes.io/'

function isBelieved(
  context: SyncContext,
  { cluster, namespace }: Visit,
  { addresses = [], hostname, targetRef: { kind, name = '', uid } = {} }: MemberEndpoint,
  service: CachedObject,
): boolean {
  const pod = kind === 'Pod' ? upstreamObject(context, 'pods', { cluster, namespace, name }) : undefined
  if (pod === undefined || !isShownFrom(context, pod, uid)) return false
  // By what upstream says of both.
  if (!serviceSelects(service, pod.metadata.labels)) return false
  if (hostname !== undefined && hostname !== (pod['spec'] as { hostname?: string } | undefined)?.hostname) return false
  const memberNamespace = downstreamNamespaceOf(context, { cluster, namespace }) ?? ''
  const live = downstreamObject(context, 'pods', memberNamespace, name)
  const own = live?.metadata.uid === uid ? podAddresses(live) : []
  return addresses.every((address) => own.includes(address))
}

/** The addresses of a pod. */
export function podAddresses(pod: CachedObject | undefined): readonly string[] {
  const { podIP, podIPs } = (pod?.['status'] ?? {}) as { podIP?: string; podIPs?: readonly { readonly ip?: string }[] }
  const all = [podIP, ...(podIPs ?? []).map(({ ip }) => ip)]
  return all.filter((address) => address !== undefined)
}

function isEmptySlice(slice: CachedObject): boolean {
  return ((slice['endpoints'] ?? []) as readonly unknown[]).length === 0
}

/** More slices of one Service than the endpoints of a member need. */
const maxSlices = 200

function hasTooMany(context: SyncContext, { cluster, namespace }: Visit, service: string): boolean {
  let found = 0
  for (const { metadata } of context.upstreamIn('endpointslices', cluster, namespace))
    if (
      metadata.annotations?.[memberAnnotation] === context.member.name &&
      metadata.labels?.[serviceNameLabel] === service &&
      ++found >= maxSlices
    )
      return true
  return false
}

/**
 * The hostname of a pod in an exported Service. The member gives hostnames only in slices of the Service that the pod names as its
 * subdomain, which is the exported one.
 */
function hostnameOf(
  context: SyncContext,
  { cluster, namespace }: Visit,
  pod: string,
  exported: string | undefined,
): string | undefined {
  if (exported === undefined) return undefined
  const { hostname, subdomain } = (upstreamObject(context, 'pods', { cluster, namespace, name: pod })?.['spec'] ??
    {}) as {
    hostname?: string
    subdomain?: string
  }
  return subdomain === exported ? hostname : undefined
}

/** Rejects with ServiceUnavailable if the slice exists although the member's list lacked it: deleting its copy would cut off its pods. */
async function confirmGoneInMember(
  { downstream, caches }: SyncContext,
  { name }: Visit,
  memberNamespace: string,
  signal: AbortSignal,
): Promise<void> {
  const live = await downstream.tryGet(gvrs.endpointslices, { namespace: memberNamespace, name }, { signal })
  if (live?.metadata.labels?.[managedLabel] === undefined) return
  caches.endpointslices.relist()
  throw serviceUnavailable(`endpointslices "${name}" is there, but was not in the list of the member`)
}

/** The same for a Service that the list of all logical clusters lacked. */
async function confirmServiceGone(
  context: SyncContext,
  visit: Visit,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const service = name && (await context.guard.findUnlisted(context, { ...visit, kind: 'services', name }, signal))
  if (service) throw serviceUnavailable(`services "${name}" is there, but was not in the list of all logical clusters`)
}

/** The same for the pods of the copy: without them, their endpoints would not be believed. */
async function confirmPodsGone(
  context: SyncContext,
  { cluster, namespace }: Visit,
  copy: CachedObject,
  signal: AbortSignal,
): Promise<void> {
  for (const { targetRef: { name = '' } = {} } of (copy['endpoints'] ?? []) as readonly MemberEndpoint[]) {
    const visit: Visit = { kind: 'pod', cluster, namespace, name }
    if (name === '' || upstreamObject(context, 'pods', visit) !== undefined) continue
    if ((await context.guard.findUnlisted(context, visit, signal)) !== undefined)
      throw serviceUnavailable(`pods "${name}" is there, but was not in the list of all logical clusters`)
  }
}

/** Members choose names of slices independently: if a name is taken, the copy has the member's id as a suffix. */
function sliceUpstream(context: SyncContext, { cluster, namespace, name }: Visit): CachedObject | undefined {
  for (const candidate of [name, suffixed(context, name)]) {
    const object = upstreamObject(context, 'endpointslices', { cluster, namespace, name: candidate })
    if (object?.metadata.annotations?.[memberAnnotation] === context.member.name) return object
  }
  return undefined
}

function freeName(context: SyncContext, visit: Visit): string {
  return upstreamObject(context, 'endpointslices', visit) === undefined ? visit.name : suffixed(context, visit.name)
}

function suffixed({ member }: SyncContext, name: string): string {
  return `${name}-${member.id.slice(0, 5)}`
}

async function removeCopy(
  { upstream }: SyncContext,
  { cluster, namespace }: Visit,
  copy: CachedObject,
  signal: AbortSignal,
): Promise<void> {
  const { name = '', uid } = copy.metadata
  await upstream
    .client(cluster)
    .delete(gvrs.endpointslices, { namespace, name }, { ...(uid && { uid }), signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/** Copies a slice of another member into this one while the Service is here and the pods can be reached. */
export async function visitRemoteSlice(context: SyncContext, visit: Visit, signal: AbortSignal): Promise<void> {
  const { cluster, name } = visit
  const memberNamespace = downstreamNamespaceOf(context, visit)
  const clusterId = context.upstream.ids.idOf(cluster)
  if (memberNamespace === undefined || clusterId === undefined) return
  const source = upstreamObject(context, 'endpointslices', visit)
  const here = `${remotePrefix}${name}`
  const current = downstreamObject(context, 'endpointslices', memberNamespace, here)
  if (source === undefined || !wantsRemote(context, visit, source)) {
    if (current !== undefined && isRemote(current) && locatorOf(current)?.name === name) {
      if (source === undefined)
        await context.guard.confirmGone(context, { ...visit, kind: 'endpointslices' }, locatorOf(current), signal)
      else if (source.metadata.deletionTimestamp === undefined) context.guard.holdFollower(context, visit)
      await removeRemote(context, memberNamespace, current, signal)
    }
    return
  }
  if (isLost(source) && !isServedElsewhere(context, visit, source)) return
  if (current === undefined && isEndingNamespace(context, visit)) return
  const owner = ownerCluster(context, cluster, clusterId)
  const { gateway } = context
  const desired =
    gateway === undefined
      ? remoteSliceDown(source, owner, here, { isExported: hasExport(context, visit, source) })
      : remoteSliceThroughGateway(source, owner, here, {
          target: { namespace: memberNamespace, service: source.metadata.labels?.[serviceNameLabel] ?? '' },
          addresses: gatewayAddresses(context, source['addressType']),
          portFor: (port) => gateway.portFor({ namespace: memberNamespace, name: here }, port),
          live: current,
        })
  if (gateway !== undefined) {
    const waitMs = gateway.listensInMs({ namespace: memberNamespace, name: here }, desired, current)
    if (waitMs > 0) {
      desired['endpoints'] = []
      context.enqueueAfter(visit, waitMs)
    }
  }
  if (current !== undefined && isSubset(current, desired) && hasNoMoreNames(current, desired)) return
  await ensureNamespace(context, visit, signal)
  await context.downstream.patch(gvrs.endpointslices, { namespace: memberNamespace, name: here }, 'apply', desired, {
    fieldManager: syncerFieldManager,
    force: true,
    signal,
  })
}

/** Whether the slice in the member names no pod that is to have no name. Its endpoints are those of the desired one. */
function hasNoMoreNames(current: CachedObject, desired: KubeObject): boolean {
  const named = (slice: CachedObject): number =>
    ((slice['endpoints'] ?? []) as readonly { readonly hostname?: string }[]).filter(({ hostname }) => hostname).length
  return named(current) <= named(desired)
}

/** True for a slice of a member that is lost: its endpoints are not ready, though its pods may serve. */
export function isLost({ metadata }: CachedObject): boolean {
  return metadata.annotations?.[memberLostAnnotation] !== undefined
}

/**
 * Whether the Service of the slice has ready endpoints in another slice. If not, the endpoints of a lost member stay: perhaps only kcp
 * is cut off from the member, and without them, clients of the Service would have no endpoint at all.
 */
function isServedElsewhere(context: SyncContext, { cluster, namespace }: Visit, { metadata }: CachedObject): boolean {
  for (const other of context.upstreamIn('endpointslices', cluster, namespace))
    if (
      other.metadata.name !== metadata.name &&
      other.metadata.labels?.[serviceNameLabel] === metadata.labels?.[serviceNameLabel] &&
      readyEndpointsOf(other) > 0
    )
      return true
  return false
}

function readyEndpointsOf(slice: CachedObject): number {
  const endpoints = (slice['endpoints'] ?? []) as readonly { readonly conditions?: { readonly ready?: boolean } }[]
  return endpoints.filter(({ conditions }) => conditions?.ready !== false).length
}

function wantsRemote(context: SyncContext, { cluster, namespace }: Visit, { metadata }: CachedObject): boolean {
  const from = metadata.annotations?.[memberAnnotation]
  const reachable = metadata.annotations?.[reachableAnnotation]
  if (from === undefined || from === context.member.name || metadata.deletionTimestamp !== undefined) return false
  if (reachable === undefined || reachable !== reachabilityOf(context.member.serviceNetwork)) return false
  const service = upstreamObject(context, 'services', {
    cluster,
    namespace,
    name: metadata.labels?.[serviceNameLabel] ?? '',
  })
  if (service === undefined || !context.view(cluster, namespace).servicesWanted) return false
  return context.gateway === undefined || crossesGateways(service)
}

/** Whether the Service of the slice is exported: then it has a second Service. */
function hasExport(context: SyncContext, { cluster, namespace }: Visit, slice: CachedObject): boolean {
  const name = clusterSetServiceName(slice.metadata.labels?.[serviceNameLabel] ?? '')
  return upstreamObject(context, 'services', { cluster, namespace, name }) !== undefined
}

async function removeRemote(
  { downstream }: SyncContext,
  namespace: string,
  { metadata: { name = '', uid } }: CachedObject,
  signal: AbortSignal,
): Promise<void> {
  await downstream
    .delete(gvrs.endpointslices, { namespace, name }, { ...(uid && { uid }), signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/** Reports how many ready endpoints of a Service this member knows, by the member they run in; nothing without a copy. */
export async function reportEndpoints(
  context: SyncContext,
  visit: Visit,
  wanted: boolean,
  signal: AbortSignal,
): Promise<void> {
  const memberNamespace = downstreamNamespaceOf(context, visit)
  const service = upstreamObject(context, 'services', visit)
  if (memberNamespace === undefined || service === undefined) return
  const ofService = [...context.downstreamIn('endpointslices', memberNamespace)].filter(
    ({ metadata }) => metadata.labels?.[serviceNameLabel] === visit.name,
  )
  const believed = ofService
    .filter((slice) => isKnownSlice(context, visit, slice))
    .map((slice) => (isRemote(slice) ? slice : withBelievedEndpoints(context, visit, slice, service)))
  const endpoints = countEndpoints(believed, context.member.name)
  const copy = copyHere(context, 'services', visit)?.copy
  const view = context.view(visit.cluster, visit.namespace)
  const { type } = addressesOf(service)
  // A member with nothing of the Service must not bring the clients of the Service to itself.
  const loadBalancer = speaksFor(context, visit, service) ? addressesOf(copy).loadBalancer : undefined
  const addresses = clusterSetAddresses(copy)
  const isExternal = loadBalancer !== undefined || hasIngress(context, visit, memberNamespace)
  const hides = type === 'LoadBalancer' && view.present && !view.serves
  const report = wanted
    ? {
        endpoints,
        ...(loadBalancer && { loadBalancer }),
        ...(addresses.length > 0 && { addresses }),
        ...(isExternal && { external: true }),
        ...(hides && { hidesAddresses: true }),
      }
    : undefined
  const written = await writeMemberStatus(context, 'services', visit, report, signal)
  if (written === undefined) return
  if (type === 'LoadBalancer') await writeStatus(context, 'services', joinedAddresses, visit, written, signal)
  if (hasSynced(written)) await writeSynced(context, 'services', visit, written, signal)
}

/** Whether the slice of another member is one that this syncer has copied: others could name any member. */
function isKnownSlice(context: SyncContext, { cluster, namespace }: Visit, slice: CachedObject): boolean {
  if (!isRemote(slice)) return true
  const source = upstreamObject(context, 'endpointslices', { cluster, namespace, name: remoteNameOf(slice) })
  const from = source?.metadata.annotations?.[memberAnnotation]
  return from !== undefined && from === slice.metadata.labels?.[memberAnnotation]
}

/** Before the name of the slice of another member. */
const remotePrefix = 'kcp-'

/** The upstream name of the slice of another member. */
export function remoteNameOf({ metadata: { name = '' } }: CachedObject): string {
  return name.startsWith(remotePrefix) ? name.slice(remotePrefix.length) : name
}

/** Whether condition Synced is there, which this member's report may have ended. */
function hasSynced(service: CachedObject): boolean {
  const { conditions = [] } = (service['status'] ?? {}) as { conditions?: readonly { readonly type: string }[] }
  return conditions.some(({ type }) => type === 'Synced')
}

/** The addresses in this member of the second Service of an exported one, for its ServiceImport. */
function clusterSetAddresses(copy: CachedObject | undefined): readonly string[] {
  if (copy === undefined || exportedNameOf(copy) === undefined) return []
  const { clusterIPs = [] } = (copy['spec'] ?? {}) as { clusterIPs?: readonly string[] }
  return clusterIPs.filter((address) => isIP(address) !== 0).slice(0, 2)
}

/**
 * The ready endpoints of the slices of one Service in the copy of `local`, by the member they run in. A pod of a Service with two IP
 * families is in slices of both and counts once: the family with more endpoints counts.
 */
export function countEndpoints(slices: readonly CachedObject[], local: string): Record<string, number> {
  const byFamily = new Map<unknown, Map<string, number>>()
  for (const slice of slices) {
    const family = slice['addressType']
    const counts = byFamily.get(family) ?? new Map<string, number>()
    byFamily.set(family, counts)
    const member = isRemote(slice) ? (slice.metadata.labels?.[memberAnnotation] ?? '') : local
    counts.set(member, (counts.get(member) ?? 0) + endpointsBehind(slice))
  }
  const endpoints: Record<string, number> = {}
  for (const counts of byFamily.values())
    for (const [member, ready] of counts) if (ready > (endpoints[member] ?? 0)) endpoints[member] = ready
  return endpoints
}

/** A slice with the address of the gateway says how many endpoints are behind it. */
function endpointsBehind(slice: CachedObject): number {
  const ready = readyEndpointsOf(slice)
  const behind = slice.metadata.annotations?.[readyEndpointsAnnotation]
  return ready === 0 || behind === undefined ? ready : countOf(Number(behind))
}

/** The addresses of the gateway in this member, of one family. */
function gatewayAddresses(context: SyncContext, family: unknown): string[] {
  const addresses = new Set<string>()
  for (const slice of context.downstreamIn('endpointslices', systemNamespace)) {
    if (slice.metadata.labels?.[serviceNameLabel] !== memberParts.gateway || slice['addressType'] !== family) continue
    const endpoints = (slice['endpoints'] ?? []) as readonly {
      readonly addresses: readonly string[]
      readonly conditions?: { readonly ready?: boolean }
    }[]
    for (const {
      addresses: [address],
      conditions,
    } of endpoints)
      if (address !== undefined && conditions?.ready !== false) addresses.add(address)
  }
  return [...addresses].sort()
}

/** Whether an Ingress of the member that has addresses uses the Service as a backend. */
function hasIngress(context: SyncContext, { cluster, namespace, name }: Visit, memberNamespace: string): boolean {
  for (const ingress of context.downstreamIn('ingresses', memberNamespace)) {
    if (addressesOf(ingress).loadBalancer === undefined) continue
    const here = copyHere(context, 'ingresses', { cluster, namespace, name: ingress.metadata.name ?? '' })
    const isTheirs = here !== undefined && speaksFor(context, { cluster, namespace }, here.object)
    if (isTheirs && ingressBackends(here.object).includes(name)) return true
  }
  return false
}

/** The status of a Service: the addresses of all members at which it can be reached. */
const joinedAddresses: StatusRule = {
  summed: [],
  taken: [],
  joinsAddresses: true,
  observes: false,
  conditions: 'plain',
}

function addressesOf(service: CachedObject | undefined): { type: unknown; loadBalancer: object | undefined } {
  const { type } = (service?.['spec'] ?? {}) as { type?: string }
  const { loadBalancer } = (service?.['status'] ?? {}) as { loadBalancer?: { ingress?: readonly unknown[] } }
  return { type, loadBalancer: loadBalancer?.ingress && loadBalancer }
}
