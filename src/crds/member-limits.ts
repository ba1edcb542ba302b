// The parts of tenants' objects that do not pass into members, because a member or its controllers would act on them
// for its own sake.
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { memberStatusAnnotationPrefix, ownAnnotationPrefix } from './sync-contract.ts'
import { workloadKindOfObject, workloadKinds, templateOf } from './workload-kinds.ts'

/**
 * Prefixes of annotations that are copied into members. Controllers of a member act on annotations (DNS names, cloud
 * identities, copies of Secrets, load balancers), with rights that the tenant does not have, so all others stay
 * upstream. MemberCluster.spec.annotationPrefixes allows more.
 */
export const defaultAnnotationPrefixes: readonly string[] = [
  'kubectl.kubernetes.io/',
  'checksum/',
  'prometheus.io/',
  'meta.helm.sh/',
  'container.apparmor.security.beta.kubernetes.io/',
]

/** Prefixes of annotations that are not copied between upstream and member: they mean something only where they are. */
const localAnnotations = [
  ownAnnotationPrefix,
  memberStatusAnnotationPrefix,
  'kubectl.kubernetes.io/last-applied-configuration',
  ...workloadKinds.flatMap(({ controllerAnnotationPrefix = [] }) => controllerAnnotationPrefix),
]

/** True for an annotation that is not copied to the other side. */
export function isLocalAnnotation(annotation: string): boolean {
  return localAnnotations.some((prefix) => annotation.startsWith(prefix))
}

/**
 * True for an annotation that is copied into a member that allows these prefixes besides the default ones, never for
 * one of ours. Names without a prefix are private to users: Kubernetes requires one of automated components.
 */
export function isAnnotationForMembers(name: string, prefixes: readonly string[] = []): boolean {
  if (!name.includes('/')) return true
  if (name.startsWith(ownAnnotationPrefix) || name.startsWith(memberStatusAnnotationPrefix)) return false
  return [...defaultAnnotationPrefixes, ...prefixes].some((prefix) => name.startsWith(prefix))
}

/** True for the name of a PriorityClass whose pods preempt pods of the member itself. */
export function isSystemPriorityClass(name: unknown): name is string {
  return name === 'system-cluster-critical' || name === 'system-node-critical'
}

/** Fields of a Service that name addresses outside of the member's pods, whoever owns these addresses. */
export const serviceAddressFields = ['externalIPs', 'loadBalancerIP'] as const

/** A sentence for each field of the object, a workload or a Service, that members do not get or get changed. */
export function memberLimits(object: KubeObject): string[] {
  if (object.kind === 'Service') {
    const spec = object['spec']
    const present = serviceAddressFields.filter((field) => isJsonObject(spec) && isPresent(spec[field]))
    return present.map((field) => `spec.${field}: not used in member clusters`)
  }
  const kind = workloadKindOfObject(object)
  if (kind === undefined) return []
  const path = [...kind.paths.template, 'spec'].join('.')
  const template = templateOf(object)
  const spec = isJsonObject(template) ? template['spec'] : undefined
  if (!isJsonObject(spec)) return []
  const priorityClass = spec['priorityClassName']
  return [
    ...(isSystemPriorityClass(priorityClass)
      ? [`${path}.priorityClassName: "${priorityClass}" is not used in member clusters`]
      : []),
    ...tokenAudiences(spec['volumes']).map(
      (audience) => `${path}.volumes: tokens for the audience "${audience}" are not issued in member clusters`,
    ),
  ]
}

function isPresent(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : typeof value === 'string' && value !== ''
}

function tokenAudiences(volumes: unknown): string[] {
  const audiences = (Array.isArray(volumes) ? volumes : []).flatMap((volume: unknown) => {
    const projected = isJsonObject(volume) ? volume['projected'] : undefined
    const sources = isJsonObject(projected) ? projected['sources'] : undefined
    return (Array.isArray(sources) ? sources : []).map((source: unknown) => {
      const token = isJsonObject(source) ? source['serviceAccountToken'] : undefined
      return isJsonObject(token) ? token['audience'] : undefined
    })
  })
  return [...new Set(audiences.filter((audience) => typeof audience === 'string' && audience !== ''))] as string[]
}
