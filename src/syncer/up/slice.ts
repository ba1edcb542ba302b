// EndpointSlices that this member created, copied upstream.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { serviceUnavailable, tolerate } from '#apimachinery/status/index.ts'
import { exportedNameOf, managedLabel, memberAnnotation, reachabilityOf } from '#crds/index.ts'
import { isSubset } from '#apimachinery/json/index.ts'
import { asController } from '#syncer/context/owners.ts'
import { gvrs, type CachedObject } from '#syncer/context/resources.ts'
import type { Reconcile, Scope } from '#syncer/context/scope.ts'
import { withBelievedEndpoints, type MemberEndpoint } from '#syncer/rules/slices.ts'
import { serviceNameLabel } from '#syncer/transform/slice-labels.ts'
import { endpointSliceUp } from '#syncer/transform/up.ts'

/** Copies one slice of this member upstream, or deletes the copy. */
export async function reconcileSlice(reconcile: Reconcile): Promise<void> {
  const { member, name } = reconcile
  if (reconcile.memberNamespace === undefined || member.loss?.isLost()) return
  const live = reconcile.live('endpointslices', name)
  const copy = sliceUpstream(reconcile)
  const serviceName = live?.metadata.labels?.[serviceNameLabel] ?? ''
  const service = reconcile.upstream('services', serviceName)
  if (live === undefined || service === undefined || !reconcile.isOurs) {
    if (copy === undefined) return
    if (live === undefined) await confirmGoneInMember(reconcile)
    else if (service === undefined) await confirmServiceGone(reconcile, serviceName)
    await removeCopy(reconcile, copy)
    return
  }
  if (copy !== undefined) await confirmPodsGone(reconcile, copy)
  const believed = withBelievedEndpoints(reconcile, live, service)
  // A slice that has had endpoints stays: it may get new ones soon.
  if (copy === undefined && (isEmptySlice(believed) || hasTooMany(reconcile, serviceName))) return
  await writeSlice(reconcile, copy, sliceUp(reconcile, believed, service, copy))
}

function sliceUp(
  reconcile: Reconcile,
  believed: CachedObject,
  service: CachedObject,
  copy: CachedObject | undefined,
): KubeObject {
  const { member, namespace } = reconcile
  return endpointSliceUp(believed, {
    name: copy?.metadata.name ?? freeName(reconcile),
    namespace,
    member: member.name,
    reachable: reachabilityOf(member.serviceNetwork),
    service: asController(service),
    hostnameOf: (pod) => hostnameOf(reconcile, pod, exportedNameOf(service)),
  })
}

async function writeSlice(
  { upstreamClient, signal }: Reconcile,
  copy: CachedObject | undefined,
  desired: KubeObject,
): Promise<void> {
  if (copy === undefined) await upstreamClient.create(gvrs.endpointslices, desired, { signal })
  else if (!isSubset(copy, desired)) {
    const { resourceVersion, uid } = copy.metadata
    const metadata = { ...desired.metadata, ...(resourceVersion && { resourceVersion }), ...(uid && { uid }) }
    await upstreamClient.update(gvrs.endpointslices, { ...desired, metadata }, { signal })
  }
}

function isEmptySlice(slice: CachedObject): boolean {
  return ((slice['endpoints'] ?? []) as readonly unknown[]).length === 0
}

/** How many slices of one Service a member may show: more than its endpoints need. */
const maxSlices = 200

function hasTooMany(scope: Scope, service: string): boolean {
  let found = 0
  for (const { metadata } of scope.allUpstream('endpointslices'))
    if (
      metadata.annotations?.[memberAnnotation] === scope.member.name &&
      metadata.labels?.[serviceNameLabel] === service &&
      ++found >= maxSlices
    )
      return true
  return false
}

/**
 * The hostname of a pod in an exported Service. The member gives hostnames only in slices of the Service that the pod
 * names as its subdomain, which is the exported one.
 */
function hostnameOf(scope: Scope, pod: string, exported: string | undefined): string | undefined {
  if (exported === undefined) return undefined
  const spec = scope.upstream('pods', pod)?.['spec'] ?? {}
  const { hostname, subdomain } = spec as { readonly hostname?: string; readonly subdomain?: string }
  return subdomain === exported ? hostname : undefined
}

/**
 * Rejects with ServiceUnavailable if the slice exists although the member's list lacked it: deleting its copy would cut
 * off its pods.
 */
async function confirmGoneInMember({ context, name, memberNamespace = '', signal }: Reconcile): Promise<void> {
  const { downstream, caches } = context
  const live = await downstream.tryGet(gvrs.endpointslices, { namespace: memberNamespace, name }, { signal })
  if (live?.metadata.labels?.[managedLabel] === undefined) return
  caches.endpointslices.relist()
  throw serviceUnavailable(`endpointslices "${name}" is there, but was not in the list of the member`)
}

/** Rejects with ServiceUnavailable if the Service exists although the list of all logical clusters lacked it. */
async function confirmServiceGone(reconcile: Reconcile, name: string): Promise<void> {
  const service = name && (await reconcile.context.guard.findUnlisted(reconcile.on('services', name)))
  if (service) throw serviceUnavailable(`services "${name}" is there, but was not in the list of all logical clusters`)
}

/** Rejects with ServiceUnavailable if a pod of the copy exists although the list lacked it: its endpoint must stay. */
async function confirmPodsGone(reconcile: Reconcile, copy: CachedObject): Promise<void> {
  for (const { targetRef: { name = '' } = {} } of (copy['endpoints'] ?? []) as readonly MemberEndpoint[]) {
    if (name === '' || reconcile.upstream('pods', name) !== undefined) continue
    if ((await reconcile.context.guard.findUnlisted(reconcile.on('pod', name))) !== undefined)
      throw serviceUnavailable(`pods "${name}" is there, but was not in the list of all logical clusters`)
  }
}

/** Members choose names of slices independently: if a name is taken, the copy has the member's id as a suffix. */
function sliceUpstream(reconcile: Reconcile): CachedObject | undefined {
  const { name } = reconcile
  for (const candidate of [name, suffixed(reconcile, name)]) {
    const object = reconcile.upstream('endpointslices', candidate)
    if (object?.metadata.annotations?.[memberAnnotation] === reconcile.member.name) return object
  }
  return undefined
}

function freeName(reconcile: Reconcile): string {
  const { name } = reconcile
  return reconcile.upstream('endpointslices', name) === undefined ? name : suffixed(reconcile, name)
}

function suffixed({ member }: Scope, name: string): string {
  return `${name}-${member.id.slice(0, 5)}`
}

async function removeCopy({ upstreamClient, namespace, signal }: Reconcile, copy: CachedObject): Promise<void> {
  const { name = '', uid } = copy.metadata
  await upstreamClient
    .delete(gvrs.endpointslices, { namespace, name }, { ...(uid && { uid }), signal })
    .catch(tolerate('NotFound', 'Conflict'))
}
