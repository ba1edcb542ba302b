// The owner of an object that a workload's controller created.
import { workloadKinds, type WorkloadKind } from '#crds/index.ts'
import { controllerOf } from '#syncer/context/owners.ts'
import type { CachedObject } from '#syncer/context/resources.ts'

/** The workload that controls the object; undefined if its controller is something else. */
export function workloadOwnerOf(
  object: CachedObject,
): { readonly kind: WorkloadKind; readonly name: string } | undefined {
  const owner = controllerOf(object)
  const kind = workloadKinds.find((row) => row.kind === owner?.kind && row.apiVersion === owner.apiVersion)
  return owner === undefined || kind === undefined ? undefined : { kind, name: owner.name }
}
