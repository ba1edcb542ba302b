// The report of this member on a Service: how many ready endpoints it knows, for which moves wait, and the addresses it
// serves.
import { isIP } from 'node:net'
import { exportedNameOf, memberAnnotation, readyEndpointsAnnotation, type StatusRule } from '#crds/index.ts'
import { ingressBackends } from '#syncer/context/references.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import type { Scope } from '#syncer/context/scope.ts'
import { countOf } from '#syncer/rules/count.ts'
import { copyHere, speaksFor } from '#syncer/rules/entitlement.ts'
import { isRemote, readyEndpointsOf, remoteNameOf, withBelievedEndpoints } from '#syncer/rules/slices.ts'
import type { SyncedObject } from '#syncer/rules/synced-object.ts'
import { serviceNameLabel } from '#syncer/transform/slice-labels.ts'
import { driftOf, writeMemberStatus, writeStatus, writeSynced } from './member-status.ts'

/** Writes the report on a Service; nothing is reported unless the Service should have a copy here: `wanted`. */
export async function reportEndpoints(synced: SyncedObject, wanted: boolean): Promise<void> {
  const { object: service } = synced
  if (synced.memberNamespace === undefined || service === undefined) return
  const written = await writeMemberStatus(synced, wanted ? endpointsReport(synced, service) : undefined)
  if (written === undefined) return
  if (addressesOf(service).type === 'LoadBalancer') await writeStatus(synced, joinedAddresses, written)
  if (isTold(synced, written)) await writeSynced(synced, written)
}

function endpointsReport(synced: SyncedObject, service: CachedObject): object {
  const { member, view, name } = synced
  const copy = copyHere(synced, 'services', name)?.copy
  // A member with nothing of the Service must not bring the clients of the Service to itself.
  const loadBalancer = speaksFor(synced, service) ? addressesOf(copy).loadBalancer : undefined
  const addresses = clusterSetAddresses(copy)
  const isExternal = loadBalancer !== undefined || hasIngress(synced)
  const drift = driftOf(synced)
  const hides = addressesOf(service).type === 'LoadBalancer' && view.present && !view.serves
  return {
    endpoints: countEndpoints(knownSlices(synced, service), member.name),
    ...(loadBalancer && { loadBalancer }),
    ...(addresses.length > 0 && { addresses }),
    ...(isExternal && { external: true }),
    ...(hides && { hidesAddresses: true }),
    ...(drift !== undefined && { drift }),
  }
}

/** The slices of the Service in the member, with the endpoints that are believed. */
function knownSlices(synced: SyncedObject, service: CachedObject): CachedObject[] {
  return [...synced.allLive('endpointslices')]
    .filter(({ metadata }) => metadata.labels?.[serviceNameLabel] === synced.name)
    .filter((slice) => isKnownSlice(synced, slice))
    .map((slice) => (isRemote(slice) ? slice : withBelievedEndpoints(synced, slice, service)))
}

/** Whether the slice of another member is one that this syncer has copied: others could name any member. */
function isKnownSlice(scope: Scope, slice: CachedObject): boolean {
  if (!isRemote(slice)) return true
  const source = scope.upstream('endpointslices', remoteNameOf(slice))
  const from = source?.metadata.annotations?.[memberAnnotation]
  return from !== undefined && from === slice.metadata.labels?.[memberAnnotation]
}

/** Whether the Service has condition Synced or Drifted, which this member's report may end, or gets one. */
function isTold(synced: SyncedObject, service: CachedObject): boolean {
  const { conditions = [] } = (service['status'] ?? {}) as { conditions?: readonly { readonly type: string }[] }
  return conditions.some(({ type }) => type === 'Synced' || type === 'Drifted') || driftOf(synced) !== undefined
}

/** The addresses in this member of the second Service of an exported one, for its ServiceImport. */
function clusterSetAddresses(copy: CachedObject | undefined): readonly string[] {
  if (copy === undefined || exportedNameOf(copy) === undefined) return []
  const { clusterIPs = [] } = (copy['spec'] ?? {}) as { clusterIPs?: readonly string[] }
  return clusterIPs.filter((address) => isIP(address) !== 0).slice(0, 2)
}

/**
 * The ready endpoints of the slices of one Service in the copy of `local`, by the member they run in. A pod of a
 * Service with two IP families is in slices of both and counts once: the family with more endpoints counts.
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

/**
 * The number of ready endpoints. A ready slice with the address of the gateway has the number behind it in an
 * annotation.
 */
function endpointsBehind(slice: CachedObject): number {
  const ready = readyEndpointsOf(slice)
  const behind = slice.metadata.annotations?.[readyEndpointsAnnotation]
  return ready === 0 || behind === undefined ? ready : countOf(Number(behind))
}

/** Whether an Ingress of the member that has addresses uses the Service as a backend. */
function hasIngress(synced: SyncedObject): boolean {
  for (const ingress of synced.allLive('ingresses')) {
    if (addressesOf(ingress).loadBalancer === undefined) continue
    const here = copyHere(synced, 'ingresses', ingress.metadata.name ?? '')
    const isTheirs = here !== undefined && speaksFor(synced, here.object)
    if (isTheirs && ingressBackends(here.object).includes(synced.name)) return true
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
