// The claim of a move: its lock while the last changes are copied, its arrival in the new member, and the old claim that
// is kept for a while. The lock and the scheduler's record are written and read in opposite orders by this file and by
// the syncers, so that no pod starts on data that is on its way.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import {
  hasCopy,
  keptVolumeAnnotation,
  memberAnnotation,
  memberStatusAnnotation,
  memberUidAnnotation,
  movedVolumeAnnotation,
  parseAnnotation,
  placedOn,
  volumeAnnotation,
  volumeConsentAnnotation,
  volumeLockAnnotation,
  volumeMoveLabel,
  workloadKinds,
  type VolumeLock,
} from '#crds/index.ts'
import { memberOfClaim, usesClaim } from '#placement/index.ts'
import { gvrs, Obstacle, type VolumeParties } from './parties.ts'

export interface Claim extends KubeObject {
  spec?: {
    accessModes?: string[]
    storageClassName?: string
    volumeMode?: string
    volumeName?: string
    resources?: { requests?: { storage?: string } }
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

/** Whether the tenant lets the claim go to this member. */
export function isConsented({ metadata }: Claim, to: string): boolean {
  return metadata.annotations?.[volumeConsentAnnotation] === to
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

/** Workloads that use the claim and have something in the old member, as the server says now: `KIND "NAME"`. */
export async function placedInSource({ move, upstream, signal }: VolumeParties, claim: Claim): Promise<string[]> {
  const { namespace, from } = move.spec
  const found: string[] = []
  for (const { gvr, kind } of workloadKinds)
    for (const workload of (await upstream.list<KubeObject>(gvr, { namespace, signal })).items) {
      if (!usesClaim({ ...workload, kind }, claim)) continue
      const state = placedOn(workload)[from]
      const isThere = hasCopy(state) || state?.state === 'Terminating' || state?.state === 'Lost'
      if (isThere) found.push(`${kind} "${workload.metadata.name ?? ''}"`)
    }
  return found
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

/** Marks the claim in the old member, so that its syncer keeps it, its volume and its namespace for a while. */
export async function keep({ source, move, signal }: VolumeParties, untilMs: number): Promise<void> {
  const ref = { namespace: source.namespace, name: move.spec.claim }
  const found = await source.client.tryGet<Claim>(gvrs.claims, ref, { signal })
  if (found === undefined || found.metadata.annotations?.[keptVolumeAnnotation] !== undefined) return
  const metadata = {
    uid: found.metadata.uid,
    labels: { [volumeMoveLabel]: move.metadata.name },
    annotations: { [keptVolumeAnnotation]: new Date(untilMs).toISOString() },
  }
  await source.client.patch(gvrs.claims, ref, 'merge', { metadata }, { signal })
}

/** Deletes the claim that was kept, and its volume with it. True once it is gone. */
export async function deleteKept({ source, move, signal }: VolumeParties): Promise<boolean> {
  const ref = { namespace: source.namespace, name: move.spec.claim }
  const found = await source.client.tryGet<Claim>(gvrs.claims, ref, { signal })
  const isKept =
    found?.metadata.annotations?.[keptVolumeAnnotation] !== undefined &&
    found.metadata.labels?.[volumeMoveLabel] === move.metadata.name
  if (!isKept) return true
  const { uid } = found.metadata
  await source.client.delete(gvrs.claims, ref, { ...(uid && { uid }), signal }).catch((error: unknown) => {
    if (!isStatusError(error, 'NotFound') && !isStatusError(error, 'Conflict')) throw error
  })
  return false
}
