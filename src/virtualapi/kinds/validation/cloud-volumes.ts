// Validation of host paths, of cloud disks and of plugin drivers, in pods and in PersistentVolumes.
import type { V1AzureDiskVolumeSource, V1HostPathVolumeSource } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { withoutParentSteps } from './basic-rules.ts'
import { all, eachKey, fields, firstOf, must, nonEmpty, oneOf, type Rule } from './vocabulary.ts'

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
const managedDisk = '/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}'
const blobDisk = 'https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd'

export const hostPath = firstOf<Data<V1HostPathVolumeSource>>(
  fields({ path: nonEmpty() }),
  fields({ path: withoutParentSteps, type: oneOf(hostPathTypes) }),
)

/** Members that must not be empty, such as the name of a disk. */
export function withMembers<M extends string>(...members: readonly M[]): Rule<{ readonly [N in M]?: unknown }> {
  return fields(Object.fromEntries(members.map((member) => [member, nonEmpty()])) as Record<M, Rule<unknown>>)
}

/** The number of a partition; zero means the whole disk. */
export const partition = must((number: number) => number >= 0 && number <= 255, 'must be between 1 and 255, inclusive')

export const azureDisk = all<Data<V1AzureDiskVolumeSource>>(
  fields({
    diskName: nonEmpty(),
    diskURI: nonEmpty(),
    cachingMode: oneOf(['None', 'ReadOnly', 'ReadWrite']),
    kind: oneOf(['Dedicated', 'Managed', 'Shared']),
  }),
  ({ kind, diskURI }, report) => {
    if (kind === 'Managed' && !diskURI.startsWith('/subscriptions/'))
      report.notSupported('diskURI', diskURI, [managedDisk])
    if (kind !== undefined && kind !== 'Managed' && !diskURI.startsWith('https://'))
      report.notSupported('diskURI', diskURI, [blobDisk])
  },
)

/** A FlexVolume needs a driver, and its options may not use the namespaces of Kubernetes. */
export const flexVolume = fields<{ driver: string; options?: Readonly<Record<string, string>> }>({
  driver: nonEmpty(),
  options: eachKey((key, report) => {
    const namespace = `.${key.split('/', 1)[0] ?? ''}`.toLowerCase()
    if (namespace.endsWith('.kubernetes.io') || namespace.endsWith('.k8s.io'))
      report.invalid(`[${key}]`, key, 'kubernetes.io and k8s.io namespaces are reserved')
  }),
})
