// What one namespace of a logical cluster has in one member: its workloads there, and what they refer to.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import { hasCopy, placedOn, syncerFinalizer, templateOf } from '../crds/index.ts'
import { referencesOf } from './references.ts'
import type { PodSpec } from './transform/pod-types.ts'

export interface NamespaceView {
  /** A workload of this namespace is in the member, or should be. */
  readonly present: boolean
  /** Services of this namespace should be in the member. */
  readonly servicesWanted: boolean
  /** `configmaps/NAME` and so on: what workloads in the member refer to, including those that are being removed. */
  readonly references: ReadonlySet<string>
  placedHere(workload: DeepReadonly<KubeObject>): boolean
}

/**
 * The view of a namespace, from its workloads. `clusterPresent`: the logical cluster has pods in the member that reach pods of
 * other members, so they may use Services of every namespace.
 */
export function viewNamespace(
  workloads: Iterable<DeepReadonly<KubeObject>>,
  { member, clusterPresent }: { member: string; clusterPresent: boolean },
): NamespaceView {
  const references = new Set<string>()
  let present = false
  for (const workload of workloads) {
    if (!isInMember(workload, member)) continue
    present = true
    const spec = (templateOf(workload) as { spec?: DeepReadonly<PodSpec> } | undefined)?.spec
    if (spec === undefined) continue
    for (const { resource, name } of referencesOf(spec)) references.add(`${resource}/${name}`)
  }
  return {
    present,
    servicesWanted: present || clusterPresent,
    references,
    placedHere: (workload) => hasCopy(placedOn(workload as KubeObject)[member]),
  }
}

/**
 * True while the member has, or should have, something of this workload. Only the scheduler brings a workload into a member:
 * a finalizer alone, whoever wrote it, leads to no object there.
 */
export function isInMember(workload: DeepReadonly<KubeObject>, member: string): boolean {
  const copy = placedOn(workload as KubeObject)[member]
  if (copy === undefined) return false
  const deleting = workload.metadata.deletionTimestamp !== undefined
  const leaving = workload.metadata.finalizers?.includes(syncerFinalizer(member)) ?? false
  return leaving || (!deleting && hasCopy(copy))
}
