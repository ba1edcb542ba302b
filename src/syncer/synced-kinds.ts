// The table of kinds that go down into members. To sync another kind, add a line: where it is served, when a member gets
// a copy, and what the copy looks like.
import type { GroupVersionResource, KubeObject } from '../apimachinery/meta/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import type { NamespaceView } from './namespace-view.ts'
import { contentDown, deploymentDown, serviceAccountDown, serviceDown, type Place } from './transform/down.ts'
import type { PodContext } from './transform/pod-template.ts'

export const gvrs = {
  namespaces: { group: '', version: 'v1', resource: 'namespaces' },
  deployments: { group: 'apps', version: 'v1', resource: 'deployments' },
  replicasets: { group: 'apps', version: 'v1', resource: 'replicasets' },
  pods: { group: '', version: 'v1', resource: 'pods' },
  services: { group: '', version: 'v1', resource: 'services' },
  endpointslices: { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' },
  configmaps: { group: '', version: 'v1', resource: 'configmaps' },
  secrets: { group: '', version: 'v1', resource: 'secrets' },
  serviceaccounts: { group: '', version: 'v1', resource: 'serviceaccounts' },
} as const satisfies Record<string, GroupVersionResource>
export type ResourceName = keyof typeof gvrs

export interface SyncedKind {
  readonly resource: ResourceName
  /** Whether this member is to have a copy. Deleting upstream objects are never asked about. */
  readonly wanted: (object: DeepReadonly<KubeObject>, view: NamespaceView) => boolean
  readonly down: (object: DeepReadonly<KubeObject>, place: Place, context: PodContext) => KubeObject
  /**
   * A workload: deletion upstream waits, by a finalizer, until nothing of it is left in the member, and in the member it
   * goes only when its pods have gone. Its pod template's references are applied before it and leave after it.
   */
  readonly workload?: true
}

/** A member has its own controllers and these would fight over the object with us. */
const memberKeepsItsOwn = new Set(['configmaps/kube-root-ca.crt'])

export const syncedKinds: readonly SyncedKind[] = [
  { resource: 'deployments', workload: true, wanted: (object, view) => view.placedHere(object), down: deploymentDown },
  {
    resource: 'services',
    // Every cluster makes its own `kubernetes`; in a pod that name leads to the logical cluster.
    wanted: ({ metadata }, view) =>
      view.servicesWanted && !(metadata.name === 'kubernetes' && metadata.namespace === 'default'),
    down: serviceDown,
  },
  { resource: 'configmaps', wanted: referenced('configmaps'), down: contentDown },
  { resource: 'secrets', wanted: referenced('secrets'), down: contentDown },
  { resource: 'serviceaccounts', wanted: referenced('serviceaccounts'), down: serviceAccountDown },
]

function referenced(resource: ResourceName): SyncedKind['wanted'] {
  return ({ metadata: { name = '' } }, view) =>
    view.references.has(`${resource}/${name}`) && !memberKeepsItsOwn.has(`${resource}/${name}`)
}
