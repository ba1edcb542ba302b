// The owner of an object that a workload's controller created.
import { workloadKinds, type WorkloadKind } from '#crds/index.ts'
import type { CachedObject } from '#syncer/context/resources.ts'

/** The name of the controlling owner, if it is of this kind. */
export function ownerName(
  object: CachedObject,
  { kind, apiVersion }: Pick<WorkloadKind, 'kind' | 'apiVersion'>,
): string | undefined {
  return object.metadata.ownerReferences?.find(
    (owner) => owner.controller === true && owner.kind === kind && owner.apiVersion === apiVersion,
  )?.name
}

/** The workload that controls the object; undefined if its controller is something else. */
export function workloadOwnerOf(
  object: CachedObject,
): { readonly kind: WorkloadKind; readonly name: string } | undefined {
  for (const kind of workloadKinds) {
    const name = ownerName(object, kind)
    if (name !== undefined) return { kind, name }
  }
  return undefined
}
