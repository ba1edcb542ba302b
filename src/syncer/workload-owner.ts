// The owner of an object that a workload's controller created.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import { workloadKindOfObject, type WorkloadKind } from '../crds/index.ts'

/** The name of the controlling owner, if it is of this kind. */
export function ownerName(object: DeepReadonly<KubeObject>, kind: string): string | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller === true && owner.kind === kind)?.name
}

/** The workload that controls the object; undefined if its controller is something else. */
export function workloadOwnerOf(
  object: DeepReadonly<KubeObject>,
): { readonly kind: WorkloadKind; readonly name: string } | undefined {
  const owner = object.metadata.ownerReferences?.find(({ controller }) => controller === true)
  const kind = owner === undefined ? undefined : workloadKindOfObject(owner)
  return owner === undefined || kind === undefined ? undefined : { kind, name: owner.name }
}
