// Validation of the security contexts of pods and containers.
import type { V1PodSecurityContext, V1PodSpec, V1SecurityContext } from '@kubernetes/client-node'
import { fieldDuplicate, fieldInvalid, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { internalText } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { appArmorCauses, seccompCauses } from './security-profiles.ts'
import { between } from './values.ts'
import { windowsOptionsCauses } from './windows-options.ts'

const maxId = 2 ** 31 - 1
const maxSysctlBytes = 253
const sysctlText = `must have at most ${maxSysctlBytes} characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`
const sysctl = /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/
const ipcSysctls = new Set([
  'kernel.sem',
  ...['all', 'max', 'mni', '_rmid_forced', ''].map((word) => `kernel.shm${word}`),
  ...['max', 'mnb', 'mni', ''].map((word) => `kernel.msg${word}`),
])

/** Validates the security context of the pod with this spec. */
export function podSecurityCauses(path: string, spec: Data<V1PodSpec>): StatusCause[] {
  const { securityContext: context, hostPID, shareProcessNamespace } = spec
  if (context === undefined) return []
  return [
    ...between(`${path}.fsGroup`, context.fsGroup, 0, maxId),
    ...between(`${path}.runAsUser`, context.runAsUser, 0, maxId),
    ...between(`${path}.runAsGroup`, context.runAsGroup, 0, maxId),
    ...(context.supplementalGroups ?? []).flatMap((group, index) =>
      between(`${path}.supplementalGroups[${index}]`, group, 0, maxId),
    ),
    ...(hostPID === true && shareProcessNamespace === true
      ? [
          fieldInvalid(
            `${path}.shareProcessNamespace`,
            true,
            'ShareProcessNamespace and HostPID cannot both be enabled',
          ),
        ]
      : []),
    ...sysctlsCauses(`${path}.sysctls`, context.sysctls, spec),
    ...optionalEnum(`${path}.fsGroupChangePolicy`, context.fsGroupChangePolicy, ['Always', 'OnRootMismatch']),
    ...seccompCauses(`${path}.seccompProfile`, context.seccompProfile),
    ...windowsOptionsCauses(`${path}.windowsOptions`, context.windowsOptions),
    ...appArmorCauses(`${path}.appArmorProfile`, context.appArmorProfile),
    ...optionalEnum(`${path}.supplementalGroupsPolicy`, context.supplementalGroupsPolicy, ['Merge', 'Strict']),
    ...optionalEnum(`${path}.seLinuxChangePolicy`, context.seLinuxChangePolicy, ['MountOption', 'Recursive']),
  ]
}

/** Validates an enum value; unlike `oneOf`, the empty string is not accepted. */
function optionalEnum(path: string, value: string | undefined, known: readonly string[]): StatusCause[] {
  return value === undefined || known.includes(value) ? [] : [fieldNotSupported(path, value, known)]
}

function sysctlsCauses(
  path: string,
  sysctls: Data<V1PodSecurityContext>['sysctls'],
  { hostNetwork, hostIPC }: Data<V1PodSpec>,
): StatusCause[] {
  const names = new Set<string>()
  return (sysctls ?? []).flatMap(({ name }, index) => {
    const at = `${path}[${index}].name`
    const causes: StatusCause[] = []
    if (name === '') causes.push(fieldRequired(at))
    else if (Buffer.byteLength(name) > maxSysctlBytes || !sysctl.test(name))
      causes.push(fieldInvalid(at, name, sysctlText))
    else if (names.has(name)) causes.push(fieldDuplicate(at, name))
    names.add(name)
    const namespace = sysctlNamespace(name)
    if (hostNetwork === true && namespace === 'net')
      causes.push(fieldInvalid(at, name, "may not be specified when 'hostNetwork' is true"))
    else if (hostIPC === true && namespace === 'ipc')
      causes.push(fieldInvalid(at, name, "may not be specified when 'hostIPC' is true"))
    return causes
  })
}

function sysctlNamespace(name: string): 'net' | 'ipc' | undefined {
  // If a slash comes first, slashes separate the parts of the name and dots belong to the parts.
  const first = name.search(/[./]/)
  const dotted = name[first] === '/' ? name.replace(/[./]/g, (separator) => (separator === '/' ? '.' : '/')) : name
  if (dotted.startsWith('net.')) return 'net'
  return dotted.startsWith('fs.mqueue.') || ipcSysctls.has(dotted) ? 'ipc' : undefined
}

/** Validates the security context of a container. `hostUsers`: the pod uses the user namespace of the node. */
export function containerSecurityCauses(
  path: string,
  context: Data<V1SecurityContext> | undefined,
  hostUsers: boolean,
): StatusCause[] {
  if (context === undefined) return []
  const { procMount } = context
  return [
    ...between(`${path}.runAsUser`, context.runAsUser, 0, maxId),
    ...between(`${path}.runAsGroup`, context.runAsGroup, 0, maxId),
    ...optionalEnum(`${path}.procMount`, procMount, ['Default', 'Unmasked']),
    ...(hostUsers && procMount === 'Unmasked'
      ? [fieldInvalid(`${path}.procMount`, procMount, '`hostUsers` must be false to use `Unmasked`')]
      : []),
    ...seccompCauses(`${path}.seccompProfile`, context.seccompProfile),
    ...escalationCauses(path, context),
    ...windowsOptionsCauses(`${path}.windowsOptions`, context.windowsOptions),
    ...appArmorCauses(`${path}.appArmorProfile`, context.appArmorProfile),
  ]
}

function escalationCauses(path: string, context: Data<V1SecurityContext>): StatusCause[] {
  const { allowPrivilegeEscalation, privileged, capabilities } = context
  if (allowPrivilegeEscalation !== false) return []
  const said = 'cannot set `allowPrivilegeEscalation` to false and'
  const admin = (capabilities?.add ?? []).filter((name) => name === 'CAP_SYS_ADMIN').length
  if (privileged !== true && admin === 0) return []
  // Printed once, because the context may be long and occur in many errors.
  const shown = internalText('core.SecurityContext', context)
  const cause = (detail: string): StatusCause => ({
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${shown}: ${detail}`,
    field: path,
  })
  return [
    ...(privileged === true ? [cause(`${said} \`privileged\` to true`)] : []),
    ...new Array<StatusCause>(admin).fill(cause(`${said} \`capabilities.Add\` CAP_SYS_ADMIN`)),
  ]
}
