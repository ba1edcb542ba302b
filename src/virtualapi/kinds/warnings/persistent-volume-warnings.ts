// Warnings about deprecated fields and annotations of PersistentVolumes and PersistentVolumeClaims.
import type { V1PersistentVolumeSpec } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { claimResourceWarnings } from './fractional-byte-warnings.ts'
import { nodeTermWarnings } from './scheduling-warnings.ts'

type Annotations = Readonly<Record<string, string>> | undefined
type Spec = Data<V1PersistentVolumeSpec>

const classAnnotation = 'volume.beta.kubernetes.io/storage-class'
const useClass = 'deprecated since v1.8; use "storageClassName" attribute instead'

const obsoleteAnnotations: readonly (readonly [key: string, why: string])[] = [
  [classAnnotation, useClass],
  ['volume.beta.kubernetes.io/mount-options', 'deprecated since v1.31; use "mountOptions" attribute instead'],
]

/** Deprecated volume plugins: the member, upstream's name of it in warnings, and the warning. */
const obsoletePlugins: readonly (readonly [member: keyof Spec, shown: string, why: string])[] = [
  ['cephfs', 'cephfs', 'deprecated in v1.28, non-functional in v1.31+'],
  ['photonPersistentDisk', 'photonPersistentDisk', 'deprecated in v1.11, non-functional in v1.16+'],
  ['scaleIO', 'scaleIO', 'deprecated in v1.16, non-functional in v1.22+'],
  ['storageos', 'storageOS', 'deprecated in v1.22, non-functional in v1.25+'],
  ['glusterfs', 'glusterfs', 'deprecated in v1.25, non-functional in v1.26+'],
  ['rbd', 'rbd', 'deprecated in v1.28, non-functional in v1.31+'],
]

/** Warnings about a PersistentVolume. */
export function persistentVolumeWarnings(annotations: Annotations, spec: Spec): string[] {
  const terms = spec.nodeAffinity?.required?.nodeSelectorTerms ?? []
  return [
    ...obsoleteAnnotations.flatMap(([key, why]) =>
      annotations?.[key] === undefined ? [] : [`metadata.annotations[${key}]: ${why}`],
    ),
    ...(spec.persistentVolumeReclaimPolicy === 'Recycle'
      ? [
          'spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.',
        ]
      : []),
    ...terms.flatMap((term, index) => [
      ...nodeTermWarnings(`spec.nodeAffinity.required.nodeSelectorTerms[${index}]`, term),
    ]),
    ...obsoletePlugins.flatMap(([member, shown, why]) => (spec[member] === undefined ? [] : [`spec.${shown}: ${why}`])),
  ]
}

/** Warnings about a PersistentVolumeClaim. */
export function claimWarnings(
  annotations: Annotations,
  resources: Parameters<typeof claimResourceWarnings>[1],
): string[] {
  return [
    ...(annotations?.[classAnnotation] === undefined ? [] : [`metadata.annotations[${classAnnotation}]: ${useClass}`]),
    ...claimResourceWarnings('spec.resources', resources),
  ]
}
