// Pod security by the labels of a tenant's namespace (kube-apiserver's plugin PodSecurity): refuses pods that violate
// the level in `enforce`, and warns about pods and templates that violate the level in `warn`.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import {
  evaluatePod,
  podSecurityPolicyText,
  podSecurityViolationsText,
  type PodSecurityPolicy,
  type PodToCheck,
} from '#apimachinery/pod-security/index.ts'
import { forbidden, invalid } from '#apimachinery/status/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { AdmissionPlugin, AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import { podIn } from './pod-template.ts'
import { policiesOf, strictness } from './pod-security-labels.ts'

const podSubresources = ['', 'ephemeralcontainers', 'resize']
/** The most pods that are checked when a namespace gets a stricter level. */
const maxPods = 3000

/** Throws 403 for pods that violate the level, 422 for invalid labels. */
export const namespacePodSecurity: AdmissionPlugin = {
  name: 'NamespacePodSecurity',
  validate(request, object, old) {
    const { definition, operation, subresource, context } = request
    if (object === undefined || operation === 'DELETE' || context.user.realm.kind === 'installation') return
    if (definition.storageKey === 'namespaces') {
      if (subresource === '') checkLabels(request, object, old)
      return
    }
    const pod = podIn(definition.storageKey, object)
    const isPod = definition.storageKey === 'pods'
    if (pod === undefined || !(isPod ? podSubresources.includes(subresource) : subresource === '')) return
    const policies = policiesOf(labelsOf(request))
    if (policies === undefined || (isPod && old !== undefined && !changesImages(object, old))) return
    if (isPod) {
      const violations = violationsText(policies.enforce, pod)
      if (violations !== '')
        throw forbidden(definition.info, request.name, violated('violates', policies.enforce, violations))
    }
    const warned = violationsText(policies.warn, pod)
    if (warned !== '') context.warnings.push(violated('would violate', policies.warn, warned))
  },
}

function labelsOf({ context, namespace }: AdmissionRequest): Readonly<Record<string, string>> {
  return context.objects.get('namespaces', '', namespace)?.facts.labels ?? {}
}

function violationsText(policy: PodSecurityPolicy, pod: PodToCheck): string {
  return podSecurityViolationsText(evaluatePod(policy, pod))
}

function violated(how: string, policy: PodSecurityPolicy, violations: string): string {
  return `${how} PodSecurity "${podSecurityPolicyText(policy)}": ${violations}`
}

interface Containers {
  readonly containers?: readonly { readonly name?: string; readonly image?: string }[]
  readonly initContainers?: Containers['containers']
  readonly ephemeralContainers?: Containers['containers']
}

/** True if an update changes images: all other checked fields are immutable. */
function changesImages(object: KubeObject, old: KubeObject): boolean {
  const [next, before] = [object['spec'], old['spec']] as [Containers, Containers]
  const images = ({ containers = [], initContainers = [] }: Containers): string =>
    JSON.stringify([containers, initContainers].map((list) => list.map(({ image }) => image)))
  if (images(next) !== images(before)) return true
  const debuggers = new Map(before.ephemeralContainers?.map(({ name, image }) => [name, image]))
  return (next.ephemeralContainers ?? []).some(({ name, image }) => debuggers.get(name) !== image)
}

function checkLabels(request: AdmissionRequest, object: KubeObject, old: KubeObject | undefined): void {
  const policies = policiesOf(object.metadata.labels)
  if (policies === undefined) return
  const { definition, name, context } = request
  const before = policiesOf(old?.metadata.labels)
  const isKnown = before !== undefined && JSON.stringify(before.causes) === JSON.stringify(policies.causes)
  if (policies.causes.length > 0 && !isKnown)
    throw invalid({ group: definition.info.group, kind: definition.info.kind }, name, [...policies.causes])
  if (old === undefined) return
  const { enforce } = policies
  const enforced = before?.enforce ?? { level: 'privileged', version: 'latest' }
  if (enforce.level === 'privileged') return
  if (enforce.version === enforced.version && strictness(enforce) <= strictness(enforced)) return
  context.warnings.push(...warningsOfPods(request, enforce))
}

/** The warnings for a new `enforce` level that existing pods of the namespace violate. */
function warningsOfPods({ context, name: namespace }: AdmissionRequest, policy: PodSecurityPolicy): string[] {
  const entries = context.objects.list({ resource: 'pods', namespace })
  const found = new Map<string, { first: string; others: number }>()
  for (const { key, bytes } of entries.slice(0, maxPods)) {
    const violations = evaluatePod(policy, decodeObject(bytes) as unknown as PodToCheck)
    const reasons = violations.map(({ reason }) => reason).join(', ')
    const before = found.get(reasons)
    if (before !== undefined) before.others++
    else if (reasons !== '') found.set(reasons, { first: key.name, others: 0 })
  }
  const texts = [...found].map(([reasons, { first, others }]) => {
    const more = others === 0 ? '' : ` (and ${others} other pod${others === 1 ? '' : 's'})`
    return `${first}${more}: ${reasons}`
  })
  const checked = `new PodSecurity enforce level only checked against the first ${maxPods} of ${entries.length} existing pods`
  const title = `existing pods in namespace "${namespace}" violate the new PodSecurity enforce level "${podSecurityPolicyText(policy)}"`
  return [...(entries.length > maxPods ? [checked] : []), ...(texts.length > 0 ? [title, ...texts.sort()] : [])]
}
