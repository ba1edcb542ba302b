// Pod security of a logical cluster, as its LogicalCluster defines it. Admins of the installation set it; tenants
// cannot. Members create the pods of a template, so a template is refused, where Kubernetes would only warn and later
// refuse the pods.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { evaluatePod, podSecurityPolicyText, podSecurityViolationsText } from '#apimachinery/pod-security/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import { defaultPodSecurity } from '#crds/index.ts'
import type { RequestContext } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { AdmissionPlugin } from '#virtualapi/write/admission/admission.ts'
import { podIn } from './pod-template.ts'

/** Subresources of pods that change the containers that run; empty: the pod itself. */
const podSubresources = ['', 'ephemeralcontainers', 'resize']

/** True if a member may run pods of a logical cluster. */
export type MayRunPods = (cluster: RequestContext['cluster']) => boolean

/**
 * Refuses with 403 pods and templates beyond the level, if a member could run them. Otherwise it warns, because without
 * members a logical cluster is a plain API server. The member enforces the level, too, so pods that were stored
 * meanwhile do not run beyond it. Objects that were stored before the level was lowered may keep their violations.
 */
export const podSecurity = (mayRunPods: MayRunPods): AdmissionPlugin => ({
  name: 'PodSecurity',
  validate({ operation, definition, subresource, context, name }, object, old) {
    const { storageKey } = definition
    if (object === undefined || operation === 'DELETE' || podIn(storageKey, object) === undefined) return
    if (!podSubresources.includes(subresource) || context.user.realm.kind === 'installation') return
    const policy = { level: context.cluster.podSecurity ?? defaultPodSecurity }
    if (policy.level === 'privileged') return
    const violations = violationsOf(object, storageKey, policy)
    if (violations === '' || (old !== undefined && violations === violationsOf(old, storageKey, policy))) return
    const named = name || (object.metadata.generateName ?? '')
    const text = `PodSecurity "${podSecurityPolicyText(policy)}": ${violations}`
    if (mayRunPods(context.cluster)) throw forbidden(definition.info, named, `violates ${text}`)
    context.warnings.push(`would violate ${text}`)
  },
})

function violationsOf(object: KubeObject, storageKey: string, policy: Parameters<typeof evaluatePod>[0]): string {
  const pod = podIn(storageKey, object)
  return pod === undefined ? '' : podSecurityViolationsText(evaluatePod(policy, pod))
}
