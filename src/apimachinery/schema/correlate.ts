// Finds the old value that a new value replaces, and whether they are equal: an invalid value may stay if it is
// unchanged (validation ratcheting, KEP-4008).
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { jsonEqual } from '#apimachinery/json/json-equal.ts'
import { fieldSchemaOf } from './property.ts'
import type { SchemaNode } from './schema-node.ts'

/** The old value of a field; undefined if there is none. */
export function fieldBefore(old: JsonValue | undefined, key: string): JsonValue | undefined {
  return isJsonObject(old) && Object.hasOwn(old, key) ? old[key] : undefined
}

/** The old value of a list item; only items of lists of type map can be matched. */
export function itemBefore(
  item: JsonValue | undefined,
  old: JsonValue | undefined,
  { listType, listMapKeys = [] }: SchemaNode,
): JsonValue | undefined {
  if (listType !== 'map' || !Array.isArray(old) || !isJsonObject(item)) return undefined
  const key = identity(item, listMapKeys)
  return key === undefined ? undefined : itemsByKey(old, listMapKeys).get(key)
}

/** The items of old lists by their keys: a search through all items for each item would be quadratic. */
const indexes = new WeakMap<readonly JsonValue[], { keys: string; items: ReadonlyMap<string, JsonObject> }>()

function itemsByKey(list: readonly JsonValue[], keys: readonly string[]): ReadonlyMap<string, JsonObject> {
  const known = indexes.get(list)
  const text = JSON.stringify(keys)
  if (known?.keys === text) return known.items
  const items = new Map<string, JsonObject>()
  for (const item of list) {
    const key = isJsonObject(item) ? identity(item, keys) : undefined
    // The first of several items with the same key counts.
    if (isJsonObject(item) && key !== undefined && !items.has(key)) items.set(key, item)
  }
  indexes.set(list, { keys: text, items })
  return items
}

/** The values of the keys as text; undefined if one is a list or an object, which are never keys. */
function identity(item: JsonObject, keys: readonly string[]): string | undefined {
  const values: unknown[] = []
  for (const key of keys) {
    const value = item[key]
    if (typeof value === 'object' && value !== null) return undefined
    // An absent key differs from null.
    values.push(value === undefined ? [] : value)
  }
  return JSON.stringify(values)
}

/** True if the value is known to be unchanged, as far as the schema allows comparing old and new. */
export function isUnchanged(value: JsonValue, old: JsonValue | undefined, schema: SchemaNode): boolean {
  if (old === undefined) return false
  if (Array.isArray(value)) {
    if (!Array.isArray(old) || old.length !== value.length) return false
    if (schema.listType !== 'map' || schema.items === undefined) return jsonEqual(value, old)
    const { items } = schema
    return value.every((item) => isUnchanged(item, itemBefore(item, old, schema), items))
  }
  if (!isJsonObject(value)) return value === old
  if (!isJsonObject(old)) return false
  const keys = Object.keys(value)
  if (keys.length !== Object.keys(old).length) return false
  return keys.every((key) => {
    const field = fieldSchemaOf(schema, key)
    return field !== undefined && isUnchanged(value[key] ?? null, fieldBefore(old, key), field)
  })
}
