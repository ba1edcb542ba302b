// Validation of a pod against its operating system and its user namespace.
import type { V1Container, V1PodSpec } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { fields, forbidden, oneOf, type Report, type Rule } from './vocabulary.ts'

type PodSpec = Data<V1PodSpec>
type Container = Pick<Data<V1Container>, 'name' | 'securityContext' | 'volumeDevices'>
type Context = NonNullable<Container['securityContext']>
type PodContext = NonNullable<PodSpec['securityContext']>

const lists = ['initContainers', 'containers', 'ephemeralContainers'] as const

/** Calls the function for all containers of a pod, in upstream's order. `place`: relative to the pod's spec. */
export function eachContainer(spec: PodSpec, call: (container: Container, place: string) => void): void {
  for (const member of lists)
    for (const [index, container] of ((spec[member] as readonly Container[] | null | undefined) ?? []).entries())
      call(container, `${member}[${index}]`)
}

const system = oneOf(['linux', 'windows'])

/** Errors for fields that the pod's operating system does not have. */
export const operatingSystem: Rule<PodSpec> = (spec, report) => {
  const { os, securityContext } = spec
  if (os?.name === '') report.required('os.name')
  else report.at('os', system, os?.name)
  const isWindows = os?.name === 'windows'
  if (!isWindows && os?.name !== 'linux') return
  if (isWindows) report.check(windowsPod, spec)
  if (securityContext) report.at('securityContext', isWindows ? windowsPodContext : linuxContext, securityContext)
  eachContainer(spec, ({ securityContext: own }, place) => {
    if (own) report.at(`${place}.securityContext`, isWindows ? windowsContext : linuxContext, own)
  })
}

const linuxContext = fields<Pick<Context, 'windowsOptions'>>({
  windowsOptions: forbidden('windows options cannot be set for a linux pod'),
})
const no = forbidden('cannot be set for a windows pod')
const noTrue: Rule<boolean | undefined> = (value, report) => report.check(no, value === true ? value : undefined)
const windowsPod = fields<PodSpec>({ hostUsers: no, hostPID: noTrue, hostIPC: noTrue, shareProcessNamespace: no })
const windowsPodContext = fields<PodContext>({
  appArmorProfile: no,
  seLinuxOptions: no,
  seccompProfile: no,
  fsGroup: no,
  fsGroupChangePolicy: no,
  sysctls: no,
  runAsUser: no,
  runAsGroup: no,
  supplementalGroups: no,
  supplementalGroupsPolicy: no,
  seLinuxChangePolicy: no,
})
const windowsContext = fields<Context>({
  appArmorProfile: no,
  seLinuxOptions: no,
  seccompProfile: no,
  capabilities: no,
  readOnlyRootFilesystem: no,
  privileged: no,
  allowPrivilegeEscalation: no,
  procMount: no,
  runAsUser: no,
  runAsGroup: no,
})

/** Windows HostProcess containers: all containers of a pod or none, and only with hostNetwork. */
export const hostProcess: Rule<PodSpec> = (spec, report) => {
  const ofPod = spec.securityContext?.windowsOptions?.hostProcess
  let [count, containers] = [0, 0]
  eachContainer(spec, ({ securityContext }, place) => {
    const own = securityContext?.windowsOptions?.hostProcess
    containers++
    if (own ?? ofPod ?? false) count++
    if (own !== undefined && ofPod !== undefined && own !== ofPod)
      report.invalid(
        `${place}.securityContext.windowsOptions.hostProcess`,
        own,
        `pod hostProcess value must be identical if both are specified, was ${ofPod}`,
      )
  })
  if (count === 0) return
  if (count !== containers)
    report.invalid(
      '',
      '',
      'If pod contains any hostProcess containers then all containers must be HostProcess containers',
    )
  if (spec.hostNetwork !== true)
    report.invalid('hostNetwork', false, 'hostNetwork must be true if pod contains any hostProcess containers')
}

/** A pod with a user namespace of its own (hostUsers: false) may not use other namespaces of the node. */
export function checkHostUsers(spec: PodSpec, report: Report): void {
  if (spec.hostUsers !== false) return
  const detail = 'when `hostUsers` is false'
  if (spec.hostNetwork === true) report.forbidden('hostNetwork', detail)
  // Upstream spells these two paths with a capital letter.
  if (spec.hostPID === true) report.forbidden('HostPID', detail)
  if (spec.hostIPC === true) report.forbidden('HostIPC', detail)
  eachContainer(spec, ({ volumeDevices }, place) => {
    if (volumeDevices?.length) report.forbidden(`${place}.volumeDevices`, detail)
  })
}
