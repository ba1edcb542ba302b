// The kinds that are copied into members. To sync another kind, add a row: when a member gets a copy, and what the copy
// looks like. Workloads come from the table in crds/workload-kinds.ts.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import { workloadKinds, type WorkloadKind } from '../crds/index.ts'
import type { NamespaceView } from './namespace-view.ts'
import type { ResourceName } from './resources/resources.ts'
import { contentDown, serviceAccountDown, serviceDown, workloadDown, type OwnerCluster } from './transform/down.ts'
import type { PodContext } from './transform/pod-template.ts'

export interface SyncedKind {
  readonly resource: ResourceName
  /** Whether this member should have a copy. Not called for objects that are being deleted. */
  readonly wanted: (object: DeepReadonly<KubeObject>, view: NamespaceView) => boolean
  readonly down: (object: DeepReadonly<KubeObject>, owner: OwnerCluster, context: PodContext) => KubeObject
  /**
   * A workload: a finalizer delays its deletion upstream until nothing of it is left in the member, and its copy is deleted
   * in the foreground. Objects that its pod template refers to are applied before it and deleted after it.
   */
  readonly workload?: WorkloadKind
}

/** Every member creates these itself: its controllers would overwrite a copy of ours. */
const createdByMembers = new Set(['configmaps/kube-root-ca.crt'])

export const syncedKinds: readonly SyncedKind[] = [
  ...workloadKinds.map((workload) => ({
    resource: workload.gvr.resource,
    workload,
    wanted: (object: DeepReadonly<KubeObject>, view: NamespaceView) => view.placedHere(object),
    down: workloadDown,
  })),
  {
    resource: 'services',
    // Every cluster has its own Service `kubernetes`. In pods this name leads to the API of the logical cluster.
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
    view.references.has(`${resource}/${name}`) && !createdByMembers.has(`${resource}/${name}`)
}
