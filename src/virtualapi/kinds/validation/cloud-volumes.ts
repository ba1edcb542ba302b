// Validation of host paths, of cloud disks and of plugin drivers, in pods and in PersistentVolumes.
import type { V1AzureDiskVolumeSource, V1HostPathVolumeSource } from '@kubernetes/client-node'
import { fieldInvalid, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { withoutParentSteps, required } from './values.ts'

const hostPathTypes = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
]
const cachingModes = ['None', 'ReadOnly', 'ReadWrite']
const diskKinds = ['Dedicated', 'Managed', 'Shared']
const managedDisk = '/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}'
const blobDisk = 'https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd'

export function hostPathCauses(path: string, { path: file, type }: Data<V1HostPathVolumeSource>): StatusCause[] {
  if (file === '') return [fieldRequired(`${path}.path`)]
  return [
    ...withoutParentSteps(`${path}.path`, file),
    ...(type === undefined || hostPathTypes.includes(type)
      ? []
      : [fieldNotSupported(`${path}.type`, type, hostPathTypes)]),
  ]
}

/** Errors for required string members that are empty, such as the name of a disk. */
export function requiredMemberCauses(path: string, source: object, members: readonly string[]): StatusCause[] {
  return members.flatMap((member) => required(`${path}.${member}`, (source as Record<string, string>)[member]))
}

/** Validates a partition number; zero means the whole disk. */
export function partitionCauses(path: string, partition = 0): StatusCause[] {
  return partition < 0 || partition > 255
    ? [fieldInvalid(`${path}.partition`, partition, 'must be between 1 and 255, inclusive')]
    : []
}

export function azureDiskCauses(path: string, source: Data<V1AzureDiskVolumeSource>): StatusCause[] {
  const { diskURI, cachingMode, kind } = source
  const causes = requiredMemberCauses(path, source, ['diskName', 'diskURI'])
  if (cachingMode !== undefined && !cachingModes.includes(cachingMode))
    causes.push(fieldNotSupported(`${path}.cachingMode`, cachingMode, cachingModes))
  if (kind === undefined) return causes
  if (!diskKinds.includes(kind)) causes.push(fieldNotSupported(`${path}.kind`, kind, diskKinds))
  if (kind === 'Managed' && !diskURI.startsWith('/subscriptions/'))
    causes.push(fieldNotSupported(`${path}.diskURI`, diskURI, [managedDisk]))
  if (kind !== 'Managed' && !diskURI.startsWith('https://'))
    causes.push(fieldNotSupported(`${path}.diskURI`, diskURI, [blobDisk]))
  return causes
}

/** Validates a FlexVolume: it needs a driver, and its options may not use the namespaces of Kubernetes. */
export function flexCauses(path: string, source: { driver: string; options?: Record<string, string> }): StatusCause[] {
  return [
    ...required(`${path}.driver`, source.driver),
    ...Object.keys(source.options ?? {}).flatMap((key) => {
      const namespace = `.${key.split('/', 1)[0] ?? ''}`.toLowerCase()
      return namespace.endsWith('.kubernetes.io') || namespace.endsWith('.k8s.io')
        ? [fieldInvalid(`${path}.options[${key}]`, key, 'kubernetes.io and k8s.io namespaces are reserved')]
        : []
    }),
  ]
}

/** Validates a reference to a Secret: name and, if `namespaced`, namespace must be set. Their form is not checked. */
export function secretRefCauses(
  path: string,
  ref: { name?: string; namespace?: string } | undefined,
  { namespaced = false }: { namespaced?: boolean } = {},
): StatusCause[] {
  if (ref === undefined) return []
  return requiredMemberCauses(`${path}.secretRef`, ref, namespaced ? ['name', 'namespace'] : ['name'])
}
