// Brings a stored custom resource in line with today's definition when it is read: adds defaults that the definition
// got since the object was written, and drops fields that the definition no longer has.
import { parseJsonText } from '#apimachinery/json/index.ts'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { applyDefaults, pruneUnknown, type SchemaNode } from '#apimachinery/schema/index.ts'
import { asBuffer, layOut } from './object-bytes.ts'

/**
 * The most bytes that defaults may add to an object that was stored without them. A list can have a million such
 * objects.
 */
const maxAddedBytes = 16 * 1024
/** The most bytes by which upgraded bytes may be longer than the stored bytes and still be cached. */
const maxKeptBytes = 1024

/**
 * Maps stored bytes to the same bytes, or to new bytes with defaults added and unknown fields dropped. Caches its
 * result per buffer if it is not much larger.
 */
export type UpgradeBytes = (bytes: Uint8Array) => Uint8Array

interface Reading {
  /** True if the definition has been changed since it was created. */
  readonly changed: boolean
  /** Schema of the version that is read. */
  readonly shownAs?: SchemaNode
  /**
   * Without a conversion webhook: the schemas of all listed versions by apiVersion, and the apiVersion of the result.
   * Objects that were written before a change of the storage version have another apiVersion and follow the schema of
   * that version.
   */
  readonly stored?: { readonly schemas: ReadonlyMap<string, SchemaNode>; readonly apiVersion: string }
}

/**
 * The upgrade of a resource version; undefined if no field can be missing or unknown, so that objects are served as
 * stored, without decoding. `schema`: the schema of the storage version.
 */
export function upgradeOnRead(schema: SchemaNode | undefined, reading: Reading): UpgradeBytes | undefined {
  if (schema === undefined) return undefined
  const { changed, shownAs = schema } = reading
  if (!changed && shownAs === schema && !hasDefaults(schema, new Set())) return undefined
  // Keyed by identity: an unchanged object keeps the same buffer in memory.
  const known = new WeakMap<Uint8Array, Uint8Array>()
  return (bytes) => {
    let complete = known.get(bytes)
    if (complete === undefined) {
      complete = completed(bytes, schema, { ...reading, shownAs })
      if (complete.length <= bytes.length + maxKeptBytes) known.set(bytes, complete)
    }
    return complete
  }
}

function completed(
  bytes: Uint8Array,
  storageSchema: SchemaNode,
  { shownAs, stored }: Pick<Reading, 'stored'> & { readonly shownAs: SchemaNode },
): Uint8Array {
  const before = asBuffer(bytes).toString()
  const object = parseJsonText(before) as unknown as KubeObject
  const json = object as unknown as JsonObject
  // A version that is no longer listed has no schema. Its objects are read with the schema of the storage version, so
  // that they can still be read.
  const schema = stored?.schemas.get(object.apiVersion) ?? storageSchema
  pruneUnknown(json, schema, { isResourceRoot: true })
  // Defaults that would make the object too large are left out, so that it can still be read and deleted.
  applyDefaults(json, schema, { maxBytes: maxAddedBytes })
  if (shownAs !== schema) pruneUnknown(json, shownAs, { isResourceRoot: true })
  if (stored !== undefined) object.apiVersion = stored.apiVersion
  const after = layOut(object)
  return after === before ? bytes : Buffer.from(after)
}

function hasDefaults(node: SchemaNode, seen: Set<SchemaNode>): boolean {
  if (seen.has(node)) return false
  seen.add(node)
  if (node.default !== undefined) return true
  const { properties = {}, items, additionalProperties } = node
  const children = [...Object.values(properties), items, additionalProperties]
  return children.some((child) => typeof child === 'object' && hasDefaults(child, seen))
}
