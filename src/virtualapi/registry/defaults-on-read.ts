// Defaults that a CustomResourceDefinition got after an object was written: readers see them all the same.
import { encodeJson, type JsonObject } from '../../apimachinery/meta/index.ts'
import { applyDefaults, type SchemaNode } from '../../apimachinery/schema/index.ts'
import { decodeObject } from './object-bytes.ts'

/** Bytes at rest -> the same bytes, or others with what was missing. Asked again for the same bytes it remembers. */
export type CompleteBytes = (bytes: Uint8Array) => Uint8Array

/** Undefined for schemas without defaults: their objects are served as they are kept, never decoded. */
export function defaultsOnRead(schema: SchemaNode | undefined): CompleteBytes | undefined {
  if (schema === undefined || !hasDefaults(schema, new Set())) return undefined
  // By identity: an object that did not change is the same bytes in memory.
  const known = new WeakMap<Uint8Array, Uint8Array>()
  return (bytes) => {
    let complete = known.get(bytes)
    if (complete === undefined) {
      complete = completed(bytes, schema)
      known.set(bytes, complete)
    }
    return complete
  }
}

function completed(bytes: Uint8Array, schema: SchemaNode): Uint8Array {
  const object = decodeObject(bytes)
  const before = encodeJson(object)
  applyDefaults(object as unknown as JsonObject, schema)
  const after = encodeJson(object)
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
