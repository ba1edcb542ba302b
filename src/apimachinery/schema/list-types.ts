// Uniqueness in lists of type set and map.
import { fieldDuplicate, fieldInvalid } from '#apimachinery/field/index.ts'
import { goJson } from '#apimachinery/text/index.ts'
import { fieldOf, isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { fieldSchemaOf } from './property.ts'
import type { SchemaNode } from './schema-node.ts'
import { pathText, type ValuePath } from './value-path.ts'

/** A duplicate error for each item that repeats an earlier one in a list of type set or map. */
export function listCauses(value: JsonValue, schema: SchemaNode): StatusCause[] {
  const causes: StatusCause[] = []
  if (mayHaveLists(schema)) walk(value, schema, [], causes)
  return causes
}

// Whether a node or any node below it is a list of type set or map, computed once per node. A node in a cycle counts as
// true.
const known = new WeakMap<SchemaNode, boolean>()

function mayHaveLists(schema: SchemaNode | undefined): boolean {
  if (schema === undefined) return false
  const answer = known.get(schema)
  if (answer !== undefined) return answer
  known.set(schema, true)
  const { additionalProperties: map } = schema
  const answerNow =
    schema.listType === 'set' ||
    schema.listType === 'map' ||
    mayHaveLists(schema.items) ||
    (typeof map === 'object' && mayHaveLists(map)) ||
    Object.values(schema.properties ?? {}).some(mayHaveLists)
  known.set(schema, answerNow)
  return answerNow
}

function walk(value: JsonValue, schema: SchemaNode, path: ValuePath, causes: StatusCause[]): void {
  if (typeof value !== 'object' || value === null || causes.length >= 100) return
  if (Array.isArray(value)) {
    if (schema.listType === 'set') causes.push(...repeated(value, value, path))
    else if (schema.listType === 'map') causes.push(...repeatedKeys(value, schema.listMapKeys ?? [], path))
    if (schema.items === undefined || !mayHaveLists(schema.items)) return
    for (const [i, item] of value.entries()) {
      path.push(i)
      walk(item, schema.items, path, causes)
      path.pop()
    }
    return
  }
  for (const key in value) {
    const field = fieldSchemaOf(schema, key)
    if (field === undefined || !mayHaveLists(field)) continue
    path.push(key)
    walk(value[key] ?? null, field, path, causes)
    path.pop()
  }
}

function repeatedKeys(list: JsonValue[], mapKeys: string[], path: ValuePath): StatusCause[] {
  const bad = list.findIndex((item) => item !== null && !isJsonObject(item))
  if (bad >= 0) {
    return [
      fieldInvalid(
        `${pathText(path)}[${String(bad)}]`,
        list[bad] ?? null,
        'must be an object for an array of list-type map',
      ),
    ]
  }
  const keys = list.map((item) => {
    const key: JsonObject = {}
    for (const name of mapKeys) {
      const part = isJsonObject(item) ? fieldOf(item, name) : undefined
      if (part !== undefined) key[name] = part
    }
    return key
  })
  return repeated(keys, keys, path)
}

function repeated(keys: JsonValue[], shown: JsonValue[], path: ValuePath): StatusCause[] {
  const seen = new Map<string, number>()
  const causes: StatusCause[] = []
  for (const [i, key] of keys.entries()) {
    const text = goJson(key)
    const times = (seen.get(text) ?? 0) + 1
    seen.set(text, times)
    if (times === 2) causes.push(fieldDuplicate(`${pathText(path)}[${String(i)}]`, shown[i] ?? null))
  }
  return causes
}
