// The checks of the level restricted beside those of baseline: they require hardened pods (Pod Security Standards,
// KEP-2579).
import { hasForbiddenSeccompProfile, seccompProfile } from './baseline-checks.ts'
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
import type { ContainerToCheck, PodToCheck, VolumeToCheck } from './pod-to-check.ts'

export const restrictedChecks: readonly PodCheck[] = [
  {
    id: 'allowPrivilegeEscalation',
    versions: [
      [8, allowPrivilegeEscalation],
      [25, unlessWindows(allowPrivilegeEscalation)],
    ],
  },
  {
    id: 'capabilities_restricted',
    overrides: 'capabilities_baseline',
    versions: [
      [22, capabilities],
      [25, unlessWindows(capabilities)],
    ],
  },
  { id: 'restrictedVolumes', overrides: 'hostPathVolumes', versions: [[0, volumes]] },
  { id: 'runAsNonRoot', versions: [[0, runAsNonRoot]] },
  { id: 'runAsUser', versions: [[23, runAsUser]] },
  {
    id: 'seccompProfile_restricted',
    overrides: 'seccompProfile_baseline',
    versions: [
      [19, requiredSeccompProfile],
      [25, unlessWindows(requiredSeccompProfile)],
    ],
  },
]

/** Validation refuses these Linux fields in a Windows pod, so the pod cannot be asked to set them. */
function unlessWindows(check: CheckPod): CheckPod {
  return (pod) => (pod.spec.os?.name === 'windows' ? undefined : check(pod))
}

function allowPrivilegeEscalation(pod: PodToCheck): ReturnType<CheckPod> {
  const names = badContainers(pod, ({ securityContext }) => securityContext?.allowPrivilegeEscalation !== false)
  if (names.length === 0) return undefined
  return {
    reason: 'allowPrivilegeEscalation != false',
    detail: `${containersText(names)} must set securityContext.allowPrivilegeEscalation=false`,
  }
}

function capabilities(pod: PodToCheck): ReturnType<CheckPod> {
  const addedBy = ({ securityContext }: ContainerToCheck): string[] =>
    (securityContext?.capabilities?.add ?? []).filter((capability) => capability !== 'NET_BIND_SERVICE')
  const keeping = badContainers(pod, ({ securityContext }) => !securityContext?.capabilities?.drop?.includes('ALL'))
  const adding = badContainers(pod, (container) => addedBy(container).length > 0)
  const details: string[] = []
  if (keeping.length > 0) details.push(`${containersText(keeping)} must set securityContext.capabilities.drop=["ALL"]`)
  if (adding.length > 0) {
    const added = quoted(sortedSet(containersOf(pod).flatMap(addedBy)))
    details.push(`${containersText(adding)} must not include ${added} in securityContext.capabilities.add`)
  }
  return details.length === 0 ? undefined : { reason: 'unrestricted capabilities', detail: details.join('; ') }
}

const allowedVolumes = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'image',
  'persistentVolumeClaim',
  'projected',
  'secret',
]
/** Forbidden types of volumes, in the order in which upstream names them. */
const restrictedVolumes = [
  'hostPath',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'gitRepo',
  'nfs',
  'iscsi',
  'glusterfs',
  'rbd',
  'flexVolume',
  'cinder',
  'cephfs',
  'flocker',
  'fc',
  'azureFile',
  'vsphereVolume',
  'quobyte',
  'azureDisk',
  'photonPersistentDisk',
  'portworxVolume',
  'scaleIO',
  'storageos',
]

function volumes({ spec }: PodToCheck): ReturnType<CheckPod> {
  const hasSource = (volume: VolumeToCheck, source: string): boolean => (volume[source] ?? undefined) !== undefined
  const bad = (spec.volumes ?? []).filter((volume) => !allowedVolumes.some((source) => hasSource(volume, source)))
  if (bad.length === 0) return undefined
  const names = bad.map(({ name = '' }) => name)
  const types = sortedSet(
    bad.map((volume) => restrictedVolumes.find((source) => hasSource(volume, source)) ?? 'unknown'),
  )
  const what = plural('restricted volume type', 'restricted volume types', types.length)
  const which = `${plural('volume', 'volumes', names.length)} ${quoted(names)}`
  return {
    reason: 'restricted volume types',
    detail: `${which} ${plural('uses', 'use', names.length)} ${what} ${quoted(types)}`,
  }
}

function runAsNonRoot(pod: PodToCheck): ReturnType<CheckPod> {
  const reason = 'runAsNonRoot != true'
  const setters = settersText(pod, ({ runAsNonRoot: value }) => value === false)
  if (setters.length > 0)
    return { reason, detail: `${setters.join(' and ')} must not set securityContext.runAsNonRoot=false` }
  if (pod.spec.securityContext?.runAsNonRoot === true) return undefined
  const names = badContainers(pod, ({ securityContext }) => (securityContext?.runAsNonRoot ?? undefined) === undefined)
  if (names.length === 0) return undefined
  return { reason, detail: `pod or ${containersText(names)} must set securityContext.runAsNonRoot=true` }
}

function runAsUser(pod: PodToCheck): ReturnType<CheckPod> {
  const setters = settersText(pod, ({ runAsUser: value }) => value === 0)
  if (setters.length === 0) return undefined
  return { reason: 'runAsUser=0', detail: `${setters.join(' and ')} must not set runAsUser=0` }
}

function requiredSeccompProfile(pod: PodToCheck): ReturnType<CheckPod> {
  const forbidden = seccompProfile(pod)
  if (forbidden !== undefined) return forbidden
  const context = pod.spec.securityContext
  if (context?.seccompProfile !== undefined && !hasForbiddenSeccompProfile(context)) return undefined
  const names = badContainers(pod, ({ securityContext }) => securityContext?.seccompProfile === undefined)
  if (names.length === 0) return undefined
  const allowed = '"RuntimeDefault" or "Localhost"'
  return {
    reason: 'seccompProfile',
    detail: `pod or ${containersText(names)} must set securityContext.seccompProfile.type to ${allowed}`,
  }
}
