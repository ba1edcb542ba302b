// What one namespace of a logical cluster has to do with one member: which workloads are there, what they refer to.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import { hasCopy, placedOn, syncerFinalizer } from '../crds/index.ts'
import { referencesOf } from './references.ts'
import type { PodSpec } from './transform/pod-types.ts'

export interface NamespaceView {
  /** Something of this namespace is in the member, or is to be. */
  readonly present: boolean
  /** Services of this namespace are to be in the member. */
  readonly servicesWanted: boolean
  /** `configmaps/NAME` and so on: what workloads in the member refer to, those that are leaving included. */
  readonly references: ReadonlySet<string>
  placedHere(workload: DeepReadonly<KubeObject>): boolean
}

/**
 * The view of a namespace from its workloads. `clusterPresent`: the logical cluster has pods in the member and these
 * reach pods of other members, so they may ask for Services of any namespace.
 */
export function viewNamespace(
  workloads: Iterable<DeepReadonly<KubeObject>>,
  { member, clusterPresent }: { member: string; clusterPresent: boolean },
): NamespaceView {
  const references = new Set<string>()
  let present = false
  for (const workload of workloads) {
    if (!holdsHere(workload, member)) continue
    present = true
    const { template } = (workload['spec'] ?? {}) as { template?: { spec?: DeepReadonly<PodSpec> } }
    if (template?.spec === undefined) continue
    for (const { resource, name } of referencesOf(template.spec)) references.add(`${resource}/${name}`)
  }
  return {
    present,
    servicesWanted: present || clusterPresent,
    references,
    placedHere: (workload) => hasCopy(placedOn(workload as KubeObject)[member]),
  }
}

/** True while the member has, or is to have, anything of this workload. */
export function holdsHere(workload: DeepReadonly<KubeObject>, member: string): boolean {
  const leaving = workload.metadata.finalizers?.includes(syncerFinalizer(member)) ?? false
  const deleting = workload.metadata.deletionTimestamp !== undefined
  return leaving || (!deleting && hasCopy(placedOn(workload as KubeObject)[member]))
}
