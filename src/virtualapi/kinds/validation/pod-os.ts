// Validation of a pod against its operating system and its user namespace.
import type { V1Container, V1PodSpec } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'

type PodSpec = Data<V1PodSpec>
type Container = Pick<Data<V1Container>, 'name' | 'securityContext' | 'volumeDevices'>

const systems = ['linux', 'windows']
const notOnWindows = 'cannot be set for a windows pod'
const notOnLinux = 'windows options cannot be set for a linux pod'
const ofPodContext = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'fsGroup',
  'fsGroupChangePolicy',
  'sysctls',
  'runAsUser',
  'runAsGroup',
  'supplementalGroups',
  'supplementalGroupsPolicy',
  'seLinuxChangePolicy',
] as const
const ofContainerContext = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'capabilities',
  'readOnlyRootFilesystem',
  'privileged',
  'allowPrivilegeEscalation',
  'procMount',
  'runAsUser',
  'runAsGroup',
] as const

/** All containers of a pod with their paths, in upstream's order. */
export function containersOf(path: string, spec: PodSpec): [path: string, container: Container][] {
  return (['initContainers', 'containers', 'ephemeralContainers'] as const).flatMap((member) =>
    ((spec[member] as readonly Container[] | null | undefined) ?? []).map((container, index): [string, Container] => [
      `${path}.${member}[${index}]`,
      container,
    ]),
  )
}

/** Errors for fields that the pod's operating system does not have. */
export function osCauses(path: string, spec: PodSpec): StatusCause[] {
  const { os } = spec
  if (os === undefined) return []
  if (os.name === '') return [fieldRequired(`${path}.os.name`)]
  if (!systems.includes(os.name)) return [fieldNotSupported(`${path}.os`, os.name, systems)]
  return os.name === 'linux' ? linuxCauses(path, spec) : windowsCauses(path, spec)
}

function linuxCauses(path: string, spec: PodSpec): StatusCause[] {
  const contexts = [[path, spec] as const, ...containersOf(path, spec)]
  return contexts.flatMap(([at, { securityContext }]) =>
    securityContext?.windowsOptions === undefined
      ? []
      : [fieldForbidden(`${at}.securityContext.windowsOptions`, notOnLinux)],
  )
}

function windowsCauses(path: string, spec: PodSpec): StatusCause[] {
  const { securityContext: context } = spec
  const own = (['hostUsers', 'hostPID', 'hostIPC', 'shareProcessNamespace'] as const).filter((member) =>
    member === 'hostPID' || member === 'hostIPC' ? spec[member] === true : spec[member] !== undefined,
  )
  return [
    ...own.map((member) => fieldForbidden(`${path}.${member}`, notOnWindows)),
    ...ofPodContext
      .filter((member) => context?.[member] !== undefined)
      .map((member) => fieldForbidden(`${path}.securityContext.${member}`, notOnWindows)),
    ...containersOf(path, spec).flatMap(([at, { securityContext }]) =>
      ofContainerContext
        .filter((member) => securityContext?.[member] !== undefined)
        .map((member) => fieldForbidden(`${at}.securityContext.${member}`, notOnWindows)),
    ),
  ]
}

/** Validates Windows HostProcess containers: all containers of a pod or none, and only with hostNetwork. */
export function hostProcessCauses(path: string, spec: PodSpec): StatusCause[] {
  const ofPod = spec.securityContext?.windowsOptions?.hostProcess
  const all = containersOf(path, spec)
  let count = 0
  const causes = all.flatMap(([at, { securityContext }]) => {
    const own = securityContext?.windowsOptions?.hostProcess
    if (own ?? ofPod ?? false) count++
    if (own === undefined || ofPod === undefined || own === ofPod) return []
    const detail = `pod hostProcess value must be identical if both are specified, was ${ofPod}`
    return [fieldInvalid(`${at}.securityContext.windowsOptions.hostProcess`, own, detail)]
  })
  if (count === 0) return causes
  if (count !== all.length)
    causes.push(
      fieldInvalid(
        path,
        '',
        'If pod contains any hostProcess containers then all containers must be HostProcess containers',
      ),
    )
  if (spec.hostNetwork !== true)
    causes.push(
      fieldInvalid(`${path}.hostNetwork`, false, 'hostNetwork must be true if pod contains any hostProcess containers'),
    )
  return causes
}

/** A pod with a user namespace of its own (hostUsers: false) may not use other namespaces of the node. */
export function hostUsersCauses(path: string, spec: PodSpec): StatusCause[] {
  if (spec.hostUsers !== false) return []
  const detail = 'when `hostUsers` is false'
  return [
    ...(spec.hostNetwork === true ? [fieldForbidden(`${path}.hostNetwork`, detail)] : []),
    // As upstream, which spells these two paths with a capital letter.
    ...(spec.hostPID === true ? [fieldForbidden(`${path}.HostPID`, detail)] : []),
    ...(spec.hostIPC === true ? [fieldForbidden(`${path}.HostIPC`, detail)] : []),
    ...containersOf(path, spec).flatMap(([at, { volumeDevices }]) =>
      volumeDevices?.length ? [fieldForbidden(`${at}.volumeDevices`, detail)] : [],
    ),
  ]
}
