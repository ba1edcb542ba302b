// Moves between members that share their storage: the same volume, or a snapshot of it, is known to both under one
// handle. An admin says so in a Placement, and with that trusts the old member to name handles in the new one; what a
// member says is checked as far as the new member can: the driver is that of the StorageClass, and no volume there has
// the handle.
import { tolerate } from '#apimachinery/status/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import { systemNamespace, volumeMoveLabel } from '#crds/index.ts'
import type { Claim } from './claim.ts'
import { ensureNewClaim, missingRight, newClaimName, policyAnnotation } from './new-volume.ts'
import { gvrs, Obstacle, type MemberSide, type VolumeParties } from './parties.ts'

export interface Volume extends KubeObject {
  spec?: {
    csi?: { driver?: string; volumeHandle?: string }
    claimRef?: { namespace?: string; name?: string; uid?: string }
    persistentVolumeReclaimPolicy?: string
    [field: string]: unknown
  }
}
export interface Snapshot extends KubeObject {
  status?: {
    readyToUse?: boolean
    boundVolumeSnapshotContentName?: string
    /** Quantity. */
    restoreSize?: string
    /** RFC 3339. */
    creationTime?: string
    error?: { message?: string }
  }
}
export interface SnapshotContent extends KubeObject {
  spec?: { driver?: string }
  status?: { snapshotHandle?: string }
}

export const snapshotGvrs = {
  snapshots: { group: 'snapshot.storage.k8s.io', version: 'v1', resource: 'volumesnapshots' },
  contents: { group: 'snapshot.storage.k8s.io', version: 'v1', resource: 'volumesnapshotcontents' },
  classes: { group: 'snapshot.storage.k8s.io', version: 'v1', resource: 'volumesnapshotclasses' },
} as const
const { snapshots, contents } = snapshotGvrs
const defaultAnnotation = 'snapshot.storage.kubernetes.io/is-default-class'
const classes = { group: 'storage.k8s.io', version: 'v1', resource: 'storageclasses' } as const

/** The name of the volume that a Shared move makes in the new member. */
export function sharedVolumeName({ metadata }: { readonly metadata: { readonly name: string } }): string {
  return `kcp-${metadata.name}`
}

/** Throws Obstacle if the volume cannot be shared, or cannot be restored from a snapshot of the other member. */
export async function checkShared(parties: VolumeParties, old: Claim): Promise<void> {
  const { driver } = await csiOf(parties, old)
  await requireDriver(parties, classOf(parties, old), driver)
}

/** Throws Obstacle if the StorageClass in the new member is not of the driver. */
export async function requireDriver(
  { target, signal }: Pick<VolumeParties, 'target' | 'signal'>,
  className: string,
  driver: string,
): Promise<void> {
  const found = await target.client.tryGet<KubeObject>(classes, { name: className }, { signal })
  if (found === undefined)
    throw new Obstacle('ClassMissing', `member cluster "${target.name}" has no StorageClass "${className}"`, {
      againSeconds: 30,
    })
  if (found['provisioner'] !== driver)
    throw new Obstacle(
      'OtherDriver',
      `StorageClass "${className}" of member cluster "${target.name}" is of driver "${String(found['provisioner'])}", the volume of "${driver}"`,
      { againSeconds: 30 },
    )
}

/**
 * The VolumeSnapshotClass of the driver in the old member: the default one, or the first by name. Throws Obstacle if
 * there is none: asked before the application stops.
 */
export async function snapshotClassOf(parties: VolumeParties, old: Claim): Promise<string> {
  const { source, target, signal } = parties
  const { driver } = await csiOf(parties, old)
  // The new member must serve the snapshots, too.
  await target.client.list<KubeObject>(snapshotGvrs.classes, { signal }).catch(missingRight)
  const chosen = await snapshotClassFor(source.client, driver, signal)
  if (chosen === undefined)
    throw new Obstacle(
      'SnapshotFailed',
      `member cluster "${source.name}" has no VolumeSnapshotClass of driver "${driver}"`,
      { againSeconds: 30 },
    )
  return chosen
}

/**
 * The VolumeSnapshotClass of the driver in a member: the default one, or the first by name; undefined if there is none.
 * Throws Obstacle if kcp may not list them.
 */
export async function snapshotClassFor(
  client: KubeClient,
  driver: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const found = await client
    .list<KubeObject>(snapshotGvrs.classes, { signal })
    .catch(tolerate('NotFound'))
    .catch(missingRight)
  const ofDriver = (found?.items ?? [])
    .filter((one) => one['driver'] === driver)
    .toSorted((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1))
  const chosen = ofDriver.find(({ metadata }) => metadata.annotations?.[defaultAnnotation] === 'true') ?? ofDriver[0]
  return chosen?.metadata.name
}

function classOf({ move }: VolumeParties, { spec }: Claim): string {
  return move.spec.storageClass ?? spec?.storageClassName ?? ''
}

async function csiOf(
  parties: VolumeParties,
  old: Claim,
): Promise<{ readonly volume: Volume; readonly driver: string; readonly handle: string }> {
  const { source, signal } = parties
  const name = old.spec?.volumeName ?? ''
  const volume = await source.client.get<Volume>(gvrs.volumes, { name }, { signal }).catch(missingRight)
  const { driver, volumeHandle: handle } = volume.spec?.csi ?? {}
  if (!driver || !handle)
    throw new Obstacle('NotShared', `volume "${name}" is not of a CSI driver, so no other member cluster knows it`, {
      againSeconds: 30,
    })
  return { volume, driver, handle }
}

/** Makes the volume known in the new member, reserved for the claim there, and keeps it when the old claim is deleted. */
export async function shareVolume(parties: VolumeParties, old: Claim): Promise<void> {
  const { move, source, target, signal } = parties
  const { volume, driver, handle } = await csiOf(parties, old)
  const name = sharedVolumeName(move)
  const labels = { [volumeMoveLabel]: move.metadata.name }
  const policy =
    volume.metadata.annotations?.[policyAnnotation] ?? volume.spec?.persistentVolumeReclaimPolicy ?? 'Delete'
  if (volume.metadata.annotations?.[policyAnnotation] === undefined)
    await source.client
      .patch(
        gvrs.volumes,
        { name: volume.metadata.name ?? '' },
        'merge',
        {
          metadata: { labels, annotations: { [policyAnnotation]: policy } },
          spec: { persistentVolumeReclaimPolicy: 'Retain' },
        },
        { signal },
      )
      .catch(missingRight)
  if ((await target.client.tryGet(gvrs.volumes, { name }, { signal })) !== undefined) return
  await refuseTaken(target, { driver, handle }, signal)
  const {
    claimRef: _c,
    nodeAffinity: _n,
    storageClassName: _s,
    persistentVolumeReclaimPolicy: _p,
    ...spec
  } = volume.spec ?? {}
  const shared: Volume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, labels, annotations: deletionFacts(volume) },
    spec: {
      ...spec,
      storageClassName: classOf(parties, old),
      // Deleting the claim in its last member deletes the data, as before.
      persistentVolumeReclaimPolicy: policy,
      claimRef: {
        ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: target.namespace, name: move.spec.claim },
      },
    },
  }
  await target.client.create(gvrs.volumes, shared, { signal }).catch(missingRight)
}

/** The annotations by which a provisioner knows that it has to delete the volume, and with which Secret. */
function deletionFacts({ metadata: { annotations = {} } }: Volume): Record<string, string> {
  const prefixes = ['pv.kubernetes.io/provisioned-by', 'volume.kubernetes.io/provisioner-deletion-secret-']
  return Object.fromEntries(
    Object.entries(annotations).filter(([key]) => prefixes.some((prefix) => key.startsWith(prefix))),
  )
}

/**
 * The claim stays in its member: the new member forgets the volume, and the old one deletes it with its claim again.
 * Nothing is done in a member that is gone.
 */
export async function unshare(parties: VolumeParties): Promise<void> {
  if (!parties.target.isGone) await forgetInTarget(parties)
  if (!parties.source.isGone) await restorePolicy(parties)
}

async function forgetInTarget({ move, target, signal }: VolumeParties): Promise<void> {
  const name = sharedVolumeName(move)
  const shared = await target.client.tryGet<Volume>(gvrs.volumes, { name }, { signal }).catch(missingRight)
  if (shared?.metadata.labels?.[volumeMoveLabel] === move.metadata.name) {
    const { uid, resourceVersion } = shared.metadata
    const patch = { metadata: { resourceVersion }, spec: { persistentVolumeReclaimPolicy: 'Retain' } }
    await target.client.patch(gvrs.volumes, { name }, 'merge', patch, { signal })
    await target.client
      .delete(gvrs.volumes, { name }, { ...(uid && { uid }), signal })
      .catch(tolerate('NotFound', 'Conflict'))
  }
}

async function restorePolicy({ move, source, signal }: VolumeParties): Promise<void> {
  const labelSelector = `${volumeMoveLabel}=${move.metadata.name}`
  const { items } = await source.client.list<Volume>(gvrs.volumes, { labelSelector, signal }).catch(missingRight)
  for (const { metadata } of items) {
    const policy = metadata.annotations?.[policyAnnotation]
    const patch = {
      metadata: { labels: { [volumeMoveLabel]: null }, annotations: { [policyAnnotation]: null } },
      spec: { persistentVolumeReclaimPolicy: policy ?? 'Retain' },
    }
    await source.client.patch(gvrs.volumes, { name: metadata.name ?? '' }, 'merge', patch, { signal })
  }
}

/** Throws Obstacle if a volume of the new member has the handle: it could be another tenant's. */
async function refuseTaken(
  { client, name }: MemberSide,
  { driver, handle }: { readonly driver: string; readonly handle: string },
  signal: AbortSignal,
): Promise<void> {
  const { items } = await client.list<Volume>(gvrs.volumes, { signal }).catch(missingRight)
  const taken = items.find(({ spec }) => spec?.csi?.driver === driver && spec.csi.volumeHandle === handle)
  if (taken !== undefined)
    throw new Obstacle(
      'HandleTaken',
      `volume "${taken.metadata.name ?? ''}" of member cluster "${name}" has the handle already: an admin has to see whose it is`,
      { againSeconds: 30 },
    )
}

/** Deletes the volume object of the old member; the data stays, because the new member has it. */
export async function forgetShared({ source, move, signal }: VolumeParties): Promise<void> {
  const { items } = await source.client.list<Volume>(gvrs.volumes, {
    labelSelector: `${volumeMoveLabel}=${move.metadata.name}`,
    signal,
  })
  for (const { metadata, spec } of items)
    if (spec?.persistentVolumeReclaimPolicy === 'Retain')
      await source.client
        .delete(gvrs.volumes, { name: metadata.name ?? '' }, { ...(metadata.uid && { uid: metadata.uid }), signal })
        .catch(tolerate('NotFound'))
}

/**
 * Takes a snapshot of the old volume and makes the claim for the new one from it. Throws Obstacle while the snapshot is
 * not ready.
 */
export async function restoreSnapshot(
  parties: VolumeParties,
  { old, upstream }: { readonly old: Claim; readonly upstream: Claim },
): Promise<void> {
  const { move, source, signal } = parties
  const name = newClaimName(move)
  const labels = { [volumeMoveLabel]: move.metadata.name }
  const taken = await ensureSnapshot(
    source,
    source.namespace,
    {
      ...{ apiVersion: 'snapshot.storage.k8s.io/v1', kind: 'VolumeSnapshot' },
      metadata: { name, namespace: source.namespace, labels },
      spec: {
        volumeSnapshotClassName: await snapshotClassOf(parties, old),
        source: { persistentVolumeClaimName: move.spec.claim },
      },
    },
    signal,
  )
  const contentName = taken.status?.boundVolumeSnapshotContentName ?? ''
  const content = await source.client.get<SnapshotContent>(contents, { name: contentName }, { signal })
  const { driver } = content.spec ?? {}
  const { snapshotHandle } = content.status ?? {}
  const { driver: expected } = await csiOf(parties, old)
  if (driver !== expected || !snapshotHandle)
    throw new Obstacle('NotShared', `the snapshot of the volume is of driver "${driver ?? ''}"`, { againSeconds: 30 })
  const dataSource = await importSnapshot(parties, { driver, handle: snapshotHandle })
  await ensureNewClaim(parties, { old: { ...old, spec: { ...old.spec, dataSource } }, upstream })
}

/**
 * Makes a snapshot of the storage known in the new member, in our own namespace there. Resolves with the data source of
 * a claim once it is ready; throws Obstacle until then.
 */
export async function importSnapshot(
  { move, target, signal }: VolumeParties,
  { driver, handle: snapshotHandle }: { readonly driver: string; readonly handle: string },
): Promise<object> {
  const name = newClaimName(move)
  const labels = { [volumeMoveLabel]: move.metadata.name }
  const imported: KubeObject = {
    ...{ apiVersion: 'snapshot.storage.k8s.io/v1', kind: 'VolumeSnapshotContent', metadata: { name, labels } },
    spec: {
      driver,
      deletionPolicy: 'Retain',
      source: { snapshotHandle },
      volumeSnapshotRef: { namespace: systemNamespace, name },
    },
  }
  await target.client.create(contents, imported, { signal }).catch(tolerate('AlreadyExists')).catch(missingRight)
  await ensureSnapshot(
    target,
    systemNamespace,
    {
      ...{ apiVersion: 'snapshot.storage.k8s.io/v1', kind: 'VolumeSnapshot' },
      metadata: { name, namespace: systemNamespace, labels },
      spec: { source: { volumeSnapshotContentName: name } },
    },
    signal,
  )
  return { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name }
}

async function ensureSnapshot(
  { client, name: member }: MemberSide,
  namespace: string,
  snapshot: KubeObject,
  signal: AbortSignal,
): Promise<Snapshot> {
  const ref = { namespace, name: snapshot.metadata.name ?? '' }
  const found = await client.tryGet<Snapshot>(snapshots, ref, { signal }).catch(missingRight)
  if (found === undefined) await client.create(snapshots, snapshot, { signal }).catch(missingRight)
  if (found?.status?.readyToUse === true) return found
  const { message } = found?.status?.error ?? {}
  const where = `the snapshot in member cluster "${member}" is not ready`
  throw new Obstacle(
    message === undefined ? 'Working' : 'SnapshotFailed',
    message === undefined ? where : `${where}: ${message}`,
    {
      againSeconds: 0.5,
    },
  )
}

/** Deletes the snapshots of the move in the members that are not gone or lost; true once they are deleted. */
export async function removeSnapshots({
  move,
  source,
  target,
  isSourceLost = false,
  signal,
}: VolumeParties & { readonly isSourceLost?: boolean }): Promise<boolean> {
  const name = newClaimName(move)
  const label = move.metadata.name
  let isGone = true
  for (const [{ client, isGone: isMemberGone }, namespace] of [
    [target, systemNamespace],
    ...(isSourceLost ? [] : ([[source, source.namespace]] as const)),
  ] as const) {
    if (isMemberGone) continue
    const found = await client.tryGet<Snapshot>(snapshots, { namespace, name }, { signal })
    if (found?.metadata.labels?.[volumeMoveLabel] !== label) continue
    isGone = false
    await client.delete(snapshots, { namespace, name }, { signal }).catch(tolerate('NotFound'))
  }
  if (target.isGone) return isGone
  const content = await target.client.tryGet<KubeObject>(contents, { name }, { signal })
  if (content?.metadata.labels?.[volumeMoveLabel] === label)
    await target.client.delete(contents, { name }, { signal }).catch(tolerate('NotFound'))
  return isGone
}
