// Pod security of a logical cluster, as its LogicalCluster says: admins of the installation set it, tenants cannot. Members
// make the pods from templates, so a template is refused where Kubernetes would only warn and then refuse its pods.
import { isJsonObject, type KubeObject } from '../../../apimachinery/meta/index.ts'
import {
  evaluatePod,
  podSecurityPolicyText,
  podSecurityViolationsText,
  type PodToCheck,
} from '../../../apimachinery/pod-security/index.ts'
import { forbidden } from '../../../apimachinery/status/index.ts'
import { defaultPodSecurity } from '../../../crds/index.ts'
import type { AdmissionPlugin } from '../admission.ts'

/** By store key: the path to the pod or its template. */
const podPaths: Readonly<Record<string, readonly string[]>> = {
  pods: [],
  podtemplates: ['template'],
  replicationcontrollers: ['spec', 'template'],
  'replicasets.apps': ['spec', 'template'],
  'deployments.apps': ['spec', 'template'],
  'daemonsets.apps': ['spec', 'template'],
  'statefulsets.apps': ['spec', 'template'],
  'jobs.batch': ['spec', 'template'],
  'cronjobs.batch': ['spec', 'jobTemplate', 'spec', 'template'],
}
/** Subresources of pods that change what runs. */
const podSubresources = ['', 'ephemeralcontainers', 'resize']

/** Refuses with 403 pods and templates beyond the level. What was stored before the level was lowered may stay as it is. */
export const podSecurity: AdmissionPlugin = {
  name: 'PodSecurity',
  validate({ operation, definition, subresource, context, name }, object, old) {
    const path = podPaths[definition.storageKey]
    if (path === undefined || object === undefined || operation === 'DELETE') return
    if (!podSubresources.includes(subresource) || context.user.realm.kind === 'installation') return
    const policy = { level: context.cluster.podSecurity ?? defaultPodSecurity }
    if (policy.level === 'privileged') return
    const violations = violationsOf(object, path, policy)
    if (violations === '' || (old !== undefined && violations === violationsOf(old, path, policy))) return
    const named = name || (object.metadata.generateName ?? '')
    throw forbidden(definition.info, named, `violates PodSecurity "${podSecurityPolicyText(policy)}": ${violations}`)
  },
}

function violationsOf(object: KubeObject, path: readonly string[], policy: Parameters<typeof evaluatePod>[0]): string {
  const pod = path.reduce<unknown>((value, field) => (isJsonObject(value) ? value[field] : undefined), object)
  if (!isJsonObject(pod) || !isJsonObject(pod['spec'])) return ''
  return podSecurityViolationsText(evaluatePod(policy, pod as unknown as PodToCheck))
}
