// The claim of a move: its lock while the last changes are copied, its arrival in the new member, and the old claim that
// is kept for a while. The lock and the scheduler's record are written and read in opposite orders by this file and by
// the syncers, so that no pod starts on data that is on its way.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import {
  emptyVolumeConsent,
  hasCopy,
  keptVolumeAnnotation,
  memberAnnotation,
  memberStatusAnnotation,
  memberUidAnnotation,
  movedVolumeAnnotation,
  parseAnnotation,
  placedOn,
  tryLocator,
  volumeAnnotation,
  volumeConsentAnnotation,
  volumeLockAnnotation,
  volumeMoveLabel,
  volumeSourceAnnotation,
  workloadKinds,
  type VolumeLock,
} from '#crds/index.ts'
import { awaitedIn, memberOfClaim, needsClaim, takerOf, usesClaim } from '#placement/index.ts'
import { gvrs, Obstacle, type MemberSide, type VolumeParties } from './parties.ts'

export interface Claim extends KubeObject {
  spec?: {
    accessModes?: string[]
    storageClassName?: string
    volumeMode?: string
    volumeName?: string
    resources?: { requests?: { storage?: string } }
    dataSource?: object
  }
  status?: { phase?: string; capacity?: { storage?: string } }
}

/** The claim in the logical cluster, as it is now; undefined if it is gone, or another one has its name. */
export async function claimUpstream({ move, upstream, signal }: VolumeParties): Promise<Claim | undefined> {
  const { namespace, claim: name, claimUid } = move.spec
  const found = await upstream.tryGet<Claim>(gvrs.claims, { namespace, name }, { signal })
  return found?.metadata.uid === claimUid && found.metadata.deletionTimestamp === undefined ? found : undefined
}

/** Throws Obstacle if the old member does not have the claim with its volume. */
export async function claimInSource({ source, move, signal }: VolumeParties): Promise<Claim> {
  const ref = { namespace: source.namespace, name: move.spec.claim }
  const found = await source.client.tryGet<Claim>(gvrs.claims, ref, { signal })
  if (found === undefined || found.metadata.deletionTimestamp !== undefined)
    throw new Obstacle('SourceLost', `member cluster "${source.name}" does not have the claim any more`, {
      againSeconds: 30,
    })
  if (found.status?.phase !== 'Bound')
    throw new Obstacle('SourceUnbound', `member cluster "${source.name}" has bound no volume for the claim`)
  return found
}

/** The StatefulSet that would delete the claim with itself; the syncer makes it keep its claims before it leaves. */
export function isOwned(claim: Claim): boolean {
  return (claim.metadata.ownerReferences ?? []).some(({ kind }) => kind === 'StatefulSet' || kind === 'Pod')
}

/** Whether the tenant goes on in this member with an old copy, after the loss of the other one. */
export function isLossAccepted({ metadata }: Claim, to: string): boolean {
  return metadata.annotations?.[volumeConsentAnnotation]?.startsWith(`${to}@`) === true
}

/** Whether the tenant lets the claim go to this member. */
export function isConsented({ metadata }: Claim, to: string): boolean {
  return metadata.annotations?.[volumeConsentAnnotation] === to
}

/** Whether the tenant lets the claim begin with an empty volume. */
export function mayBeginEmpty({ metadata }: Claim): boolean {
  return metadata.annotations?.[volumeConsentAnnotation] === emptyVolumeConsent
}

export function lockOf(claim: Claim): VolumeLock | undefined {
  const { move, to } = parseAnnotation(claim, volumeLockAnnotation)
  return typeof move === 'string' && typeof to === 'string' ? { move, to } : undefined
}

/**
 * Locks the claim. From then on no syncer makes a copy of a workload that uses the claim; copies from before are seen by
 * `isPlacedInSource`, which must be asked afterwards.
 */
export async function lock({ move, upstream, signal }: VolumeParties, claim: Claim): Promise<void> {
  if (lockOf(claim)?.move === move.metadata.name) return
  const value: VolumeLock = { move: move.metadata.name, to: move.spec.to }
  await patchClaim({ move, upstream, signal }, claim, {
    annotations: { [volumeLockAnnotation]: JSON.stringify(value) },
  })
}

export async function unlock(
  { move, upstream, signal }: Pick<VolumeParties, 'move' | 'upstream' | 'signal'>,
  claim: Claim,
): Promise<void> {
  if (lockOf(claim)?.move !== move.metadata.name) return
  await patchClaim({ move, upstream, signal }, claim, { annotations: { [volumeLockAnnotation]: null } })
}

async function patchClaim(
  { move, upstream, signal }: Pick<VolumeParties, 'move' | 'upstream' | 'signal'>,
  { metadata: { uid, resourceVersion } }: Claim,
  metadata: object,
  spec?: object,
): Promise<void> {
  const { namespace, claim: name } = move.spec
  const patch = { metadata: { uid, resourceVersion, ...metadata }, ...(spec && { spec }) }
  await upstream.patch(gvrs.claims, { namespace, name }, 'merge', patch, { signal }).catch((error: unknown) => {
    // Somebody else has changed the claim meanwhile: the next attempt reads it again.
    if (isStatusError(error, 'Conflict')) throw new Obstacle('Working', error.message, { againSeconds: 0.2 })
    throw error
  })
}

/**
 * True if the member still has the claim, with its volume, from before the restore: the claim goes on with that one, as
 * one that was never deleted does. Throws Obstacle while the member deletes it.
 */
export async function goesOn(parties: VolumeParties, claim: Claim): Promise<boolean> {
  const { move, target, signal } = parties
  const ref = { namespace: target.namespace, name: move.spec.claim }
  const found = await target.client.tryGet<Claim>(gvrs.claims, ref, { signal })
  if (found === undefined || tryLocator(found)?.uid !== move.spec.claimUid) return false
  const { annotations = {}, deletionTimestamp } = found.metadata
  if (annotations[keptVolumeAnnotation] !== undefined) return false
  if (deletionTimestamp !== undefined)
    throw new Obstacle('Working', `member cluster "${target.name}" deletes the claim of before`, { againSeconds: 1 })
  const { volumeName } = found.spec ?? {}
  if (found.status?.phase !== 'Bound' || volumeName === undefined) return false
  // With the name, no member makes an empty volume for it, whatever becomes of that one.
  await patchClaim(parties, claim, { annotations: { [volumeSourceAnnotation]: null } }, { volumeName })
  return true
}

export interface Users {
  /** Workloads with something in the old member: `KIND "NAME"`. */
  readonly inSource: readonly string[]
  /** Whether a workload waits in the new member for the data, or none needs it and the old member is drained. */
  readonly isAwaited: boolean
}

/** The workloads that use the claim, as the server says now. */
export async function workloadsOf({ move, source, upstream, signal }: VolumeParties, claim: Claim): Promise<Users> {
  const { namespace, from, to } = move.spec
  const inSource: string[] = []
  let [isAwaited, isUsed] = [false, false]
  for (const { gvr, kind } of workloadKinds)
    for (const workload of (await upstream.list<KubeObject>(gvr, { namespace, signal })).items) {
      if (!usesClaim({ ...workload, kind }, claim)) continue
      if (needsClaim({ ...workload, kind }, claim)) isUsed = true
      if (awaitedIn({ ...workload, kind }, claim, from) === to) isAwaited = true
      // The members have said that no pod of this ordinal is left, and no member makes one.
      if (takerOf({ ...workload, kind }, claim) === to) continue
      const state = placedOn(workload)[from]
      const isThere = hasCopy(state) || state?.state === 'Terminating' || state?.state === 'Lost'
      if (isThere) inSource.push(`${kind} "${workload.metadata.name ?? ''}"`)
    }
  return { inSource, isAwaited: isAwaited || (!isUsed && source.isDraining) }
}

/** Nodes to which the volume is attached, except those in `but`. */
export async function attachedTo(
  { source, signal }: VolumeParties,
  volume: string,
  but: ReadonlySet<string>,
): Promise<string[]> {
  const { items } = await source.client.list<KubeObject>(gvrs.attachments, { signal })
  return items.flatMap((one) => {
    const { nodeName = '', source: of } = (one['spec'] ?? {}) as {
      nodeName?: string
      source?: { persistentVolumeName?: string }
    }
    return of?.persistentVolumeName === volume && !but.has(nodeName) ? [nodeName] : []
  })
}

/**
 * Gives the claim its new member and volume, in one write. Rejects with Obstacle if the claim has changed since it was
 * read. The claim must be locked.
 */
export async function arrive(parties: VolumeParties, claim: Claim, volumeName: string): Promise<void> {
  const { move } = parties
  const { to, from, storageClass } = move.spec
  if (memberOfClaim(claim) === to && claim.metadata.annotations?.[movedVolumeAnnotation] === volumeName) return
  if (lockOf(claim)?.move !== move.metadata.name)
    throw new Obstacle('LockLost', 'the lock of the claim is gone: its data may have changed since it was compared')
  const annotations = {
    [volumeAnnotation]: to,
    [movedVolumeAnnotation]: volumeName,
    [volumeLockAnnotation]: null,
    [volumeConsentAnnotation]: null,
    [volumeSourceAnnotation]: null,
    [memberAnnotation]: null,
    [memberUidAnnotation]: null,
    [memberStatusAnnotation(from)]: null,
  }
  await patchClaim(
    parties,
    claim,
    { annotations },
    { volumeName, ...(storageClass && { storageClassName: storageClass }) },
  )
}

/**
 * Marks the claim in the old member, so that it is kept with its volume and its namespace for a while; in place of the
 * mark of an earlier move, after which the claim came back. Resolves with the time until when, in Unix milliseconds;
 * undefined if the member does not have the claim.
 */
export async function keep({ source, move, signal }: VolumeParties, untilMs: number): Promise<number | undefined> {
  const ref = { namespace: source.namespace, name: move.spec.claim }
  const found = await source.client.tryGet<Claim>(gvrs.claims, ref, { signal })
  if (found === undefined) return undefined
  const isMarked = found.metadata.labels?.[volumeMoveLabel] === move.metadata.name
  const known = found.metadata.annotations?.[keptVolumeAnnotation]
  if (isMarked && known !== undefined) return Date.parse(known)
  const metadata = {
    uid: found.metadata.uid,
    labels: { [volumeMoveLabel]: move.metadata.name },
    annotations: { [keptVolumeAnnotation]: new Date(untilMs).toISOString() },
  }
  await source.client.patch(gvrs.claims, ref, 'merge', { metadata }, { signal })
  return untilMs
}

/** Takes the mark of `keep` away again: the claim stays in the old member. */
export async function keepNoMore({ source, move, signal }: VolumeParties): Promise<void> {
  const ref = { namespace: source.namespace, name: move.spec.claim }
  const found = await source.client.tryGet<Claim>(gvrs.claims, ref, { signal })
  if (found?.metadata.labels?.[volumeMoveLabel] !== move.metadata.name) return
  const labels = { [volumeMoveLabel]: null }
  const metadata = { uid: found.metadata.uid, labels, annotations: { [keptVolumeAnnotation]: null } }
  await source.client.patch(gvrs.claims, ref, 'merge', { metadata }, { signal })
}

/** Deletes the old claim that this or, in its target, an earlier move keeps, and its volume. True once it is gone. */
export async function deleteKept(
  { move, signal }: Pick<VolumeParties, 'move' | 'signal'>,
  side: MemberSide,
): Promise<boolean> {
  const ref = { namespace: side.namespace, name: move.spec.claim }
  const found = await side.client.tryGet<Claim>(gvrs.claims, ref, { signal })
  const isKept = found?.metadata.annotations?.[keptVolumeAnnotation] !== undefined
  const isOurs = side.name === move.spec.to || found?.metadata.labels?.[volumeMoveLabel] === move.metadata.name
  if (!isKept || !isOurs) return true
  const { uid } = found.metadata
  await side.client.delete(gvrs.claims, ref, { ...(uid && { uid }), signal }).catch(tolerate('NotFound', 'Conflict'))
  return false
}
