// The controller of an object, as its owner references name it.
import type { OwnerReference } from '#apimachinery/meta/index.ts'
import { workloadKinds, type WorkloadKind } from '#crds/index.ts'
import type { CachedObject } from './resources.ts'

/** The owner that is the controller of an object; undefined if there is none. */
export function controllerOf({ metadata }: CachedObject): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)
}

/** The reference that makes an object the controller of another one. */
export function asController({ apiVersion, kind, metadata: { name = '', uid = '' } }: CachedObject): OwnerReference {
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }
}

/** The workload that controls the object; undefined if its controller is something else. */
export function workloadOwnerOf(
  object: CachedObject,
): { readonly kind: WorkloadKind; readonly name: string } | undefined {
  const owner = controllerOf(object)
  const kind = workloadKinds.find((row) => row.kind === owner?.kind && row.apiVersion === owner.apiVersion)
  return owner === undefined || kind === undefined ? undefined : { kind, name: owner.name }
}
