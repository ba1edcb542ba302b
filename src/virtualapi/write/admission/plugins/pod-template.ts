// The pod template of each kind that creates pods.
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import type { PodToCheck } from '#apimachinery/pod-security/index.ts'

/** By store key: the path to the pod or its template. */
const paths: Readonly<Record<string, readonly string[]>> = {
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

/** The path to the pod spec in objects of a kind, such as `spec.template.spec`. */
export function podSpecPath(storageKey: string): string {
  return [...(paths[storageKey] ?? []), 'spec'].join('.')
}

/** The pod or pod template in an object; undefined if it has none. `storageKey`: such as `pods` or `jobs.batch`. */
export function podIn(storageKey: string, object: KubeObject): PodToCheck | undefined {
  const path = paths[storageKey]
  if (path === undefined) return undefined
  const pod = path.reduce<unknown>((value, field) => (isJsonObject(value) ? value[field] : undefined), object)
  return isJsonObject(pod) && isJsonObject(pod['spec']) ? (pod as unknown as PodToCheck) : undefined
}
