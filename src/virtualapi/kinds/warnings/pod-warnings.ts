// Warnings about pods and pod templates.
import { isDeepStrictEqual } from 'node:util'
import type { V1PodSpec, V1PodTemplateSpec } from '@kubernetes/client-node'
import { dns1123LabelErrors } from '#apimachinery/field/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { fractionalByteWarnings } from './fractional-byte-warnings.ts'
import {
  appArmorOfContainer,
  profileOfAnnotation,
  seccompOfContainer,
  seccompOfPod,
} from '#virtualapi/kinds/validation/pod-annotations.ts'
import { amountWarnings, envWarnings, pathsOfContainers, portWarnings } from './container-warnings.ts'
import { ipWarnings } from './ip-warnings.ts'
import { affinityWarnings, nodeWarnings } from './scheduling-warnings.ts'
import { volumeWarnings } from './volume-warnings.ts'

type PodSpec = Data<V1PodSpec>
type Template = Data<V1PodTemplateSpec>
type Annotations = Readonly<Record<string, string>>

/** The most warnings for one object. Response headers have room for fewer. */
const maxWarnings = 200

/** Warnings about a new pod. */
export function podWarnings({ metadata, spec }: KubeObject): string[] {
  const name = nameWarnings(metadata.name, "this is used in the Pod's hostname")
  return limited(name, specWarnings('', spec as PodSpec, metadata.annotations ?? {}, { isTemplate: false }))
}

/**
 * True for an update that leaves metadata.generation unchanged: such an update causes no warnings about the pod
 * template.
 */
export const isSameSpec = ({ metadata }: KubeObject, old: KubeObject | undefined): boolean =>
  old !== undefined && old.metadata.generation === metadata.generation

/** Warnings about the pod template at `path`. */
export function templateWarnings(path: string, template: Template | undefined): string[] {
  if (template?.spec === undefined) return []
  const { annotations = {} } = template.metadata ?? {}
  return limited(specWarnings(`${path}.`, template.spec, annotations, { isTemplate: true }))
}

/** Warnings about the name of a new object that owns pods. */
export const podOwnerNameWarnings = ({ metadata: { name } }: KubeObject): string[] =>
  nameWarnings(name, 'this is used in Pod names and hostnames')

function nameWarnings(name = '', use: string): string[] {
  const wrong = dns1123LabelErrors(name)
  return wrong.length === 0
    ? []
    : [
        `metadata.name: ${use}, which can result in surprising behavior; a DNS label is recommended: [${wrong.join(' ')}]`,
      ]
}

function limited(...groups: Iterable<string>[]): string[] {
  const warnings: string[] = []
  for (const group of groups)
    for (const warning of group) {
      warnings.push(warning)
      if (warnings.length >= maxWarnings) return warnings
    }
  return warnings
}

const obsoleteAnnotations: readonly (readonly [key: string, why: string])[] = [
  ['scheduler.alpha.kubernetes.io/critical-pod', 'non-functional in v1.16+; use the "priorityClassName" field instead'],
  ['security.alpha.kubernetes.io/sysctls', 'non-functional in v1.11+; use the "sysctls" field instead'],
  ['security.alpha.kubernetes.io/unsafe-sysctls', 'non-functional in v1.11+; use the "sysctls" field instead'],
]
const useSeccompField = 'non-functional in v1.27+; use the "seccompProfile" field instead'
const useAppArmorField = 'deprecated since v1.30; use the "appArmorProfile" field instead'

/** The warning about a container's AppArmor annotation. */
export const appArmorWarning = (path: string, container: string): string =>
  `${path}metadata.annotations[${appArmorOfContainer}${container}]: ${useAppArmorField}`

/** The warnings about a pod spec, in upstream's order. `path`: empty, or the path of a template followed by a dot. */
function* specWarnings(
  path: string,
  spec: PodSpec,
  annotations: Annotations,
  { isTemplate }: { isTemplate: boolean },
): Iterable<string> {
  const at = `${path}spec`
  const { securityContext: context, terminationGracePeriodSeconds: grace = 0 } = spec
  yield* nodeWarnings(at, spec)
  for (const [key, why] of obsoleteAnnotations)
    if (key in annotations) yield `${path}metadata.annotations[${key}]: ${why}`
  if (spec.volumes !== undefined) yield* volumeWarnings(`${at}.volumes`, spec.volumes)
  yield* repeated(`${at}.hostAliases`, 'ip', spec.hostAliases)
  yield* repeated(`${at}.imagePullSecrets`, 'name', spec.imagePullSecrets)
  for (const [index, { name = '' }] of (spec.imagePullSecrets ?? []).entries())
    if (name === '') yield `${at}.imagePullSecrets[${index}].name: invalid empty name ""`
  yield* fractionalByteWarnings(`${at}.overhead`, spec.overhead, ['memory', 'ephemeral-storage'])
  if (context?.seccompProfile === undefined && seccompOfPod in annotations)
    yield `${path}metadata.annotations[${seccompOfPod}]: ${useSeccompField}`
  const containers = pathsOfContainers(at, spec)
  for (const [where, container] of containers) {
    const { name, env, resources, securityContext: own } = container
    if (own?.seccompProfile === undefined && seccompOfContainer + name in annotations)
      yield `${path}metadata.annotations[${seccompOfContainer}${name}]: ${useSeccompField}`
    const profile = annotations[appArmorOfContainer + name]
    // For pods, the code that converts the annotation to the field adds this warning.
    if (isTemplate && own?.appArmorProfile === undefined && profile !== undefined) {
      const ofPod = context?.appArmorProfile
      if (ofPod === undefined || !isDeepStrictEqual(ofPod, profileOfAnnotation(profile)))
        yield appArmorWarning(path, name)
    }
    if (resources !== undefined) yield* amountWarnings(`${where}.resources`, resources)
    if (env !== undefined && env.length > 1) yield* envWarnings(`${where}.env`, env)
  }
  yield* portWarnings(containers)
  if (grace < 0)
    yield `${at}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1`
  yield* affinityWarnings(`${at}.affinity`, spec.affinity)
  for (const [index, address] of (spec.dnsConfig?.nameservers ?? []).entries())
    yield* ipWarnings(`${at}.dnsConfig.nameservers[${index}]`, address)
  for (const [index, { ip }] of (spec.hostAliases ?? []).entries())
    yield* ipWarnings(`${at}.hostAliases[${index}].ip`, ip)
}

function* repeated<Member extends string>(
  path: string,
  member: Member,
  items: readonly { readonly [M in Member]?: string }[] | undefined,
): Iterable<string> {
  if (items === undefined || items.length < 2) return
  const seen = new Set<string>()
  for (const [index, item] of items.entries()) {
    const value = item[member] ?? ''
    if (seen.has(value)) yield `${path}[${index}].${member}: duplicate ${member} ${goQuote(value)}`
    seen.add(value)
  }
}
