// The resources that a syncer watches, upstream and in the member.
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'

/** An object of a cache. */
export type CachedObject = DeepReadonly<KubeObject>

export const gvrs = {
  namespaces: { group: '', version: 'v1', resource: 'namespaces' },
  deployments: { group: 'apps', version: 'v1', resource: 'deployments' },
  replicasets: { group: 'apps', version: 'v1', resource: 'replicasets' },
  replicationcontrollers: { group: '', version: 'v1', resource: 'replicationcontrollers' },
  pods: { group: '', version: 'v1', resource: 'pods' },
  services: { group: '', version: 'v1', resource: 'services' },
  endpointslices: { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' },
  configmaps: { group: '', version: 'v1', resource: 'configmaps' },
  secrets: { group: '', version: 'v1', resource: 'secrets' },
  serviceaccounts: { group: '', version: 'v1', resource: 'serviceaccounts' },
  statefulsets: { group: 'apps', version: 'v1', resource: 'statefulsets' },
  daemonsets: { group: 'apps', version: 'v1', resource: 'daemonsets' },
  controllerrevisions: { group: 'apps', version: 'v1', resource: 'controllerrevisions' },
  jobs: { group: 'batch', version: 'v1', resource: 'jobs' },
  cronjobs: { group: 'batch', version: 'v1', resource: 'cronjobs' },
  persistentvolumeclaims: { group: '', version: 'v1', resource: 'persistentvolumeclaims' },
  ingresses: { group: 'networking.k8s.io', version: 'v1', resource: 'ingresses' },
  networkpolicies: { group: 'networking.k8s.io', version: 'v1', resource: 'networkpolicies' },
  limitranges: { group: '', version: 'v1', resource: 'limitranges' },
  horizontalpodautoscalers: { group: 'autoscaling', version: 'v2', resource: 'horizontalpodautoscalers' },
  poddisruptionbudgets: { group: 'policy', version: 'v1', resource: 'poddisruptionbudgets' },
} as const satisfies Record<string, GroupVersionResource>
export type ResourceName = keyof typeof gvrs
