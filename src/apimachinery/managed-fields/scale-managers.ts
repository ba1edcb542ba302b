// The managers of the number of replicas: in the Scale of an object, and in the object itself.
import type { ManagedFieldsEntry } from '#apimachinery/meta/index.ts'
import { difference, hasPath, isEmptySet, setOf } from './field-set.ts'
import { decodeManaged, encodeManaged } from './managed-entries.ts'
import type { Owned } from './managers.ts'

/**
 * The path of the number of replicas in objects of an apiVersion; null if there is none, undefined if the version is
 * not served.
 */
export type ReplicasPath = (apiVersion: string) => readonly string[] | null | undefined

const scaleVersion = 'autoscaling/v1'
const replicasOfScale = ['f:spec', 'f:replicas']

/** The entries of an object's Scale. Throws for malformed entries. */
export function scaleManagedFields(
  parent: readonly ManagedFieldsEntry[],
  pathOf: ReplicasPath,
): ManagedFieldsEntry[] | undefined {
  const { managers, times } = decodeManaged(parent, { isOurs: true })
  const result = new Map<string, Owned>()
  for (const [name, { fields, apiVersion, applied }] of managers) {
    const path = pathOf(apiVersion)
    if (path == null || !hasPath(fields, path)) continue
    result.set(name, { fields: setOf(replicasOfScale), apiVersion: scaleVersion, applied })
  }
  return encodeManaged({ managers: result, times })
}

/**
 * The entries of an object after a write of its Scale through version `apiVersion` of the object. `scale` are the new
 * entries of the Scale.
 */
export function managedFieldsFromScale(
  parent: readonly ManagedFieldsEntry[],
  scale: readonly ManagedFieldsEntry[],
  { apiVersion, pathOf }: { apiVersion: string; pathOf: ReplicasPath },
): ManagedFieldsEntry[] | undefined {
  const before = decodeManaged(parent, { isOurs: true })
  const now = decodeManaged(scale, { isOurs: true })
  const left = new Map(now.managers)
  const result = new Map<string, Owned>()
  for (const [name, owned] of before.managers) {
    const path = pathOf(owned.apiVersion)
    if (path === undefined) continue
    if (path === null || !hasPath(owned.fields, path)) {
      result.set(name, owned)
      continue
    }
    if (left.delete(name)) {
      result.set(name, owned)
      continue
    }
    const fields = difference(owned.fields, setOf(path))
    if (!isEmptySet(fields)) result.set(name, { ...owned, fields })
  }
  const path = pathOf(apiVersion)
  for (const [name, { fields, applied }] of left)
    if (path != null && hasPath(fields, replicasOfScale)) result.set(name, { fields: setOf(path), apiVersion, applied })
  return encodeManaged({ managers: result, times: before.times })
}
