// Brings a stored custom resource in line with today's definition when it is read: adds defaults that the definition
// got since the object was written, and drops fields that it lost.
import { parseJsonText } from '#apimachinery/json/index.ts'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { applyDefaults, pruneUnknown, type SchemaNode } from '#apimachinery/schema/index.ts'
import { asBuffer, layOut } from './object-bytes.ts'

/** What defaults may add to an object that was stored without them: a list can have a million such objects. */
const maxAddedBytes = 16 * 1024
/** What is added at most to an object whose new bytes are kept. */
const maxKeptBytes = 1024

/**
 * Stored bytes -> the same bytes, or new ones with defaults added and unknown fields dropped. Keeps its result per
 * buffer where that is not much larger.
 */
export type UpgradeBytes = (bytes: Uint8Array) => Uint8Array

interface Reading {
  /** Whether the definition has been changed since it was created. */
  readonly changed: boolean
  /** Schema of the version that is read. */
  readonly shownAs?: SchemaNode
  /**
   * Without a conversion webhook: the schemas of all listed versions by apiVersion, and the apiVersion of the result.
   * Objects that were written before the storage version was changed have another one, and follow its schema.
   */
  readonly stored?: { readonly schemas: ReadonlyMap<string, SchemaNode>; readonly apiVersion: string }
}

/**
 * `schema` is that of the storage version. Undefined if nothing can be missing or unknown: then objects are served as
 * they are stored, without decoding.
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
  // A version that is no longer listed has no schema. As the storage version, its objects can still be read.
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
