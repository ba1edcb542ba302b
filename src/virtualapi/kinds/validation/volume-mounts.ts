// Validation of the mounts and block devices of a container.
import type { V1VolumeDevice, V1VolumeMount } from '@kubernetes/client-node'
import {
  fieldForbidden,
  fieldInvalid,
  fieldNotFound,
  fieldNotSupported,
  fieldRequired,
} from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { relativePathInside, withoutParentSteps } from './values.ts'
import type { Volume } from './volumes.ts'

type Mount = Data<V1VolumeMount>
type Device = Data<V1VolumeDevice>

interface VolumeUses {
  readonly volumeMounts?: readonly Mount[]
  readonly volumeDevices?: readonly Device[]
  readonly securityContext?: { readonly privileged?: boolean }
}

const propagations = ['Bidirectional', 'HostToContainer', 'None']
const recursiveReadOnly = ['Disabled', 'Enabled', 'IfPossible']

/** Validation errors of the volume mounts and devices of the container at `path`. */
export function mountCauses(path: string, container: VolumeUses, volumes: ReadonlyMap<string, Volume>): StatusCause[] {
  const { volumeMounts: mounts = [], volumeDevices: devices = [] } = container
  if (mounts.length === 0 && devices.length === 0) return []
  const privileged = container.securityContext?.privileged === true
  return [
    ...mountsCauses(`${path}.volumeMounts`, mounts, usesOf(devices, 'devicePath'), volumes, privileged),
    ...devicesCauses(`${path}.volumeDevices`, devices, usesOf(mounts, 'mountPath'), volumes),
  ]
}

interface NamesAndPaths {
  readonly names: ReadonlySet<string>
  readonly paths: ReadonlySet<string>
}

/** Names and paths; if a volume occurs several times, its last path counts, as upstream. */
function usesOf<Member extends string>(
  uses: readonly ({ readonly name: string } & Readonly<Record<Member, string>>)[],
  member: Member,
): NamesAndPaths {
  const byName = new Map(uses.map((use) => [use.name, use[member] as string]))
  return { names: new Set(byName.keys()), paths: new Set(byName.values()) }
}

function mountsCauses(
  path: string,
  mounts: readonly Mount[],
  devices: NamesAndPaths,
  volumes: ReadonlyMap<string, Volume>,
  privileged: boolean,
): StatusCause[] {
  const paths = new Set<string>()
  return mounts.flatMap((mount, index) => {
    const { name, mountPath, subPath, subPathExpr } = mount
    const at = `${path}[${index}]`
    const causes: StatusCause[] = []
    if (name === '') causes.push(fieldRequired(`${at}.name`))
    if (!volumes.has(name)) causes.push(fieldNotFound(`${at}.name`, name))
    if (mountPath === '') causes.push(fieldRequired(`${at}.mountPath`))
    if (paths.has(mountPath)) causes.push(fieldInvalid(`${at}.mountPath`, mountPath, 'must be unique'))
    paths.add(mountPath)
    if (devices.names.has(name))
      causes.push(fieldInvalid(`${at}.name`, name, 'must not already exist in volumeDevices'))
    if (devices.paths.has(mountPath))
      causes.push(fieldInvalid(`${at}.mountPath`, mountPath, 'must not already exist as a path in volumeDevices'))
    // As upstream, whose paths lack the index here and in the errors of propagationCauses and readOnlyCauses.
    if (subPath) causes.push(...relativePathInside(`${path}.subPath`, subPath))
    if (subPath && subPathExpr)
      causes.push(fieldInvalid(`${at}.subPathExpr`, subPathExpr, 'subPathExpr and subPath are mutually exclusive'))
    if (subPathExpr) causes.push(...relativePathInside(`${path}.subPathExpr`, subPathExpr))
    return [...causes, ...propagationCauses(path, mount, privileged), ...readOnlyCauses(path, mount)]
  })
}

function propagationCauses(path: string, { mountPropagation: propagation }: Mount, privileged: boolean): StatusCause[] {
  const at = `${path}.mountPropagation`
  if (propagation === undefined) return []
  if (!propagations.includes(propagation)) return [fieldNotSupported(at, propagation, propagations)]
  return propagation === 'Bidirectional' && !privileged
    ? [fieldForbidden(at, 'Bidirectional mount propagation is available only to privileged containers')]
    : []
}

function readOnlyCauses(path: string, mount: Mount): StatusCause[] {
  const { recursiveReadOnly: wanted, readOnly, mountPropagation } = mount
  const at = `${path}.recursiveReadOnly`
  if (wanted === undefined || wanted === 'Disabled') return []
  if (!recursiveReadOnly.includes(wanted)) return [fieldNotSupported(at, wanted, recursiveReadOnly)]
  return [
    ...(readOnly === true ? [] : [fieldForbidden(at, 'may only be specified when readOnly is true')]),
    ...(mountPropagation === undefined || mountPropagation === 'None'
      ? []
      : [fieldForbidden(at, 'may only be specified when mountPropagation is None or not specified')]),
  ]
}

function devicesCauses(
  path: string,
  devices: readonly Device[],
  mounts: NamesAndPaths,
  volumes: ReadonlyMap<string, Volume>,
): StatusCause[] {
  const paths = new Set<string>()
  const names = new Set<string>()
  return devices.flatMap(({ name, devicePath }, index) => {
    const at = `${path}[${index}]`
    const volume = volumes.get(name)
    const causes: StatusCause[] = []
    if (name === '') causes.push(fieldRequired(`${at}.name`))
    if (names.has(name)) causes.push(fieldInvalid(`${at}.name`, name, 'must be unique'))
    if (volume === undefined) causes.push(fieldNotFound(`${at}.name`, name))
    else if (!volume.persistentVolumeClaim && !volume.ephemeral)
      causes.push(
        fieldInvalid(
          `${at}.name`,
          name,
          'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
        ),
      )
    if (devicePath === '') causes.push(fieldRequired(`${at}.devicePath`))
    if (paths.has(devicePath)) causes.push(fieldInvalid(`${at}.devicePath`, devicePath, 'must be unique'))
    if (withoutParentSteps('', devicePath).length > 0)
      causes.push(fieldInvalid(`${at}.devicePath`, devicePath, "can not contain backsteps ('..')"))
    else paths.add(devicePath)
    if (mounts.names.has(name)) causes.push(fieldInvalid(`${at}.name`, name, 'must not already exist in volumeMounts'))
    if (mounts.paths.has(devicePath))
      causes.push(fieldInvalid(`${at}.devicePath`, devicePath, 'must not already exist as a path in volumeMounts'))
    if (name !== '') names.add(name)
    return causes
  })
}
