// PersistentVolumeClaims: a volume for each claim, at once; the volume goes with its claim.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { keyOf, type Claim } from './objects.ts'
import type { Simulation } from './simulation.ts'

/** The StorageClass of a simulated member; the default one. */
export const storageClass = 'standard'
const provisioner = 'simulated.kcp.dev/volumes'
const bound = { 'pv.kubernetes.io/bind-completed': 'yes', 'pv.kubernetes.io/bound-by-controller': 'yes' }

/** The StorageClass as an object. */
export function storageClassObject(): KubeObject {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: storageClass, annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
    provisioner,
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'Immediate',
  }
}

export function startVolumes(simulation: Simulation): void {
  const { persistentvolumeclaims, persistentvolumes } = simulation.cache
  simulation.loop({
    name: 'persistentvolume-controller',
    follow(enqueue) {
      persistentvolumeclaims.onChange((after, before) => enqueue(keyOf((after ?? before) as Claim)))
      persistentvolumes.onChange((after) => {
        const { namespace, name } = after?.spec.claimRef ?? {}
        if (namespace !== undefined && name !== undefined) enqueue(`${namespace}/${name}`)
      })
    },
    reconcile: async (key) => {
      const claim = persistentvolumeclaims.get(key)
      if (claim === undefined) await removeVolumes(simulation, key)
      else if (claim.status?.phase !== 'Bound' && claim.metadata.deletionTimestamp === undefined)
        await bindClaim(simulation, claim)
    },
  })
}

/** Deletes volumes whose claim is gone, if their reclaim policy says so. */
async function removeVolumes(simulation: Simulation, key: string): Promise<void> {
  for (const volume of simulation.cache.persistentvolumes.all()) {
    const { claimRef, persistentVolumeReclaimPolicy } = volume.spec
    if (`${claimRef?.namespace ?? ''}/${claimRef?.name ?? ''}` !== key) continue
    if (persistentVolumeReclaimPolicy === 'Delete') await simulation.delete('persistentvolumes', volume)
    else if (volume.status?.phase !== 'Released')
      await simulation.patchStatus('persistentvolumes', volume, { phase: 'Released' })
  }
}

async function bindClaim(simulation: Simulation, claim: Claim): Promise<void> {
  const { uid = '', annotations } = claim.metadata
  const isOurs = (claim.spec.storageClassName ?? storageClass) === storageClass && claim.spec.storageClassName !== ''
  const wanted = claim.spec.volumeName ?? (isOurs ? `pvc-${uid}` : undefined)
  if (wanted === undefined) return
  const volume =
    simulation.cache.persistentvolumes.get(wanted) ??
    (isOurs ? await createVolume(simulation, claim, wanted) : undefined)
  if (volume === undefined) return
  const capacity = (volume.spec as { capacity?: unknown }).capacity
  const patch = { metadata: { annotations: { ...annotations, ...bound } }, spec: { volumeName: wanted } }
  if (claim.spec.volumeName !== wanted) await simulation.patch('persistentvolumeclaims', claim, patch)
  await simulation.patchStatus('persistentvolumes', volume, { phase: 'Bound' })
  const status = { phase: 'Bound', accessModes: claim.spec.accessModes ?? [], capacity }
  await simulation.patchStatus('persistentvolumeclaims', claim, status)
}

async function createVolume(simulation: Simulation, claim: Claim, name: string) {
  const { namespace = '', name: claimName = '', uid = '', resourceVersion = '' } = claim.metadata
  const object: KubeObject = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, annotations: { 'pv.kubernetes.io/provisioned-by': provisioner } },
    spec: {
      capacity: { storage: claim.spec.resources?.requests?.['storage'] ?? '1Gi' },
      accessModes: claim.spec.accessModes ?? ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Delete',
      storageClassName: storageClass,
      ...(claim.spec.volumeMode !== undefined && { volumeMode: claim.spec.volumeMode }),
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name: claimName, uid, resourceVersion },
      hostPath: { path: `/simulated/${name}` },
    },
  }
  try {
    return await simulation.create('persistentvolumes', object)
  } catch (error) {
    if (!isStatusError(error, 'AlreadyExists')) throw error
    return simulation.cache.persistentvolumes.get(name)
  }
}
