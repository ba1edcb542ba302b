// What of a new value was there before, and whether it is still the same: what was invalid and nobody touched may stay
// (validation ratcheting, KEP-4008).
import { isJsonObject, type JsonValue } from '../meta/index.ts'
import { jsonEqual } from '../json/json-equal.ts'
import { fieldSchemaOf } from './property.ts'
import type { SchemaNode } from './schema-node.ts'

/** The field as it was; undefined where it cannot be told. */
export function fieldBefore(old: JsonValue | undefined, key: string): JsonValue | undefined {
  return isJsonObject(old) && Object.hasOwn(old, key) ? old[key] : undefined
}

/** The item as it was: only lists of type map say which of the old ones it is. */
export function itemBefore(
  item: JsonValue | undefined,
  old: JsonValue | undefined,
  { listType, listMapKeys = [] }: SchemaNode,
): JsonValue | undefined {
  if (listType !== 'map' || !Array.isArray(old) || !isJsonObject(item)) return undefined
  return old.find((other) => isJsonObject(other) && listMapKeys.every((key) => other[key] === item[key]))
}

/** True if nothing of it changed, as far as the schema lets old and new be compared. */
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
