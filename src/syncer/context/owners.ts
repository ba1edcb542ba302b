// The controller of an object, as its owner references name it.
import type { OwnerReference } from '#apimachinery/meta/index.ts'
import type { CachedObject } from './resources.ts'

/** The owner that is the controller of an object; undefined if there is none. */
export function controllerOf({ metadata }: CachedObject): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)
}

/** The reference that makes an object the controller of another one. */
export function asController({ apiVersion, kind, metadata: { name = '', uid = '' } }: CachedObject): OwnerReference {
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }
}
