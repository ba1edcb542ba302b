// Brings a stored custom resource in line with today's definition when it is read: adds defaults that the definition
// got since the object was written, and drops fields that it lost.
import type { JsonObject } from '../../apimachinery/meta/index.ts'
import { applyDefaults, pruneUnknown, type SchemaNode } from '../../apimachinery/schema/index.ts'
import { decodeObject, layOut } from './object-bytes.ts'

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
  /** Schema of the version that is read, if that is not the storage version. */
  readonly shownAs?: SchemaNode | undefined
}

/**
 * `schema` is that of the storage version. Undefined if nothing can be missing or unknown: then objects are served as
 * they are stored, without decoding.
 */
export function upgradeOnRead(schema: SchemaNode | undefined, { changed, shownAs }: Reading): UpgradeBytes | undefined {
  if (schema === undefined || !(changed || shownAs !== undefined || hasDefaults(schema, new Set()))) return undefined
  // Keyed by identity: an unchanged object keeps the same buffer in memory.
  const known = new WeakMap<Uint8Array, Uint8Array>()
  return (bytes) => {
    let complete = known.get(bytes)
    if (complete === undefined) {
      complete = completed(bytes, schema, shownAs)
      if (complete.length <= bytes.length + maxKeptBytes) known.set(bytes, complete)
    }
    return complete
  }
}

function completed(bytes: Uint8Array, schema: SchemaNode, shownAs: SchemaNode | undefined): Uint8Array {
  const object = decodeObject(bytes)
  const before = layOut(object)
  pruneUnknown(object as unknown as JsonObject, schema, { isResourceRoot: true })
  // Defaults that would make the object too large are left out, so that it can still be read and deleted.
  applyDefaults(object as unknown as JsonObject, schema, { maxBytes: maxAddedBytes })
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
