// Pod security of a logical cluster, as its LogicalCluster says: admins of the installation set it, tenants cannot. Members
// make the pods from templates, so a template is refused where Kubernetes would only warn and then refuse its pods.
import type { KubeObject } from '../../../apimachinery/meta/index.ts'
import {
  evaluatePod,
  podSecurityPolicyText,
  podSecurityViolationsText,
} from '../../../apimachinery/pod-security/index.ts'
import { forbidden } from '../../../apimachinery/status/index.ts'
import { defaultPodSecurity } from '../../../crds/index.ts'
import type { AdmissionPlugin } from '../admission.ts'
import { podIn } from './pod-template.ts'

/** Subresources of pods that change what runs. */
const podSubresources = ['', 'ephemeralcontainers', 'resize']

/** Refuses with 403 pods and templates beyond the level. What was stored before the level was lowered may stay as it is. */
export const podSecurity: AdmissionPlugin = {
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
    throw forbidden(definition.info, named, `violates PodSecurity "${podSecurityPolicyText(policy)}": ${violations}`)
  },
}

function violationsOf(object: KubeObject, storageKey: string, policy: Parameters<typeof evaluatePod>[0]): string {
  const pod = podIn(storageKey, object)
  return pod === undefined ? '' : podSecurityViolationsText(evaluatePod(policy, pod))
}
