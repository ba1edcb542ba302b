// What differs between two snapshots.
import { compareText, isJsonObject, type JsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { jsonEqual, parseJsonText } from '#apimachinery/json/index.ts'
import { withUids } from './for-another-cluster.ts'
import { keyOf, type ObjectPlace, type ReadLine, type SnapshotManifest } from './format.ts'

export interface Difference extends ObjectPlace {
  readonly change: 'added' | 'removed' | 'changed'
  /** The top-level fields that differ; metadata by its members. */
  readonly fields: readonly string[]
}

/** A snapshot in memory. */
export interface Content {
  readonly manifest: SnapshotManifest
  /** The objects by the key of their place. */
  readonly objects: ReadonlyMap<string, { readonly place: ObjectPlace; readonly object: JsonObject }>
}

/** The object of a line, and its place. */
export function contentOf({ resource, bytes }: ReadLine): { place: ObjectPlace; object: JsonObject } {
  const object = parseJsonText(bytes.toString()) as JsonObject
  const { namespace = '', name = '' } = (isJsonObject(object['metadata']) ? object['metadata'] : {}) as {
    namespace?: string
    name?: string
  }
  return { place: { resource, namespace, name }, object }
}

/**
 * The differences in the order of places. A revision alone is none. Between two logical clusters, objects of the same
 * place count as the same object whatever their uids, and objects with which both began are left out.
 */
export function differences(before: Content, after: Content): Difference[] {
  const isSame = before.manifest.logicalCluster.id === after.manifest.logicalCluster.id
  const uids = isSame ? undefined : uidsOfPlaces(before, after)
  const initial = new Set(after.manifest.initial.map(keyOf))
  const skipped = new Set(before.manifest.initial.map(keyOf).filter((key) => initial.has(key)))
  const found: Difference[] = []
  for (const [key, { place, object }] of before.objects) {
    const other = after.objects.get(key)
    if (other === undefined) found.push({ ...place, change: 'removed', fields: [] })
    else if (!skipped.has(key)) {
      const then =
        uids === undefined ? object : (withUids(object as unknown as KubeObject, uids) as unknown as JsonObject)
      const fields = fieldsThatDiffer(then, other.object)
      if (fields.length > 0) found.push({ ...place, change: 'changed', fields })
    }
  }
  for (const [key, { place }] of after.objects)
    if (!before.objects.has(key)) found.push({ ...place, change: 'added', fields: [] })
  return found.sort((a, b) => compareText(orderOf(a), orderOf(b)))
}

function orderOf({ resource, namespace, name }: ObjectPlace): string {
  return `${resource}\u0000${namespace}\u0000${name}`
}

/** The uid in `after` of each object of `before` that has the same place. */
function uidsOfPlaces(before: Content, after: Content): Map<string, string> {
  const uids = new Map<string, string>()
  for (const [key, { object }] of before.objects) {
    const [from, to] = [uidOf(object), uidOf(after.objects.get(key)?.object)]
    if (from !== undefined && to !== undefined) uids.set(from, to)
  }
  return uids
}

function uidOf(object: JsonObject | undefined): string | undefined {
  const uid = isJsonObject(object?.['metadata']) ? object['metadata']['uid'] : undefined
  return typeof uid === 'string' ? uid : undefined
}

function fieldsThatDiffer(a: JsonObject, b: JsonObject): string[] {
  const [metaA, metaB] = [a, b].map((object) => (isJsonObject(object['metadata']) ? object['metadata'] : {}))
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  names.delete('metadata')
  const top = [...names].filter((name) => !jsonEqual(a[name] ?? null, b[name] ?? null))
  const meta = [...new Set([...Object.keys(metaA ?? {}), ...Object.keys(metaB ?? {})])].filter(
    (name) => name !== 'resourceVersion' && !jsonEqual(metaA?.[name] ?? null, metaB?.[name] ?? null),
  )
  return [...meta.map((name) => `metadata.${name}`), ...top]
}
