// What an informer over all logical clusters keeps of an object: thousands of tenants' namespaces stay small in memory.
import type { KubeObject, ObjectMeta } from '../../apimachinery/meta/index.ts'

/** Identity, position, deletion; nothing else. */
export function skeletonOf({ apiVersion, kind, metadata }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, deletionTimestamp } = metadata
  const kept: ObjectMeta = {}
  if (name !== undefined) kept.name = name
  if (namespace !== undefined) kept.namespace = namespace
  if (uid !== undefined) kept.uid = uid
  if (resourceVersion !== undefined) kept.resourceVersion = resourceVersion
  if (deletionTimestamp !== undefined) kept.deletionTimestamp = deletionTimestamp
  return { apiVersion, kind, metadata: kept }
}
