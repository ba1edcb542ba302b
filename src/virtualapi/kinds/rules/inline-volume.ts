// Validation of the inline volume of a VolumeAttachment: the spec of a PersistentVolume, restricted to CSI.
import type { V1CSIPersistentVolumeSource, V1PersistentVolumeSpec } from '@kubernetes/client-node'
import { fieldForbidden, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { driverNameCauses } from '#virtualapi/kinds/validation/driver-name.ts'
import { label, subdomain } from '#virtualapi/kinds/validation/values.ts'

type VolumeSpec = Data<V1PersistentVolumeSpec>
type CsiSource = Data<V1CSIPersistentVolumeSource>

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']
const context = 'in the context of inline volumes'
const secrets = [
  'controllerPublishSecretRef',
  'controllerExpandSecretRef',
  'nodePublishSecretRef',
  'nodeExpandSecretRef',
] as const

/** Members of the spec that are not volume sources. */
const nonSourceMembers: ReadonlySet<string> = new Set([
  'accessModes',
  'capacity',
  'claimRef',
  'mountOptions',
  'nodeAffinity',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'volumeAttributesClassName',
  'volumeMode',
])

/** Validation errors of the inline volume at `path`. */
export function inlineVolumeCauses(path: string, spec: VolumeSpec): StatusCause[] {
  const { claimRef, capacity, csi, persistentVolumeReclaimPolicy: policy, nodeAffinity, storageClassName } = spec
  const forbidden = (member: string, detail = 'may not be specified'): StatusCause =>
    fieldForbidden(`${path}.${member}`, `${detail} ${context}`)
  return [
    ...(claimRef === undefined ? [] : [forbidden('claimRef')]),
    ...(capacity === undefined ? [] : [forbidden('capacity')]),
    ...(csi === undefined ? [fieldRequired(`${path}.csi`, `has to be specified ${context}`)] : []),
    ...modeCauses(`${path}.accessModes`, spec.accessModes ?? []),
    ...(policy === undefined || policy === 'Retain'
      ? []
      : [forbidden('persistentVolumeReclaimPolicy', 'may only be Retain')]),
    ...(nodeAffinity === undefined ? [] : [forbidden('nodeAffinity')]),
    ...(csi === undefined ? [] : csiCauses(`${path}.csi`, csi)),
    ...(Object.keys(spec).every((member) => nonSourceMembers.has(member))
      ? [fieldRequired(path, 'must specify a volume type')]
      : []),
    ...(storageClassName === undefined ? [] : [forbidden('storageClassName')]),
    ...(spec.volumeMode === undefined || spec.volumeMode === 'Filesystem'
      ? []
      : [forbidden('volumeMode', 'may not specify volumeMode other than Filesystem')]),
  ]
}

function modeCauses(path: string, modes: readonly string[]): StatusCause[] {
  const others = modes.some((mode) => mode !== 'ReadWriteOncePod' && accessModes.includes(mode))
  return [
    ...(modes.length === 0 ? [fieldRequired(path)] : []),
    ...modes.filter((mode) => !accessModes.includes(mode)).map((mode) => fieldNotSupported(path, mode, accessModes)),
    ...(others && modes.includes('ReadWriteOncePod')
      ? [fieldForbidden(path, 'may not use ReadWriteOncePod with other access modes')]
      : []),
  ]
}

function csiCauses(path: string, csi: CsiSource): StatusCause[] {
  return [
    ...driverNameCauses(`${path}.driver`, csi.driver),
    ...(csi.volumeHandle === '' ? [fieldRequired(`${path}.volumeHandle`)] : []),
    ...secrets.flatMap((member) => {
      const reference = csi[member]
      return reference === undefined ? [] : secretCauses(`${path}.${member}`, reference)
    }),
  ]
}

function secretCauses(
  path: string,
  { name = '', namespace = '' }: { name?: string; namespace?: string },
): StatusCause[] {
  return [
    ...(name === '' ? [fieldRequired(`${path}.name`)] : subdomain(`${path}.name`, name)),
    ...(namespace === '' ? [fieldRequired(`${path}.namespace`)] : label(`${path}.namespace`, namespace)),
  ]
}
