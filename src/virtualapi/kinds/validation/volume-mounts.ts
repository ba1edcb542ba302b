// Validation of the mounts and block devices of a container.
import type { V1VolumeDevice, V1VolumeMount } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { relativePathInside } from './basic-rules.ts'
import { all, fields, given, must, nonEmpty, oneOf, type Rule } from './vocabulary.ts'
import type { Volume } from './volumes.ts'

type Mount = Data<V1VolumeMount>
type Device = Data<V1VolumeDevice>

interface VolumeUses {
  readonly volumeMounts?: readonly Mount[]
  readonly volumeDevices?: readonly Device[]
  readonly securityContext?: { readonly privileged?: boolean }
}

interface Context {
  readonly volumes: ReadonlyMap<string, Volume>
  readonly privileged: boolean
  /**
   * The names and paths of the other kind of uses: devices for a mount, mounts for a device. As upstream, the last path
   * counts if a volume occurs several times.
   */
  readonly names: ReadonlySet<string>
  readonly paths: ReadonlySet<string>
}

/** The volume mounts and devices of a container. */
export const volumeUses: Rule<VolumeUses, { readonly volumes: ReadonlyMap<string, Volume> }> = (
  { volumeMounts: mounts, volumeDevices: devices, securityContext },
  report,
  { volumes },
) => {
  if (!mounts?.length && !devices?.length) return
  const shared = { volumes, privileged: securityContext?.privileged === true }
  const pathOfDevice = new Map(devices?.map(({ name, devicePath }) => [name, devicePath]))
  const pathOfMount = new Map(mounts?.map(({ name, mountPath }) => [name, mountPath]))
  report.at('volumeMounts', mountList, mounts, { ...shared, ...usesOf(pathOfDevice) })
  report.at('volumeDevices', deviceList, devices, { ...shared, ...usesOf(pathOfMount) })
}

const usesOf = (byName: ReadonlyMap<string, string>): Pick<Context, 'names' | 'paths'> => ({
  names: new Set(byName.keys()),
  paths: new Set(byName.values()),
})

const mustBeUnique = 'must be unique'

/** The rules of one mount. As upstream, some paths have no index. */
const mount = all<Mount, Context>(
  fields<Mount, Context>({
    name: all<string, Context>(nonEmpty(), (name, report, { volumes }) => {
      if (!volumes.has(name)) report.notFound('', name)
    }),
    mountPath: all<string>(nonEmpty(), (path, report) => {
      if (report.isRepeated(mountList, path)) report.invalid('', path, mustBeUnique)
    }),
  }),
  fields<Mount, Context>({
    name: must((name, { names }) => !names.has(name), 'must not already exist in volumeDevices'),
    mountPath: must((path, { paths }) => !paths.has(path), 'must not already exist as a path in volumeDevices'),
  }),
  ({ subPath, subPathExpr }, report) => {
    report.at('../subPath', subPathRule, subPath)
    if (subPath && subPathExpr)
      report.invalid('subPathExpr', subPathExpr, 'subPathExpr and subPath are mutually exclusive')
    report.at('../subPathExpr', subPathRule, subPathExpr)
  },
  ({ mountPropagation: propagation }, report, { privileged }) => {
    report.at('../mountPropagation', propagationMode, propagation)
    if (propagation === 'Bidirectional' && !privileged)
      report.forbidden(
        '../mountPropagation',
        'Bidirectional mount propagation is available only to privileged containers',
      )
  },
  ({ recursiveReadOnly: wanted, readOnly, mountPropagation: propagation }, report) => {
    report.at('../recursiveReadOnly', recursion, wanted)
    if (wanted !== 'Enabled' && wanted !== 'IfPossible') return
    if (readOnly !== true) report.forbidden('../recursiveReadOnly', 'may only be specified when readOnly is true')
    if (propagation !== undefined && propagation !== 'None')
      report.forbidden('../recursiveReadOnly', 'may only be specified when mountPropagation is None or not specified')
  },
)
const subPathRule = given(relativePathInside)
const propagationMode = oneOf(['Bidirectional', 'HostToContainer', 'None'])
const recursion = oneOf(['Disabled', 'Enabled', 'IfPossible'])

const mountList: Rule<readonly Mount[] | undefined, Context> = (mounts, report, context) =>
  report.each(mounts, mount, context)

const device: Rule<Device, Context> = ({ name, devicePath }, report, { volumes, names, paths }) => {
  const volume = volumes.get(name)
  if (name === '') report.required('name')
  else if (report.isRepeated(deviceNames, name)) report.invalid('name', name, mustBeUnique)
  if (volume === undefined) report.notFound('name', name)
  else if (!volume.persistentVolumeClaim && !volume.ephemeral)
    report.invalid('name', name, 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode')
  const backsteps = devicePath.split('/').includes('..')
  if (devicePath === '') report.required('devicePath')
  // A path with backsteps does not count as an earlier path.
  if (!backsteps && report.isRepeated(devicePaths, devicePath)) report.invalid('devicePath', devicePath, mustBeUnique)
  if (backsteps) report.invalid('devicePath', devicePath, "can not contain backsteps ('..')")
  if (names.has(name)) report.invalid('name', name, 'must not already exist in volumeMounts')
  if (paths.has(devicePath))
    report.invalid('devicePath', devicePath, 'must not already exist as a path in volumeMounts')
}
const deviceNames = {}
const devicePaths = {}

const deviceList: Rule<readonly Device[] | undefined, Context> = (devices, report, context) =>
  report.each(devices, device, context)
