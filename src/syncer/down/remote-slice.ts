// EndpointSlices of other members whose pods can be reached, copied into this member.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import {
  clusterSetServiceName,
  crossesGateways,
  downstreamNamespace,
  memberAnnotation,
  memberParts,
  reachabilityOf,
  reachableAnnotation,
  syncerFieldManager,
  systemNamespace,
} from '#crds/index.ts'
import { isSubset } from '#apimachinery/json/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import { gvrs, type CachedObject } from '#syncer/context/resources.ts'
import { ownerCluster, type Reconcile, type Scope } from '#syncer/context/scope.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'
import { isEndingNamespace } from '#syncer/rules/ending.ts'
import { isLost, isRemote, readyEndpointsOf, remotePrefix } from '#syncer/rules/slices.ts'
import { remoteSliceDown, remoteSliceThroughGateway } from '#syncer/transform/down.ts'
import { serviceNameLabel } from '#syncer/transform/slice-labels.ts'
import { ensureNamespace } from './ensure-namespace.ts'

/** Copies a slice of another member into this one while the Service is here and the pods can be reached. */
export async function reconcileRemoteSlice(reconcile: Reconcile): Promise<void> {
  const { name } = reconcile
  if (reconcile.memberNamespace === undefined || reconcile.clusterId === undefined) return
  const source = reconcile.upstream('endpointslices', name)
  const current = reconcile.live('endpointslices', nameHere(reconcile))
  if (source === undefined || !wantsRemote(reconcile, source)) return removeRemote(reconcile, source, current)
  if (isLost(source) && !isServedElsewhere(reconcile, source)) return
  if (current === undefined && isEndingNamespace(reconcile)) return
  await writeRemote(reconcile, source, current)
}

/** The name of the slice in this member: the prefix keeps it apart from the names that this member gives. */
function nameHere({ name }: Reconcile): string {
  return `${remotePrefix}${name}`
}

async function writeRemote(
  reconcile: Reconcile,
  source: CachedObject,
  current: CachedObject | undefined,
): Promise<void> {
  const { context, memberNamespace: namespace = '', clusterId, signal } = reconcile
  const { gateway } = context
  if (clusterId === undefined) return
  const name = nameHere(reconcile)
  // In other members, an adopted namespace has its usual name.
  const usualNamespace = downstreamNamespace(clusterId, reconcile.namespace)
  const owner = ownerCluster(reconcile, clusterId)
  const desired =
    gateway === undefined
      ? remoteSliceDown(source, owner, name, { isExported: hasExport(reconcile, source) })
      : remoteSliceThroughGateway(source, owner, name, {
          target: { namespace: usualNamespace, service: source.metadata.labels?.[serviceNameLabel] ?? '' },
          addresses: gatewayAddresses(context, source['addressType']),
          portFor: (port) => gateway.portFor({ namespace, name, usualNamespace }, port),
          live: current,
        })
  const waitMs = gateway?.listensInMs({ namespace, name }, desired, current) ?? 0
  if (waitMs > 0) {
    desired['endpoints'] = []
    context.enqueueAfter({ ...reconcile.ref, kind: 'remoteSlice', cluster: reconcile.cluster }, waitMs)
  }
  if (current !== undefined && isSubset(current, desired) && hasNoMoreNames(current, desired)) return
  await ensureNamespace(reconcile)
  await context.downstream.patch(gvrs.endpointslices, { namespace, name }, 'apply', desired, {
    fieldManager: syncerFieldManager,
    force: true,
    signal,
  })
}

/** Whether the slice in the member has no more hostnames than the desired slice. Both have the same endpoints. */
function hasNoMoreNames(current: CachedObject, desired: KubeObject): boolean {
  const named = (slice: CachedObject): number =>
    ((slice['endpoints'] ?? []) as readonly { readonly hostname?: string }[]).filter(({ hostname }) => hostname).length
  return named(current) <= named(desired)
}

/**
 * Whether the Service of the slice has ready endpoints in another slice. If not, the endpoints of a lost member stay:
 * perhaps only kcp is cut off from the member, and without them, clients of the Service would have no endpoint at all.
 */
function isServedElsewhere(scope: Scope, { metadata }: CachedObject): boolean {
  for (const other of scope.allUpstream('endpointslices'))
    if (
      other.metadata.name !== metadata.name &&
      other.metadata.labels?.[serviceNameLabel] === metadata.labels?.[serviceNameLabel] &&
      readyEndpointsOf(other) > 0
    )
      return true
  return false
}

function wantsRemote(scope: Scope, { metadata }: CachedObject): boolean {
  const { context, member, view } = scope
  const from = metadata.annotations?.[memberAnnotation]
  const reachable = metadata.annotations?.[reachableAnnotation]
  if (from === undefined || from === member.name || metadata.deletionTimestamp !== undefined) return false
  if (reachable === undefined || reachable !== reachabilityOf(member.serviceNetwork)) return false
  const service = scope.upstream('services', metadata.labels?.[serviceNameLabel] ?? '')
  if (service === undefined || !view.servicesWanted) return false
  return context.gateway === undefined || crossesGateways(service)
}

/** Whether the Service of the slice is exported: then it has a second Service. */
function hasExport(scope: Scope, slice: CachedObject): boolean {
  const name = clusterSetServiceName(slice.metadata.labels?.[serviceNameLabel] ?? '')
  return scope.upstream('services', name) !== undefined
}

/** Deletes the copy of the slice in the member, because the slice upstream (`source`) is gone or not wanted here. */
async function removeRemote(
  reconcile: Reconcile,
  source: CachedObject | undefined,
  current: CachedObject | undefined,
): Promise<void> {
  const { context, signal } = reconcile
  if (current === undefined || !isRemote(current) || locatorOf(current)?.name !== reconcile.name) return
  const { guard } = context
  if (source === undefined) await guard.confirmGone(reconcile.on('endpointslices'), locatorOf(current))
  else if (source.metadata.deletionTimestamp === undefined) guard.holdFollower(reconcile)
  const { namespace = '', name = '', uid } = current.metadata
  await context.downstream
    .delete(gvrs.endpointslices, { namespace, name }, { ...(uid && { uid }), signal })
    .catch(tolerate('NotFound', 'Conflict'))
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
