// Claims that exist before the pods that use them, as after a restore: a pod must find its data, or not start.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { conflict, serviceUnavailable } from '#apimachinery/status/index.ts'
import {
  memberAnnotation,
  movedVolumeAnnotation,
  placedOn,
  volumeLockAnnotation,
  volumeSourceAnnotation,
  volumeSourceOf,
  type CopyState,
} from '#crds/index.ts'
import { memberOfClaim } from '#placement/index.ts'
import { asOrdinalClaim, claimReferences, type Reference } from '#syncer/context/references.ts'
import { gvrs, type CachedObject } from '#syncer/context/resources.ts'
import type { Scope } from '#syncer/context/scope.ts'
import { ordinalsIn } from '#syncer/rules/entitlement.ts'
import type { SyncedObject } from '#syncer/rules/synced-object.ts'
import { controllerOfClaim } from '#syncer/up/claim-owner.ts'

const persistentVolumes = { group: '', version: 'v1', resource: 'persistentvolumes' } as const

/**
 * The claims that a tenant made for ordinals of a StatefulSet. They are applied before the StatefulSet: where the
 * member lacks claims of these names, its controller makes new ones, without the data. Rejects if a pod that the member
 * is about to make would still get a claim without its data.
 */
export async function claimsOfOrdinals(synced: SyncedObject, object: CachedObject): Promise<readonly Reference[]> {
  const references = new Set(claimReferences(object).map(({ resource, name }) => `${resource}/${name}`))
  if (references.size === 0) return []
  const { context, cluster, namespace, member, copy: before } = synced
  const ordinalOf = ({ metadata: { name = '' } }: CachedObject): number | undefined => {
    const found = asOrdinalClaim(name)
    return found !== undefined && references.has(found.reference) ? found.ordinal : undefined
  }
  const known = [...references].flatMap((reference) => [
    ...context.upstream.claimsOfOrdinals.of(`${cluster}|${namespace}|${reference}`),
  ])
  if (isGrowing({ member, copy: before }, object)) {
    const ordinals = ordinalsIn(object, member.name)
    const isUsed = (claim: CachedObject): boolean => {
      const ordinal = ordinalOf(claim)
      return ordinal !== undefined && ordinals.start <= ordinal && ordinal < ordinals.end
    }
    await refuseOtherClaims(synced, known, isUsed)
  }
  return known
    .filter(({ metadata }) => metadata.annotations?.[memberAnnotation] === undefined)
    .map(({ metadata: { name = '' } }) => ({ resource: 'persistentvolumeclaims', name }))
}

/** Whether the member is to make pods of ordinals that its copy of the StatefulSet does not have. */
export function isGrowing({ member, copy }: Pick<SyncedObject, 'member' | 'copy'>, object: CachedObject): boolean {
  const [ordinals, had] = [ordinalsIn(object, member.name), copy && ordinalsIn(copy)]
  return had === undefined || ordinals.start < had.start || ordinals.end > had.end
}

/**
 * Rejects if a pod of an ordinal that comes from another member is still there: a member counts its pods, so one that
 * ends and one that is missing look like all of them. Asks the server for the new ordinals, of which the scheduler gives
 * one at a time.
 */
export async function refuseOtherPods(
  { member, copy, upstreamClient, namespace, name, signal }: SyncedObject,
  object: CachedObject,
): Promise<void> {
  const placed = placedOn(object as KubeObject)
  if (placed[member.name]?.start === undefined || !isGrowing({ member, copy }, object)) return
  const { start, end } = ordinalsIn(object, member.name)
  const had = copy === undefined ? { start, end: start } : ordinalsIn(copy)
  for (const ordinal of newOrdinals({ start, end }, had)) {
    const pod = `${name}-${ordinal}`
    const found = await upstreamClient.tryGet<KubeObject>(gvrs.pods, { namespace, name: pod }, { signal })
    const other = found?.metadata.annotations?.[memberAnnotation]
    // What a lost member has says nothing about the present.
    if (other === undefined || other === member.name || !runs(placed[other]?.state)) continue
    throw serviceUnavailable(`pod "${pod}" has not ended in member cluster "${other}"`)
  }
}

/** More than the scheduler gives a member at a time. */
const maxNewOrdinals = 64

interface Ordinals {
  readonly start: number
  readonly end: number
}

/** Those that the copy does not have, of each side the nearest to it: of these, the scheduler gives one at a time. */
export function* newOrdinals({ start, end }: Ordinals, had: Ordinals): Generator<number> {
  let left = maxNewOrdinals
  for (let ordinal = Math.min(had.start, end) - 1; ordinal >= start && left > 0; ordinal--, left--) yield ordinal
  for (let ordinal = Math.max(had.end, start); ordinal < end && left > 0; ordinal++, left--) yield ordinal
}

function runs(state: CopyState | undefined): boolean {
  return state !== undefined && state !== 'Lost' && state !== 'Fenced'
}

/**
 * Rejects if a claim that is used is not in our cache yet, or has its data in another member. Asks the server: caches
 * may lag.
 */
async function refuseOtherClaims(
  { upstreamClient, namespace, name, member, signal }: SyncedObject,
  known: readonly CachedObject[],
  isUsed: (claim: CachedObject) => boolean,
): Promise<void> {
  const membersKnown = new Map(known.map((claim) => [claim.metadata.uid, memberOfClaim(claim)]))
  const { items } = await upstreamClient.list(gvrs.persistentvolumeclaims, { namespace, metadataOnly: true, signal })
  for (const claim of items.filter(isUsed)) {
    const { name: claimName = '', uid } = claim.metadata
    const other = memberOfClaim(claim)
    // The claims that are applied before the StatefulSet are those of our cache.
    if (!membersKnown.has(uid) || membersKnown.get(uid) !== other)
      throw serviceUnavailable(`persistentvolumeclaims "${claimName}" is not in the list of all logical clusters yet`)
    refuseLocked(claim)
    if (other !== undefined && other !== member.name)
      throw conflict(
        gvrs.statefulsets,
        name,
        `the volume of its claim "${claimName}" is in member cluster "${other}": here its pod would get an empty one`,
      )
  }
}

/**
 * Rejects if the member has a claim of the StatefulSet that is not in the logical cluster, as when a quota refuses it
 * there: the StatefulSet would go on elsewhere without its data.
 */
export function refuseUnknownClaims(scope: SyncedObject, object: CachedObject): void {
  const references = new Set(claimReferences(object).map(({ resource, name }) => `${resource}/${name}`))
  if (references.size === 0) return
  for (const { metadata } of scope.allLive('persistentvolumeclaims')) {
    const { name = '', deletionTimestamp } = metadata
    const isOfSet = references.has(asOrdinalClaim(name)?.reference ?? '')
    if (!isOfSet || deletionTimestamp !== undefined || scope.upstream('persistentvolumeclaims', name) !== undefined)
      continue
    throw conflict(
      gvrs.statefulsets,
      scope.name,
      `its claim "${name}" in member cluster "${scope.member.name}" is not in the logical cluster yet: elsewhere its pod would start without the data`,
    )
  }
}

/**
 * Rejects if a new copy of a workload would use a claim whose data is, or may soon be, in another member. Asks the
 * server: a lock that is written before the workload was placed here is seen here.
 */
export async function refuseMovingClaims(
  { copy, upstreamClient, namespace, member, signal }: SyncedObject,
  claims: readonly string[],
): Promise<void> {
  if (copy !== undefined) return
  for (const name of claims) {
    const claim = await upstreamClient.tryGet<KubeObject>(gvrs.persistentvolumeclaims, { namespace, name }, { signal })
    if (claim === undefined) continue
    refuseLocked(claim)
    const where = memberOfClaim(claim)
    if (where !== undefined && where !== member.name)
      throw conflict(
        gvrs.persistentvolumeclaims,
        name,
        `its volume is in member cluster "${where}": here the pods would get an empty one`,
      )
  }
}

function refuseLocked(claim: CachedObject): void {
  refuseUnfilled(claim)
  const { name = '', annotations = {} } = claim.metadata
  if (annotations[volumeLockAnnotation] === undefined) return
  throw serviceUnavailable(`the volume of claim "${name}" is moving to another member cluster: no pod may use it now`)
}

/** Rejects if the claim waits for its volume from a snapshot: the member would make an empty one. */
export function refuseUnfilled(claim: CachedObject): void {
  if (claim.metadata.annotations?.[volumeSourceAnnotation] === undefined) return
  const { name = '' } = claim.metadata
  const from = volumeSourceOf(claim)?.snapshot ?? ''
  throw serviceUnavailable(`the volume of claim "${name}" is being restored from snapshot "${from}"`)
}

/**
 * Rejects if a claim that the member does not have names a volume: the tenant wants the data in that volume, and the
 * member would make an empty one.
 */
export async function refuseOtherVolume(
  { context, member, memberNamespace, signal }: SyncedObject,
  claim: CachedObject,
): Promise<void> {
  const { volumeName } = (claim['spec'] ?? {}) as { volumeName?: string }
  if (!volumeName) return
  const { name = '', annotations = {} } = claim.metadata
  const gvr = gvrs.persistentvolumeclaims
  if (annotations[movedVolumeAnnotation] === volumeName && memberOfClaim(claim) === member.name) {
    const found = await context.downstream.tryGet(persistentVolumes, { name: volumeName }, { signal })
    if (found !== undefined) return
  }
  if (memberOfClaim(claim) === undefined)
    throw conflict(
      gvr,
      name,
      `it names volume "${volumeName}", but members choose the volumes of claims: leave out spec.volumeName`,
    )
  // The member's list may lack the claim by mistake, so the member is asked.
  if (memberNamespace === undefined) return
  if ((await context.downstream.tryGet(gvr, { namespace: memberNamespace, name }, { signal })) !== undefined) return
  throw conflict(
    gvr,
    name,
    `member cluster "${member.name}" has lost it, and its volume "${volumeName}" with it: to go on without the data, create the claim again`,
  )
}

/**
 * Whether the StatefulSet or pod that owns the claim is being deleted or is gone: the member has deleted the claim with
 * it, so no new copy is made.
 */
export function goesWithOwner(scope: Scope, claim: CachedObject): boolean {
  const owner = controllerOfClaim(claim)
  if (owner === undefined) return false
  const resource = owner.kind === 'Pod' ? 'pods' : 'statefulsets'
  const found = scope.upstream(resource, owner.name)
  return found?.metadata.uid !== owner.uid || found.metadata.deletionTimestamp !== undefined
}
