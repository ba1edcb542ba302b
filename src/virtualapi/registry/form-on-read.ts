// The form in which readers see a custom resource that was written when its definition was another: with the defaults and
// without the fields that the definition got and lost since.
import type { JsonObject } from '../../apimachinery/meta/index.ts'
import { applyDefaults, pruneUnknown, type SchemaNode } from '../../apimachinery/schema/index.ts'
import { decodeObject, layOut } from './object-bytes.ts'

/** Bytes at rest -> the same bytes, or others with what was missing. Asked again for the same bytes it remembers. */
export type CompleteBytes = (bytes: Uint8Array) => Uint8Array

interface Reading {
  /** Whether the definition ever was another. */
  readonly changed: boolean
  /** Of the version that is read, where that is not the one that objects are kept in. */
  readonly shownAs?: SchemaNode | undefined
}

/**
 * `schema` is that of the version that objects are kept in. Undefined where nothing can be missing or too much: objects
 * are served as they are kept, never decoded.
 */
export function formOnRead(schema: SchemaNode | undefined, { changed, shownAs }: Reading): CompleteBytes | undefined {
  if (schema === undefined || !(changed || shownAs !== undefined || hasDefaults(schema, new Set()))) return undefined
  // By identity: an object that did not change is the same bytes in memory.
  const known = new WeakMap<Uint8Array, Uint8Array>()
  return (bytes) => {
    let complete = known.get(bytes)
    if (complete === undefined) {
      complete = completed(bytes, schema, shownAs)
      known.set(bytes, complete)
    }
    return complete
  }
}

function completed(bytes: Uint8Array, schema: SchemaNode, shownAs: SchemaNode | undefined): Uint8Array {
  const object = decodeObject(bytes)
  const before = layOut(object)
  pruneUnknown(object as unknown as JsonObject, schema, { isResourceRoot: true })
  // What does not fit is left out: whoever made such defaults can still read, and delete, what has them.
  applyDefaults(object as unknown as JsonObject, schema)
  if (shownAs !== undefined) pruneUnknown(object as unknown as JsonObject, shownAs, { isResourceRoot: true })
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
