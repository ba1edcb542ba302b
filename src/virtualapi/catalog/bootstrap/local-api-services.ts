// The APIServices of the built-in group versions, as kube-apiserver registers them when it starts.
import { parseApiVersion, type KubeObject } from '#apimachinery/meta/index.ts'
import { placeholders } from './placeholders.ts'

/**
 * The built-in group versions except the group of APIServices, which upstream does not register. Values:
 * [groupPriorityMinimum, versionPriority], as in pkg/controlplane/apiserver/aggregator.go and cmd/kube-apiserver.
 */
const priorities: Readonly<Record<string, readonly [group: number, version: number]>> = {
  v1: [18000, 1],
  'admissionregistration.k8s.io/v1': [16700, 15],
  'admissionregistration.k8s.io/v1beta1': [16700, 12],
  'apiextensions.k8s.io/v1': [16700, 15],
  'apps/v1': [17800, 15],
  'authentication.k8s.io/v1': [17700, 15],
  'authorization.k8s.io/v1': [17600, 15],
  'autoscaling/v1': [17500, 15],
  'autoscaling/v2': [17500, 30],
  'batch/v1': [17400, 15],
  'certificates.k8s.io/v1': [17300, 15],
  'coordination.k8s.io/v1': [16500, 15],
  'discovery.k8s.io/v1': [16200, 15],
  'events.k8s.io/v1': [17750, 15],
  'flowcontrol.apiserver.k8s.io/v1': [16100, 21],
  'networking.k8s.io/v1': [17200, 15],
  'node.k8s.io/v1': [16300, 15],
  'policy/v1': [17100, 15],
  'rbac.authorization.k8s.io/v1': [17000, 15],
  'resource.k8s.io/v1': [16200, 21],
  'scheduling.k8s.io/v1': [16600, 15],
  'storage.k8s.io/v1': [16800, 15],
}

/** The APIServices of the built-in group versions. */
export function localApiServices(): KubeObject[] {
  return Object.entries(priorities).map(([apiVersion, row]) => localApiService(parseApiVersion(apiVersion), row))
}

/**
 * The APIService of a group version of CustomResourceDefinitions, as kube-apiserver's controller of
 * CustomResourceDefinitions registers it.
 */
export function crdApiService(gv: { readonly group: string; readonly version: string }): KubeObject {
  return localApiService(gv, [1000, 100], 'true')
}

/**
 * `managed`: `true` if the APIService is created and deleted with a definition, `onstart` if it exists from the start.
 */
function localApiService(
  { group, version }: { group: string; version: string },
  [groupPriorityMinimum, versionPriority]: readonly [number, number],
  managed: 'onstart' | 'true' = 'onstart',
): KubeObject {
  const condition = {
    type: 'Available',
    status: 'True',
    lastTransitionTime: placeholders.creationTime,
    reason: 'Local',
    message: 'Local APIServices are always available',
  }
  return {
    kind: 'APIService',
    apiVersion: 'apiregistration.k8s.io/v1',
    metadata: {
      name: `${version}.${group}`,
      labels: { 'kube-aggregator.kubernetes.io/automanaged': managed },
    },
    spec: { ...(group === '' ? {} : { group }), version, groupPriorityMinimum, versionPriority },
    status: { conditions: [condition] },
  }
}
