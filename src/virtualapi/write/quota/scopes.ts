// The objects that count for a quota with scopes.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { qosClassOf } from '#virtualapi/kinds/index.ts'

/** One condition of spec.scopes or spec.scopeSelector. */
export interface ScopeRequirement {
  readonly scopeName: string
  readonly operator: string
  readonly values?: readonly string[]
}

interface AffinityTerm {
  readonly namespaces?: readonly string[]
  readonly namespaceSelector?: object
}
interface PodAffinity {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly AffinityTerm[]
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly { readonly podAffinityTerm?: AffinityTerm }[]
}
interface PodSpec {
  readonly activeDeadlineSeconds?: number
  readonly priorityClassName?: string
  readonly affinity?: { readonly podAffinity?: PodAffinity; readonly podAntiAffinity?: PodAffinity }
}
interface Claim {
  readonly spec?: { readonly volumeAttributesClassName?: string }
  readonly status?: {
    readonly currentVolumeAttributesClassName?: string
    readonly modifyVolumeStatus?: { readonly targetVolumeAttributesClassName?: string }
  }
}

/** True if an object is in all of these scopes. Only pods and PersistentVolumeClaims can be in a scope. */
export function isInScopes(storageKey: string, object: KubeObject, scopes: readonly ScopeRequirement[]): boolean {
  if (scopes.length === 0) return true
  const isIn = storageKey === 'pods' ? isPodIn : storageKey === 'persistentvolumeclaims' ? isClaimIn : undefined
  return isIn !== undefined && scopes.every((scope) => isIn(object, scope))
}

/** True for a pod that ends by itself: `spec.activeDeadlineSeconds` is set. */
export function isTerminatingPod(pod: KubeObject): boolean {
  const { activeDeadlineSeconds } = pod['spec'] as PodSpec
  return activeDeadlineSeconds !== undefined && activeDeadlineSeconds >= 0
}

function isPodIn(pod: KubeObject, scope: ScopeRequirement): boolean {
  const spec = pod['spec'] as PodSpec
  switch (scope.scopeName) {
    case 'Terminating':
      return isTerminatingPod(pod)
    case 'NotTerminating':
      return !isTerminatingPod(pod)
    case 'BestEffort':
      return isBestEffort(pod)
    case 'NotBestEffort':
      return !isBestEffort(pod)
    case 'PriorityClass':
      return hasOneOf(spec.priorityClassName ? [spec.priorityClassName] : [], scope)
    case 'CrossNamespacePodAffinity':
      return [spec.affinity?.podAffinity, spec.affinity?.podAntiAffinity].some(crossesNamespaces)
    default:
      return false
  }
}

function isBestEffort({ spec, status }: KubeObject): boolean {
  const { qosClass } = (status ?? {}) as { qosClass?: string }
  return (qosClass ?? qosClassOf(spec as Parameters<typeof qosClassOf>[0])) === 'BestEffort'
}

function crossesNamespaces(affinity: PodAffinity | undefined): boolean {
  const terms = [
    ...(affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ podAffinityTerm }) => podAffinityTerm),
  ]
  return terms.some((term) => (term?.namespaces?.length ?? 0) > 0 || term?.namespaceSelector !== undefined)
}

function isClaimIn(object: KubeObject, scope: ScopeRequirement): boolean {
  if (scope.scopeName !== 'VolumeAttributesClass') return false
  const { spec, status } = object as Claim
  const names = [
    spec?.volumeAttributesClassName,
    status?.currentVolumeAttributesClassName,
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
  ]
  return hasOneOf(
    names.filter((name) => name !== undefined && name !== ''),
    scope,
  )
}

/**
 * True if the names meet the condition, with the semantics of label selectors: NotIn and DoesNotExist hold for no
 * names, too.
 */
function hasOneOf(names: readonly (string | undefined)[], { operator, values = [] }: ScopeRequirement): boolean {
  const isListed = (name: string | undefined): boolean => name !== undefined && values.includes(name)
  switch (operator) {
    case 'Exists':
      return names.length > 0
    case 'DoesNotExist':
      return names.length === 0
    case 'In':
      return names.some(isListed)
    case 'NotIn':
      return names.length === 0 || names.some((name) => !isListed(name))
    default:
      return false
  }
}
