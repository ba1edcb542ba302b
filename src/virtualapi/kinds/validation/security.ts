// Validation of the security contexts of pods and containers.
import type { V1PodSecurityContext, V1PodSpec, V1SecurityContext, V1Sysctl } from '@kubernetes/client-node'
import { byteLength } from '#apimachinery/field/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { internalText } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { appArmorProfile, seccompProfile } from './security-profiles.ts'
import {
  all,
  between,
  each,
  fields,
  firstOf,
  must,
  oneOf,
  optional,
  required,
  unique,
  type Rule,
} from './vocabulary.ts'
import { windowsOptions } from './windows-options.ts'

type PodSpec = Data<V1PodSpec>
type PodContext = Data<V1PodSecurityContext>

const id = between(0, 2 ** 31 - 1)
const maxSysctlBytes = 253
const sysctlForm = /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/
const sysctlName = must(
  (name: string) => byteLength(name) <= maxSysctlBytes && sysctlForm.test(name),
  `must have at most ${maxSysctlBytes} characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`,
)
const ipcSysctls = new Set([
  'kernel.sem',
  ...['all', 'max', 'mni', '_rmid_forced', ''].map((word) => `kernel.shm${word}`),
  ...['max', 'mnb', 'mni', ''].map((word) => `kernel.msg${word}`),
])

const sysctl = fields<Data<V1Sysctl>, PodSpec>({
  name: all<string, PodSpec>(
    required(firstOf<string>(sysctlName, unique())),
    (name, report, { hostNetwork, hostIPC }) => {
      const namespace = sysctlNamespace(name)
      if (hostNetwork === true && namespace === 'net')
        report.invalid('', name, "may not be specified when 'hostNetwork' is true")
      else if (hostIPC === true && namespace === 'ipc')
        report.invalid('', name, "may not be specified when 'hostIPC' is true")
    },
  ),
})

function sysctlNamespace(name: string): 'net' | 'ipc' | undefined {
  // If the first separator is a slash, slashes separate the parts of the name, and dots belong to the parts.
  const first = name.search(/[./]/)
  const dotted = name[first] === '/' ? name.replace(/[./]/g, (separator) => (separator === '/' ? '.' : '/')) : name
  if (dotted.startsWith('net.')) return 'net'
  return dotted.startsWith('fs.mqueue.') || ipcSysctls.has(dotted) ? 'ipc' : undefined
}

const podContext = all<PodContext, PodSpec>(
  fields<PodContext>({ fsGroup: id, runAsUser: id, runAsGroup: id, supplementalGroups: each(id) }),
  (_, report, { hostPID, shareProcessNamespace: shared }) => {
    if (hostPID === true && shared === true)
      report.invalid('shareProcessNamespace', true, 'ShareProcessNamespace and HostPID cannot both be enabled')
  },
  fields<PodContext, PodSpec>({
    sysctls: each(sysctl),
    fsGroupChangePolicy: oneOf(['Always', 'OnRootMismatch']),
    seccompProfile: optional(seccompProfile),
    windowsOptions: optional(windowsOptions),
    appArmorProfile: optional(appArmorProfile),
    supplementalGroupsPolicy: oneOf(['Merge', 'Strict']),
    seLinuxChangePolicy: oneOf(['MountOption', 'Recursive']),
  }),
)
/** The security context of a pod. Its rules get the spec of the pod as context. */
export const podSecurity: Rule<PodSpec> = (spec, report) => {
  if (spec.securityContext) report.at('securityContext', podContext, spec.securityContext, spec)
}

interface UserNamespace {
  /** True: the pod uses the user namespace of the node. */
  readonly hostUsers: boolean
}

/** The security context of a container. */
export const containerSecurity = all<Data<V1SecurityContext>, UserNamespace>(
  fields({ runAsUser: id, runAsGroup: id, procMount: oneOf(['Default', 'Unmasked']) }),
  ({ procMount }, report, { hostUsers }) => {
    if (hostUsers && procMount === 'Unmasked')
      report.invalid('procMount', procMount, '`hostUsers` must be false to use `Unmasked`')
  },
  fields({ seccompProfile: optional(seccompProfile) }),
  (context, report) => {
    const { allowPrivilegeEscalation, privileged, capabilities } = context
    if (allowPrivilegeEscalation !== false) return
    const said = 'cannot set `allowPrivilegeEscalation` to false and'
    const admin = capabilities?.add?.filter((name) => name === 'CAP_SYS_ADMIN').length ?? 0
    if (privileged !== true && admin === 0) return
    // The text of the context is made once, because it may be long and occur in many errors.
    const shown = internalText('core.SecurityContext', context)
    if (privileged === true) report.invalidText('', shown, `${said} \`privileged\` to true`)
    for (let count = 0; count < admin; count++)
      report.invalidText('', shown, `${said} \`capabilities.Add\` CAP_SYS_ADMIN`)
  },
  fields({ windowsOptions: optional(windowsOptions), appArmorProfile: optional(appArmorProfile) }),
)
