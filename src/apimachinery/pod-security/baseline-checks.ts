// The checks of the level baseline, against pods that can escape to their node (Pod Security Standards, KEP-2579).
import { goQuote } from '#apimachinery/text/index.ts'
import {
  badContainers,
  containersOf,
  containersText,
  plural,
  quoted,
  settersText,
  sortedSet,
  type CheckPod,
  type PodCheck,
} from './pod-check.ts'
import type { ContainerToCheck, HandlerToCheck, PodToCheck, SecurityContextToCheck } from './pod-to-check.ts'

const allowedCapabilities = new Set([
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
])

const seLinuxTypes = ['', 'container_t', 'container_init_t', 'container_kvm_t']

const sysctls0 = [
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.ping_group_range',
  'net.ipv4.ip_unprivileged_port_start',
]
const sysctls27 = [...sysctls0, 'net.ipv4.ip_local_reserved_ports']
const sysctls29 = [
  ...sysctls27,
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
]
const sysctls32 = [...sysctls29, 'net.ipv4.tcp_rmem', 'net.ipv4.tcp_wmem']

export const baselineChecks: readonly PodCheck[] = [
  { id: 'appArmorProfile', versions: [[0, appArmorProfile]] },
  { id: 'capabilities_baseline', versions: [[0, capabilities]] },
  { id: 'hostNamespaces', versions: [[0, hostNamespaces]] },
  { id: 'hostPathVolumes', versions: [[0, hostPathVolumes]] },
  { id: 'hostPorts', versions: [[0, hostPorts]] },
  { id: 'hostProbesAndHostLifecycle', versions: [[34, hostProbesAndLifecycle]] },
  { id: 'privileged', versions: [[0, privileged]] },
  { id: 'procMount', versions: [[0, procMount]] },
  {
    id: 'seLinuxOptions',
    versions: [
      [0, seLinuxOptions(seLinuxTypes)],
      [31, seLinuxOptions([...seLinuxTypes, 'container_engine_t'])],
    ],
  },
  {
    id: 'seccompProfile_baseline',
    versions: [
      [0, seccompAnnotations],
      [19, seccompProfile],
    ],
  },
  {
    id: 'sysctls',
    versions: [
      [0, sysctls(sysctls0)],
      [27, sysctls(sysctls27)],
      [29, sysctls(sysctls29)],
      [32, sysctls(sysctls32)],
    ],
  },
  { id: 'windowsHostProcess', versions: [[0, windowsHostProcess]] },
]

const appArmorPrefix = 'container.apparmor.security.beta.kubernetes.io/'

function appArmorProfile(pod: PodToCheck): ReturnType<CheckPod> {
  const isBad = ({ appArmorProfile: profile }: SecurityContextToCheck): boolean =>
    profile !== undefined && profile.type !== 'RuntimeDefault' && profile.type !== 'Localhost'
  const annotations = Object.entries(pod.metadata?.annotations ?? {})
    .filter(
      ([key, value]) =>
        key.startsWith(appArmorPrefix) &&
        value !== '' &&
        value !== 'runtime/default' &&
        !value.startsWith('localhost/'),
    )
    .map(([key, value]) => `${key}=${goQuote(value)}`)
  const setters = [
    ...settersText(pod, isBad),
    ...(annotations.length > 0 ? [plural('annotation', 'annotations', annotations.length)] : []),
  ]
  if (setters.length === 0) return undefined
  const values = [
    ...valuesOf(pod, isBad, ({ appArmorProfile: profile }) => profile?.type ?? ''),
    ...sortedSet(annotations),
  ]
  return {
    reason: plural('forbidden AppArmor profile', 'forbidden AppArmor profiles', values.length),
    detail: `${setters.join(' and ')} must not set AppArmor profile type to ${quoted(values)}`,
  }
}

/** The forbidden values of a field, over the pod and its containers. */
function valuesOf(
  pod: PodToCheck,
  isBad: (context: SecurityContextToCheck) => boolean,
  valueOf: (context: SecurityContextToCheck) => string,
): string[] {
  const contexts = [pod.spec.securityContext, ...containersOf(pod).map(({ securityContext }) => securityContext)]
  return sortedSet(
    contexts.filter((context) => context !== undefined && isBad(context)).map((context) => valueOf(context ?? {})),
  )
}

function capabilities(pod: PodToCheck): ReturnType<CheckPod> {
  const badOf = ({ securityContext }: ContainerToCheck): string[] =>
    (securityContext?.capabilities?.add ?? []).filter((capability) => !allowedCapabilities.has(capability))
  const names = badContainers(pod, (container) => badOf(container).length > 0)
  if (names.length === 0) return undefined
  const added = quoted(sortedSet(containersOf(pod).flatMap(badOf)))
  return {
    reason: 'non-default capabilities',
    detail: `${containersText(names)} must not include ${added} in securityContext.capabilities.add`,
  }
}

function hostNamespaces({ spec }: PodToCheck): ReturnType<CheckPod> {
  const found = (['hostNetwork', 'hostPID', 'hostIPC'] as const).filter((field) => spec[field] === true)
  if (found.length === 0) return undefined
  return { reason: 'host namespaces', detail: found.map((field) => `${field}=true`).join(', ') }
}

function hostPathVolumes({ spec }: PodToCheck): ReturnType<CheckPod> {
  const names = (spec.volumes ?? [])
    .filter((volume) => (volume['hostPath'] ?? undefined) !== undefined)
    .map(({ name = '' }) => name)
  if (names.length === 0) return undefined
  return { reason: 'hostPath volumes', detail: `${plural('volume', 'volumes', names.length)} ${quoted(names)}` }
}

function hostPorts(pod: PodToCheck): ReturnType<CheckPod> {
  const portsOf = ({ ports }: ContainerToCheck): string[] =>
    (ports ?? []).filter(({ hostPort = 0 }) => hostPort !== 0).map(({ hostPort }) => String(hostPort))
  const names = badContainers(pod, (container) => portsOf(container).length > 0)
  if (names.length === 0) return undefined
  const ports = sortedSet(containersOf(pod).flatMap(portsOf))
  const uses = `${plural('uses', 'use', names.length)} ${plural('hostPort', 'hostPorts', ports.length)}`
  return { reason: 'hostPort', detail: `${containersText(names)} ${uses} ${ports.join(', ')}` }
}

function hostProbesAndLifecycle(pod: PodToCheck): ReturnType<CheckPod> {
  const hostsOf = ({ livenessProbe, readinessProbe, startupProbe, lifecycle }: ContainerToCheck): string[] =>
    [livenessProbe, readinessProbe, startupProbe, lifecycle?.postStart, lifecycle?.preStop].flatMap(handlerHosts)
  const names = sortedSet(badContainers(pod, (container) => hostsOf(container).length > 0))
  if (names.length === 0) return undefined
  const hosts = sortedSet(containersOf(pod).flatMap(hostsOf))
  const what = plural('probe or lifecycle host', 'probe or lifecycle hosts', hosts.length)
  return {
    reason: 'probe or lifecycle host',
    detail: `${containersText(names)} ${plural('uses', 'use', names.length)} ${what} ${quoted(hosts)}`,
  }
}

function handlerHosts(handler: HandlerToCheck | undefined): string[] {
  return [handler?.httpGet?.host ?? '', handler?.tcpSocket?.host ?? ''].filter((host) => host !== '')
}

function privileged(pod: PodToCheck): ReturnType<CheckPod> {
  const names = badContainers(pod, ({ securityContext }) => securityContext?.privileged === true)
  if (names.length === 0) return undefined
  return { reason: 'privileged', detail: `${containersText(names)} must not set securityContext.privileged=true` }
}

/** Upstream allows every value in a user namespace only under a feature gate that is off by default. */
function procMount(pod: PodToCheck): ReturnType<CheckPod> {
  const badOf = ({ securityContext }: ContainerToCheck): string[] => {
    const value = securityContext?.procMount ?? 'Default'
    return value === 'Default' ? [] : [value]
  }
  const names = badContainers(pod, (container) => badOf(container).length > 0)
  if (names.length === 0) return undefined
  const types = quoted(sortedSet(containersOf(pod).flatMap(badOf)))
  return { reason: 'procMount', detail: `${containersText(names)} must not set securityContext.procMount to ${types}` }
}

function seLinuxOptions(allowedTypes: readonly string[]): CheckPod {
  const isBadType = ({ seLinuxOptions: options }: SecurityContextToCheck): boolean =>
    options !== undefined && !allowedTypes.includes(options.type ?? '')
  const setsUser = ({ seLinuxOptions: options }: SecurityContextToCheck): boolean => (options?.user ?? '') !== ''
  const setsRole = ({ seLinuxOptions: options }: SecurityContextToCheck): boolean => (options?.role ?? '') !== ''
  return (pod) => {
    const setters = settersText(pod, (context) => isBadType(context) || setsUser(context) || setsRole(context))
    if (setters.length === 0) return undefined
    const types = valuesOf(pod, isBadType, ({ seLinuxOptions: options }) => options?.type ?? '')
    const problems = [
      ...(types.length > 0 ? [`${plural('type', 'types', types.length)} ${quoted(types)}`] : []),
      ...(settersText(pod, setsUser).length > 0 ? ['user may not be set'] : []),
      ...(settersText(pod, setsRole).length > 0 ? ['role may not be set'] : []),
    ]
    return {
      reason: 'seLinuxOptions',
      detail: `${setters.join(' and ')} set forbidden securityContext.seLinuxOptions: ${problems.join('; ')}`,
    }
  }
}

const seccompPodAnnotation = 'seccomp.security.alpha.kubernetes.io/pod'
const seccompContainerPrefix = 'container.seccomp.security.alpha.kubernetes.io/'

/** Checks the annotations that were used before the field for seccomp profiles (Kubernetes 1.19). */
function seccompAnnotations(pod: PodToCheck): ReturnType<CheckPod> {
  const annotations = pod.metadata?.annotations ?? {}
  const keys = [
    seccompPodAnnotation,
    ...containersOf(pod).map(({ name = '' }) => `${seccompContainerPrefix}${name}`),
  ].filter((key) => {
    const value = annotations[key]
    if (value === undefined) return false
    return value !== 'runtime/default' && value !== 'docker/default' && !value.startsWith('localhost/')
  })
  if (keys.length === 0) return undefined
  const found = sortedSet(keys.map((key) => `${key}=${goQuote(annotations[key] ?? '')}`))
  return {
    reason: 'seccompProfile',
    detail: `forbidden ${plural('annotation', 'annotations', found.length)} ${found.join(', ')}`,
  }
}

/** True for a seccomp profile that neither baseline nor restricted allows. */
export function hasForbiddenSeccompProfile({ seccompProfile: profile }: SecurityContextToCheck): boolean {
  return profile !== undefined && profile.type !== 'RuntimeDefault' && profile.type !== 'Localhost'
}

/** Refuses seccomp profiles that switch the filter off. Restricted requires a profile besides. */
export function seccompProfile(pod: PodToCheck): ReturnType<CheckPod> {
  const setters = settersText(pod, hasForbiddenSeccompProfile)
  if (setters.length === 0) return undefined
  const values = valuesOf(pod, hasForbiddenSeccompProfile, ({ seccompProfile: profile }) => profile?.type ?? '')
  return {
    reason: 'seccompProfile',
    detail: `${setters.join(' and ')} must not set securityContext.seccompProfile.type to ${quoted(values)}`,
  }
}

function sysctls(allowed: readonly string[]): CheckPod {
  return ({ spec }) => {
    const forbidden = (spec.securityContext?.sysctls ?? [])
      .map(({ name = '' }) => name)
      .filter((name) => !allowed.includes(name))
    return forbidden.length === 0 ? undefined : { reason: 'forbidden sysctls', detail: forbidden.join(', ') }
  }
}

function windowsHostProcess(pod: PodToCheck): ReturnType<CheckPod> {
  const setters = settersText(pod, ({ windowsOptions }) => windowsOptions?.hostProcess === true)
  if (setters.length === 0) return undefined
  return {
    reason: 'hostProcess',
    detail: `${setters.join(' and ')} must not set securityContext.windowsOptions.hostProcess=true`,
  }
}
