// The new volume of a move. It is made for a claim in our own namespace, filled there, and then given to the tenant's
// claim: until then the tenant's namespace has no claim of this name, so no pod can start on half of the data. Other
// than with a data source (KEP-1495), this works with provisioners that ignore data sources, and with both binding modes.
import { quantityOf } from '#apimachinery/quantity/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { systemNamespace, volumeMoveLabel } from '#crds/index.ts'
import type { Claim } from './claim.ts'
import { gvrs, Obstacle, type VolumeParties } from './parties.ts'

interface Volume extends KubeObject {
  spec?: {
    capacity?: { storage?: string }
    persistentVolumeReclaimPolicy?: string
    claimRef?: { namespace?: string; name?: string; uid?: string }
  }
  status?: { phase?: string }
}

/** On a volume: its reclaim policy, while another one protects it. */
export const policyAnnotation = 'kcp.dev/reclaim-policy'

/** The name of the claim in our namespace. */
export function newClaimName({ metadata }: { readonly metadata: { readonly name: string } }): string {
  return `kcp-${metadata.name}`
}

/**
 * Makes the claim for the new volume: as large as the old volume is, or as its tenant wants it by now. A claim that is
 * there grows. Throws Obstacle if the member refuses that.
 */
export async function ensureNewClaim(
  { move, target, signal }: VolumeParties,
  { old, upstream }: { readonly old: Claim; readonly upstream: Claim },
): Promise<Claim> {
  const name = newClaimName(move)
  const ref = { namespace: systemNamespace, name }
  const found = await target.client.tryGet<Claim>(gvrs.claims, ref, { signal })
  const storage = largest([old.status?.capacity?.storage, requestOf(old), requestOf(upstream)])
  if (found !== undefined) {
    if (found.metadata.labels?.[volumeMoveLabel] !== move.metadata.name)
      throw new Obstacle(
        'Conflict',
        `member cluster "${target.name}" has another claim "${name}" in ${systemNamespace}`,
      )
    if (storage === undefined || !isLess(requestOf(found), storage) || found.status?.phase !== 'Bound') return found
    return await grow({ target, signal }, found, storage)
  }
  const { accessModes, storageClassName, volumeMode, dataSource } = old.spec ?? {}
  const className = move.spec.storageClass ?? storageClassName
  const claim: Claim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: systemNamespace, labels: { [volumeMoveLabel]: move.metadata.name } },
    spec: {
      ...(accessModes && { accessModes: [...accessModes] }),
      ...(className !== undefined && { storageClassName: className }),
      ...(volumeMode !== undefined && { volumeMode }),
      ...(storage !== undefined && { resources: { requests: { storage } } }),
      ...(dataSource !== undefined && { dataSource }),
    },
  }
  return await target.client.create(gvrs.claims, claim, { signal })
}

async function grow(
  { target, signal }: Pick<VolumeParties, 'target' | 'signal'>,
  { metadata: { name = '', uid }, spec }: Claim,
  storage: string,
): Promise<Claim> {
  const patch = { metadata: { uid }, spec: { resources: { requests: { storage } } } }
  const ref = { namespace: systemNamespace, name }
  return await target.client.patch<Claim>(gvrs.claims, ref, 'merge', patch, { signal }).catch((error: unknown) => {
    if (!isStatusError(error, 'Forbidden') && !isStatusError(error, 'Invalid')) throw error
    throw tooSmall(target.name, { has: spec?.resources?.requests?.storage, storage, why: error.message })
  })
}

/** Throws Obstacle if the new volume is smaller than the claim: it could not be bound to it. */
export async function requireRoom(parties: VolumeParties, name: string, upstream: Claim): Promise<void> {
  const { move, target, signal } = parties
  const storage = requestOf(upstream)
  if (storage === undefined || move.spec.way === 'Shared') return
  const has = (await volumeOf(parties, name)).spec?.capacity?.storage
  if (!isLess(has, storage)) return
  const ref = { namespace: systemNamespace, name: newClaimName(move) }
  const claim = await target.client.tryGet<Claim>(gvrs.claims, ref, { signal })
  if (claim === undefined) throw tooSmall(target.name, { has, storage, why: 'its claim is gone' })
  if (isLess(requestOf(claim), storage)) await grow(parties, claim, storage)
  throw new Obstacle('Growing', `the new volume grows from ${has ?? 'an unknown size'} to ${storage}`, {
    againSeconds: 1,
  })
}

function tooSmall(
  member: string,
  { has = 'an unknown size', storage, why }: { has?: string | undefined; storage: string; why: string },
): Obstacle {
  return new Obstacle(
    'TooSmall',
    `the claim has grown to ${storage} while its data were copied, and the new volume in member cluster "${member}" has ` +
      `${has} and cannot grow: cancel the move and begin it again (${why})`,
    { againSeconds: 30 },
  )
}

function requestOf({ spec }: Claim): string | undefined {
  return spec?.resources?.requests?.storage
}

function largest(sizes: readonly (string | undefined)[]): string | undefined {
  return sizes.reduce((most, size) => (size !== undefined && isLess(most, size) ? size : most), undefined)
}

function isLess(a: string | undefined, b: string): boolean {
  return a === undefined || quantityOf(a).nanos < quantityOf(b).nanos
}

/** The name of the new volume. Throws Obstacle if its claim is gone: no other claim may take the place of the data. */
export async function newVolumeName({ move, target, signal }: VolumeParties): Promise<string> {
  const ref = { namespace: systemNamespace, name: newClaimName(move) }
  const found = await target.client.tryGet<Claim>(gvrs.claims, ref, { signal })
  const isOurs = found?.metadata.labels?.[volumeMoveLabel] === move.metadata.name
  if (!isOurs || found.spec?.volumeName === undefined)
    throw new Obstacle('VolumeLost', 'the new claim has no volume', { againSeconds: 30 })
  return found.spec.volumeName
}

/** Deletes the claim for the new volume and the volume with it; true once it is gone. */
export async function removeNewClaim({ move, target, signal }: VolumeParties): Promise<boolean> {
  const ref = { namespace: systemNamespace, name: newClaimName(move) }
  const found = await target.client.tryGet<Claim>(gvrs.claims, ref, { signal })
  if (found === undefined || found.metadata.labels?.[volumeMoveLabel] !== move.metadata.name) return true
  const { uid } = found.metadata
  await target.client.delete(gvrs.claims, ref, { ...(uid && { uid }), signal }).catch(tolerate('NotFound', 'Conflict'))
  return false
}

/** Keeps the volume when its claim is deleted. Called when the data was compared. */
export async function protect({ move, target, signal }: VolumeParties, name: string): Promise<void> {
  const volume = await volumeOf({ target, signal }, name)
  if (volume.metadata.labels?.[volumeMoveLabel] === move.metadata.name) return
  const { resourceVersion } = volume.metadata
  const metadata = {
    resourceVersion,
    labels: { [volumeMoveLabel]: move.metadata.name },
    annotations: { [policyAnnotation]: volume.spec?.persistentVolumeReclaimPolicy ?? 'Delete' },
  }
  const patch = { metadata, spec: { persistentVolumeReclaimPolicy: 'Retain' } }
  await target.client.patch(gvrs.volumes, { name }, 'merge', patch, { signal }).catch(missingRight)
}

/** Reserves the volume for the tenant's claim. The claim in our namespace must be gone. */
export async function reserve({ move, target, signal }: VolumeParties, name: string): Promise<void> {
  const volume = await volumeOf({ target, signal }, name)
  const { namespace, name: claimName } = volume.spec?.claimRef ?? {}
  if (namespace === target.namespace && claimName === move.spec.claim) return
  if (namespace !== systemNamespace || claimName !== newClaimName(move))
    throw new Obstacle('VolumeTaken', `volume "${name}" in member cluster "${target.name}" belongs to another claim`)
  const claimRef = {
    ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: target.namespace, name: move.spec.claim },
    ...{ uid: null, resourceVersion: null },
  }
  const patch = { metadata: { resourceVersion: volume.metadata.resourceVersion }, spec: { claimRef } }
  await target.client.patch(gvrs.volumes, { name }, 'merge', patch, { signal })
}

/** Gives the volume its own reclaim policy back; true once it is bound to the tenant's claim. */
export async function release({ target, signal }: VolumeParties, name: string): Promise<boolean> {
  const volume = await volumeOf({ target, signal }, name)
  if (volume.status?.phase !== 'Bound' || volume.spec?.claimRef?.uid === undefined) return false
  const policy = volume.metadata.annotations?.[policyAnnotation]
  if (policy === undefined) return true
  const patch = {
    metadata: { labels: { [volumeMoveLabel]: null }, annotations: { [policyAnnotation]: null } },
    spec: { persistentVolumeReclaimPolicy: policy },
  }
  await target.client.patch(gvrs.volumes, { name }, 'merge', patch, { signal })
  return true
}

/**
 * Lets the new member delete the volume as its own reclaim policy says: the tenant has deleted the claim. The volume looks
 * as if it had been bound to the claim, because Kubernetes reclaims only volumes whose claim is gone.
 */
export async function abandonVolume({ move, target, signal }: VolumeParties, name: string): Promise<void> {
  const volume = await target.client.tryGet<Volume>(gvrs.volumes, { name }, { signal }).catch(missingRight)
  if (volume?.metadata.labels?.[volumeMoveLabel] !== move.metadata.name) return
  const { resourceVersion, annotations } = volume.metadata
  const policy = annotations?.[policyAnnotation]
  const hasOwner = volume.spec?.claimRef?.uid !== undefined
  const patch = {
    metadata: { resourceVersion, labels: { [volumeMoveLabel]: null }, annotations: { [policyAnnotation]: null } },
    spec: {
      ...(policy !== undefined && { persistentVolumeReclaimPolicy: policy }),
      ...(!hasOwner && { claimRef: { uid: move.spec.claimUid } }),
    },
  }
  await target.client.patch(gvrs.volumes, { name }, 'merge', patch, { signal })
}

async function volumeOf({ target, signal }: Pick<VolumeParties, 'target' | 'signal'>, name: string): Promise<Volume> {
  const found = await target.client.tryGet<Volume>(gvrs.volumes, { name }, { signal }).catch(missingRight)
  if (found === undefined)
    throw new Obstacle('VolumeLost', `member cluster "${target.name}" has lost volume "${name}"`, { againSeconds: 30 })
  return found
}

/** Members that joined before volumes moved give kcp no rights on volumes. */
export function missingRight(error: unknown): never {
  if (!isStatusError(error, 'Forbidden')) throw error
  throw new Obstacle(
    'JoinAgain',
    `${error.message}: run 'kcp member join' for this member again, which gives kcp the right`,
    {
      againSeconds: 30,
    },
  )
}
