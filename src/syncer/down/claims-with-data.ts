// Claims that exist before the pods that use them, as after a restore: a pod must find its data, or not start.
import type { KubeObject, OwnerReference } from '#apimachinery/meta/index.ts'
import { conflict, serviceUnavailable } from '#apimachinery/status/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { memberAnnotation } from '#crds/index.ts'
import { memberOfClaim } from '#placement/index.ts'
import { copyHere, ordinalsIn } from '#syncer/rules/entitlement.ts'
import { asOrdinalClaim, claimReferences, type Reference } from '#syncer/context/references.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { upstreamObject, type SyncContext, type Visit } from '#syncer/context/sync-context.ts'
import { originUpstream } from '#syncer/up/origin.ts'

type CachedObject = DeepReadonly<KubeObject>

/**
 * The claims that a tenant made for ordinals of a StatefulSet. They are applied before it: where the member has no claims of these
 * names, the controller there makes new ones, without the data. Rejects if a pod that the member is about to make would get such a
 * claim all the same.
 */
export async function claimsOfOrdinals(
  context: SyncContext,
  { object, before }: { readonly object: CachedObject; readonly before: CachedObject | undefined },
  visit: Visit,
  signal: AbortSignal,
): Promise<readonly Reference[]> {
  const references = new Set(claimReferences(object).map(({ resource, name }) => `${resource}/${name}`))
  if (references.size === 0) return []
  const { cluster, namespace } = visit
  const ordinalOf = ({ metadata: { name = '' } }: CachedObject): number | undefined => {
    const found = asOrdinalClaim(name)
    return found !== undefined && references.has(found.reference) ? found.ordinal : undefined
  }
  const known = [...references].flatMap((reference) => [
    ...context.upstream.claimsOfOrdinals.of(`${cluster}|${namespace}|${reference}`),
  ])
  const [ordinals, had] = [ordinalsIn(object, context.member.name), before && ordinalsIn(before)]
  if (had === undefined || ordinals.start < had.start || ordinals.end > had.end) {
    const isUsed = (claim: CachedObject): boolean => {
      const ordinal = ordinalOf(claim)
      return ordinal !== undefined && ordinals.start <= ordinal && ordinal < ordinals.end
    }
    await refuseOtherClaims(context, { known, isUsed }, visit, signal)
  }
  return known
    .filter(({ metadata }) => metadata.annotations?.[memberAnnotation] === undefined)
    .map(({ metadata: { name = '' } }) => ({ resource: 'persistentvolumeclaims', name }))
}

/** Rejects if a claim that is used is not in our cache yet, or has its data in another member. Asks the server: caches may lag. */
async function refuseOtherClaims(
  { upstream, member }: SyncContext,
  { known, isUsed }: { readonly known: readonly CachedObject[]; readonly isUsed: (claim: CachedObject) => boolean },
  { cluster, namespace, name }: Visit,
  signal: AbortSignal,
): Promise<void> {
  const uids = new Set(known.map(({ metadata }) => metadata.uid))
  const client = upstream.client(cluster)
  const { items } = await client.list(gvrs.persistentvolumeclaims, { namespace, metadataOnly: true, signal })
  for (const claim of items.filter(isUsed)) {
    const { name: claimName = '', uid } = claim.metadata
    if (!uids.has(uid))
      throw serviceUnavailable(`persistentvolumeclaims "${claimName}" is not in the list of all logical clusters yet`)
    const other = memberOfClaim(claim)
    if (other !== undefined && other !== member.name)
      throw conflict(
        gvrs.statefulsets,
        name,
        `the volume of its claim "${claimName}" is in member cluster "${other}": here its pod would get an empty one`,
      )
  }
}

/**
 * Rejects if a claim that the member does not have names a volume. It is about the data in that volume; the member would give it
 * an empty one. `memberNamespace`: its namespace in the member.
 */
export async function refuseOtherVolume(
  { downstream, member }: SyncContext,
  claim: CachedObject,
  memberNamespace: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { volumeName } = (claim['spec'] ?? {}) as { volumeName?: string }
  if (!volumeName) return
  const { name = '' } = claim.metadata
  const gvr = gvrs.persistentvolumeclaims
  if (memberOfClaim(claim) === undefined)
    throw conflict(
      gvr,
      name,
      `it names volume "${volumeName}", but members choose the volumes of claims: leave out spec.volumeName`,
    )
  // The list of the member may lack it by mistake.
  if (memberNamespace === undefined) return
  if ((await downstream.tryGet(gvr, { namespace: memberNamespace, name }, { signal })) !== undefined) return
  throw conflict(
    gvr,
    name,
    `member cluster "${member.name}" has lost it, and its volume "${volumeName}" with it: to go on without the data, create the claim again`,
  )
}

/**
 * Copies the controller of a tenant's claim upstream: a StatefulSet that deletes its claims, with itself or when it shrinks, takes
 * over those that it finds. Garbage collection upstream then deletes the claim as it would in a cluster.
 */
export async function visitClaimOwner(context: SyncContext, visit: Visit, signal: AbortSignal): Promise<void> {
  const { cluster, namespace, name } = visit
  const here = copyHere(context, 'persistentvolumeclaims', visit)
  if (here === undefined || asOrdinalClaim(name) === undefined) return
  const { object: claim, copy } = here
  const { ownerReferences: owners = [], resourceVersion } = claim.metadata
  const owner = originUpstream(context, visit, copy)?.owner.reference
  const former = controllerOf(claim)
  if (former?.uid === owner?.uid) return
  // The owner in the member is not upstream yet.
  if (owner === undefined && controllerOf(copy) !== undefined) return
  const ownerReferences = [...owners.filter((one) => one !== former), ...(owner === undefined ? [] : [owner])]
  const metadata = { resourceVersion, ownerReferences }
  await context.upstream
    .client(cluster)
    .patch(gvrs.persistentvolumeclaims, { namespace, name }, 'merge', { metadata }, { signal })
}

/** Whether the claim goes with a StatefulSet or pod that is going or has gone: the member has deleted it, so there is no new copy. */
export function goesWithOwner(context: SyncContext, claim: CachedObject, visit: Visit): boolean {
  const owner = controllerOf(claim)
  if (owner === undefined) return false
  const resource = owner.kind === 'Pod' ? 'pods' : 'statefulsets'
  const found = upstreamObject(context, resource, { ...visit, name: owner.name })
  return found?.metadata.uid !== owner.uid || found.metadata.deletionTimestamp !== undefined
}

/** The StatefulSet, or the pod of a StatefulSet, that deletes the claim. */
function controllerOf({ metadata }: CachedObject): OwnerReference | undefined {
  return metadata.ownerReferences?.find(
    ({ controller, kind }) => controller === true && (kind === 'StatefulSet' || kind === 'Pod'),
  )
}
