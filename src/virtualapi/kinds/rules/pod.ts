// Pods: defaults of new pods, mutable fields per subresource, and the grace period of a deletion.
import { isDeepStrictEqual } from 'node:util'
import { timestamp } from '#async/index.ts'
import { cloneJson, isJsonObject, type JsonObject, isJsonNumber } from '#apimachinery/meta/index.ts'
import type { KindRules } from './kind-rules.ts'
import { completeStruct } from '#virtualapi/kinds/resources/typed/decode.ts'
import { appArmorProfile } from '#virtualapi/kinds/validation/security-profiles.ts'
import {
  appArmorOfContainer,
  matchingProfiles,
  podAnnotations,
  profileOfAnnotation,
} from '#virtualapi/kinds/validation/pod-annotations.ts'
import { podSpec, type PodSpec } from '#virtualapi/kinds/validation/pod-spec.ts'
import type { Pod } from './pod-object.ts'
import { mergeLabelKeys } from './pod-label-keys.ts'
import { qosClassOf } from './pod-qos.ts'
import { podResize } from './pod-resize.ts'
import { podStatus } from './pod-status.ts'
import { annotationChange, ephemeralContainerChange, podChange } from './pod-update.ts'
import { all, causesOf, validating, validatingChange, type Rule } from '#virtualapi/kinds/validation/vocabulary.ts'
import { pathsOfContainers } from '#virtualapi/kinds/warnings/container-warnings.ts'
import { ipWarnings } from '#virtualapi/kinds/warnings/ip-warnings.ts'
import { appArmorWarning, podWarnings } from '#virtualapi/kinds/warnings/pod-warnings.ts'

/** Validation that applies to new and changed pods. */
const anyPod: Rule<Pod> = ({ metadata, spec }, report) => {
  report.at('metadata.annotations', podAnnotations, metadata.annotations, spec)
  report.at('spec', podSpec, spec, metadata)
}

const podRule: Rule<Pod, Pod | undefined> = (pod, report, old) => {
  const { metadata, spec } = pod
  report.check(anyPod, pod)
  if (old !== undefined) return
  if (spec.ephemeralContainers?.length) report.forbidden('spec.ephemeralContainers', 'cannot be set on create')
  if (spec.nodeName && spec.schedulingGates?.length)
    report.forbidden('spec.nodeName', 'cannot be set until all schedulingGates have been cleared')
  report.at('spec', matchingProfiles, spec, metadata)
}

const ofSubresource = {
  status: podStatus,
  resize: all(anyPod, podResize),
  ephemeralcontainers: all(anyPod, ephemeralContainerChange),
}

export const podRules: KindRules = {
  beforeDefaults({ spec, status }) {
    if (isJsonObject(status)) alignAddresses(status)
    // As upstream: in pods, but not in templates, a negative grace period becomes 1.
    if (!isJsonObject(spec)) return
    const { terminationGracePeriodSeconds: seconds } = spec
    if (isJsonNumber(seconds) && seconds < 0) spec['terminationGracePeriodSeconds'] = 1
  },
  // As upstream, no warnings on update: most updates come from controllers, and they are frequent.
  warningsOf: (object, old) => (old === undefined ? podWarnings(object) : []),
  statusWarningsOf(object) {
    const { podIPs = [], hostIPs = [] } = (object as Pod).status
    return [
      ...podIPs.flatMap(({ ip }, index) => ipWarnings(`status.podIPs[${index}].ip`, ip)),
      ...hostIPs.flatMap(({ ip }, index) => ipWarnings(`status.hostIPs[${index}].ip`, ip)),
    ]
  },
  prepareForCreate(object, { now, warnings }) {
    const { spec, status, metadata } = object as Pod
    mergeLabelKeys(spec, metadata.labels ?? {})
    if (metadata.annotations !== undefined) takeAppArmorProfiles(spec, metadata.annotations, warnings)
    // A copy of a pod that runs in a member cluster already has a status.
    status.phase ??= 'Pending'
    status.qosClass ??= qosClassOf(spec)
    if ((spec.schedulingGates?.length ?? 0) > 0 && !status.conditions?.length)
      status.conditions = [gated(timestamp(now))]
  },
  prepareForUpdate(object, old, _context, subresource) {
    const [pod, before] = [object as Pod, old as Pod]
    if (subresource === 'status') keepInStatus(pod, before)
    else if (subresource === 'ephemeralcontainers') {
      const { ephemeralContainers } = pod.spec
      restoreOld(pod, before)
      if (ephemeralContainers === undefined) delete pod.spec.ephemeralContainers
      else pod.spec.ephemeralContainers = ephemeralContainers
    } else if (subresource === 'resize') {
      const { containers, initContainers } = pod.spec
      // If the number of containers differs, nothing is restored, so that validation reports it.
      if (!sameNumber(pod.spec, before.spec)) return
      restoreOld(pod, before)
      for (const [member, asked] of Object.entries({ containers, initContainers }))
        resize(pod.spec[member as 'containers' | 'initContainers'] ?? [], asked ?? [])
    }
  },
  validate: validating(podRule),
  validateSubresource: (object, old, subresource) =>
    Object.hasOwn(ofSubresource, subresource)
      ? causesOf(ofSubresource[subresource as keyof typeof ofSubresource], '', object as Pod, old as Pod)
      : [],
  validateChange: validatingChange(all(annotationChange, podChange)),
  gracePeriodSeconds(object, asked) {
    const { spec, status } = object as Pod
    const seconds = asked ?? spec.terminationGracePeriodSeconds ?? 0
    const finished = status.phase === 'Failed' || status.phase === 'Succeeded'
    if (!spec.nodeName || finished) return 0
    return seconds < 0 ? 1 : seconds
  },
}

/** Copies AppArmor profiles from the deprecated annotations to the fields of the containers, with a warning. */
function takeAppArmorProfiles(spec: PodSpec, annotations: Readonly<Record<string, string>>, warnings: string[]): void {
  if (spec.os?.name === 'windows') return
  const ofPod = spec.securityContext?.appArmorProfile
  for (const [, container] of pathsOfContainers('', spec)) {
    const annotation = annotations[appArmorOfContainer + container.name]
    if (annotation === undefined || container.securityContext?.appArmorProfile !== undefined) continue
    const meant = profileOfAnnotation(annotation)
    const profile = meant && causesOf(appArmorProfile, '', meant).length === 0 ? meant : undefined
    if (profile !== undefined && isDeepStrictEqual(profile, ofPod)) continue
    if (profile !== undefined) container.securityContext = { ...container.securityContext, appArmorProfile: profile }
    warnings.push(appArmorWarning('', container.name))
  }
}

function gated(lastTransitionTime: string): NonNullable<Pod['status']['conditions']>[number] {
  const condition = {
    type: 'PodScheduled',
    status: 'False',
    reason: 'SchedulingGated',
    message: 'Scheduling is blocked due to non-empty scheduling gates',
    lastTransitionTime,
  }
  return completeStruct('core.v1.PodCondition', condition) as unknown as typeof condition
}

/**
 * Restores what an update of the status must not change: owner references and the QoS class.
 */
function keepInStatus(pod: Pod, { metadata, status }: Pod): void {
  if (metadata.ownerReferences === undefined) delete pod.metadata.ownerReferences
  else pod.metadata.ownerReferences = cloneJson(metadata.ownerReferences)
  if (!pod.status.qosClass && status.qosClass !== undefined) pod.status.qosClass = status.qosClass
}

/** Old kubelets set only podIP; it wins. */
function alignAddresses(status: JsonObject): void {
  const { podIP, podIPs } = status
  const first = Array.isArray(podIPs) && isJsonObject(podIPs[0]) ? podIPs[0]['ip'] : undefined
  if (podIP && first !== podIP) status['podIPs'] = [{ ip: podIP }]
  else if (!podIP && first !== undefined) status['podIP'] = first
}

function restoreOld(pod: Pod, old: Pod): void {
  pod.spec = cloneJson(old.spec)
  pod.status = cloneJson(old.status)
  pod.metadata = { ...cloneJson(old.metadata) }
}

function sameNumber(spec: PodSpec, old: PodSpec): boolean {
  return (['containers', 'initContainers'] as const).every(
    (member) => (spec[member] ?? []).length === (old[member] ?? []).length,
  )
}

/** Copies the requested resources into the containers of the same name. */
function resize(containers: PodSpec['containers'], asked: PodSpec['containers']): void {
  const firstOf = new Map(asked.toReversed().map((container) => [container.name, container]))
  for (const container of containers) {
    const other = firstOf.get(container.name)
    if (other === undefined) continue
    if (other.resources === undefined) delete container.resources
    else container.resources = other.resources
    if (other.resizePolicy !== undefined) container.resizePolicy = other.resizePolicy
  }
}
