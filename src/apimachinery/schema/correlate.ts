// Finds the old value that a new value replaces, and whether they are equal: an invalid value may stay if it is
// unchanged (validation ratcheting, KEP-4008).
import { isJsonObject, type JsonValue } from '../meta/index.ts'
import { jsonEqual } from '../json/json-equal.ts'
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
  return old.find((other) => isJsonObject(other) && listMapKeys.every((key) => other[key] === item[key]))
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
