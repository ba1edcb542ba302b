// EndpointSlices: those that this member made go up; those of other members, which pods here can reach, come down; and
// beside each Service stands how many ready endpoints this member knows of it, which is what a move waits for.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import { tolerate } from '../apimachinery/status/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import { memberAnnotation, reachableAnnotation, syncerFieldManager } from '../crds/index.ts'
import { saysAll } from './says-all.ts'
import { ensureNamespace } from './down-namespace.ts'
import { writePiece } from './piece.ts'
import { gvrs } from './synced-kinds.ts'
import {
  downstreamObject,
  downstreamSpace,
  isOurs,
  locatorOf,
  upstreamObject,
  type SyncContext,
  type Visit,
} from './sync-context.ts'
import { remoteSliceDown } from './transform/down.ts'
import { endpointSliceUp } from './transform/up.ts'

type Kept = DeepReadonly<KubeObject>

export const serviceNameLabel = 'kubernetes.io/service-name'
export const managedByLabel = 'endpointslice.kubernetes.io/managed-by'

/** True for a slice that a syncer published for another member. */
export function isRemote(slice: Kept): boolean {
  return slice.metadata.labels?.[managedByLabel] === syncerFieldManager
}

/** One slice of this member, upstream. */
export async function visitSlice(context: SyncContext, visit: Visit, signal: AbortSignal): Promise<void> {
  const { cluster, namespace, name } = visit
  const space = downstreamSpace(context, visit)
  if (space === undefined) return
  const live = downstreamObject(context, 'endpointslices', space, name)
  const copy = sliceUpstream(context, visit)
  const serviceName = live?.metadata.labels?.[serviceNameLabel] ?? ''
  const service = upstreamObject(context, 'services', { cluster, namespace, name: serviceName })
  const client = context.upstream.client(cluster)
  if (live === undefined || service === undefined || !isOurs(context, space)) {
    if (copy !== undefined) await removeCopy(context, visit, copy, signal)
    return
  }
  const reference = {
    apiVersion: 'v1',
    kind: 'Service',
    name: serviceName,
    uid: service.metadata.uid ?? '',
    controller: true,
    blockOwnerDeletion: true,
  }
  const { member } = context
  const desired = endpointSliceUp(live, {
    name: copy?.metadata.name ?? freeName(context, visit),
    namespace,
    member: member.name,
    reachable: member.serviceNetwork === 'Flat',
    service: reference,
  })
  if (copy === undefined) await client.create(gvrs.endpointslices, desired, { signal })
  else if (!saysAll(copy, desired)) {
    const { resourceVersion, uid } = copy.metadata
    const metadata = { ...desired.metadata, ...(resourceVersion && { resourceVersion }), ...(uid && { uid }) }
    await client.update(gvrs.endpointslices, { ...desired, metadata }, { signal })
  }
}

/** Names of slices are made by each member's own controller: on a collision a second one carries its member's id. */
function sliceUpstream(context: SyncContext, { cluster, namespace, name }: Visit): Kept | undefined {
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
  copy: Kept,
  signal: AbortSignal,
): Promise<void> {
  const { name = '', uid } = copy.metadata
  await upstream
    .client(cluster)
    .delete(gvrs.endpointslices, { namespace, name }, { ...(uid && { uid }), signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/** One slice of another member, published here while its Service is here and its pods can be reached. */
export async function visitRemoteSlice(context: SyncContext, visit: Visit, signal: AbortSignal): Promise<void> {
  const { cluster, name } = visit
  const space = downstreamSpace(context, visit)
  const clusterId = context.upstream.ids.idOf(cluster)
  if (space === undefined || clusterId === undefined) return
  const source = upstreamObject(context, 'endpointslices', visit)
  const here = `kcp-${name}`
  const current = downstreamObject(context, 'endpointslices', space, here)
  if (source === undefined || !wantsRemote(context, visit, source)) {
    if (current !== undefined && isRemote(current) && locatorOf(current)?.name === name)
      await removeRemote(context, space, current, signal)
    return
  }
  const desired = remoteSliceDown(source, { cluster, clusterId }, here)
  if (current !== undefined && saysAll(current, desired)) return
  await ensureNamespace(context, visit, signal)
  await context.downstream.patch(gvrs.endpointslices, { namespace: space, name: here }, 'apply', desired, {
    fieldManager: syncerFieldManager,
    force: true,
    signal,
  })
}

function wantsRemote(context: SyncContext, { cluster, namespace }: Visit, { metadata }: Kept): boolean {
  const from = metadata.annotations?.[memberAnnotation]
  if (from === undefined || from === context.member.name || context.member.serviceNetwork !== 'Flat') return false
  if (metadata.annotations?.[reachableAnnotation] !== 'true' || metadata.deletionTimestamp !== undefined) return false
  const service = upstreamObject(context, 'services', {
    cluster,
    namespace,
    name: metadata.labels?.[serviceNameLabel] ?? '',
  })
  return service !== undefined && context.view(cluster, namespace).servicesWanted
}

async function removeRemote(
  { downstream }: SyncContext,
  namespace: string,
  { metadata: { name = '', uid } }: Kept,
  signal: AbortSignal,
): Promise<void> {
  await downstream
    .delete(gvrs.endpointslices, { namespace, name }, { ...(uid && { uid }), signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/** How many ready endpoints of a Service this member knows, by the member they run in; no piece where it has no copy. */
export async function reportEndpoints(
  context: SyncContext,
  visit: Visit,
  wanted: boolean,
  signal: AbortSignal,
): Promise<void> {
  const space = downstreamSpace(context, visit)
  if (space === undefined || upstreamObject(context, 'services', visit) === undefined) return
  const endpoints: Record<string, number> = {}
  for (const slice of context.downstreamIn('endpointslices', space)) {
    if (slice.metadata.labels?.[serviceNameLabel] !== visit.name) continue
    const member = isRemote(slice) ? (slice.metadata.labels[memberAnnotation] ?? '') : context.member.name
    const ready = ((slice['endpoints'] ?? []) as { conditions?: { ready?: boolean } }[]).filter(
      ({ conditions }) => conditions?.ready !== false,
    )
    if (ready.length > 0) endpoints[member] = (endpoints[member] ?? 0) + ready.length
  }
  await writePiece(context, 'services', visit, wanted ? { endpoints } : undefined, signal)
}
