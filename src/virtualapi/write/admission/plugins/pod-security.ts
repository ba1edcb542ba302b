// Pod security of a logical cluster, as its LogicalCluster says: admins of the installation set it, tenants cannot.
// Members make the pods from templates, so a template is refused where Kubernetes would only warn and then refuse its
// pods.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { evaluatePod, podSecurityPolicyText, podSecurityViolationsText } from '#apimachinery/pod-security/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import { defaultPodSecurity } from '#crds/index.ts'
import type { RequestContext } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { AdmissionPlugin } from '#virtualapi/write/admission/admission.ts'
import { podIn } from './pod-template.ts'

/** Subresources of pods that change what runs. */
const podSubresources = ['', 'ephemeralcontainers', 'resize']

/** Whether a member may run pods of a logical cluster. */
export type MayRunPods = (cluster: RequestContext['cluster']) => boolean

/**
 * Refuses with 403 pods and templates beyond the level, where a member could run them; elsewhere it warns, because
 * without members a logical cluster is a plain API server. The member enforces the level, too: what is stored meanwhile
 * does not run beyond it. What was stored before the level was lowered may stay as it is.
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
