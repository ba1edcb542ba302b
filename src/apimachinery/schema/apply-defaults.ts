// Fills in the defaults of a schema, and removes nulls from fields that are not nullable.
import { cloneJson, putField, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { fieldSchemaOf, propertyOf } from './property.ts'
import type { SchemaNode } from './schema-node.ts'

/** Maximum bytes of JSON that defaults may add to one object: a default with many items could grow it without bound. */
const maxAddedBytes = 8 * 1024 * 1024

/**
 * Changes `object` as kube-apiserver does on requests and on reads: a null in a field that is not nullable becomes the
 * default, or is removed if there is none; absent fields get their default; defaults are themselves filled in. Returns
 * false when `maxBytes` (default 8 MiB) is exceeded; the object is then without the defaults that did not fit.
 */
export function applyDefaults(
  object: JsonObject,
  schema: SchemaNode,
  { maxBytes = maxAddedBytes }: { readonly maxBytes?: number } = {},
): boolean {
  const room = { bytes: maxBytes, isExceeded: false }
  fill(object, schema, room)
  return !room.isExceeded
}

interface Room {
  bytes: number
  /** A default was left out, because it did not fit. */
  isExceeded: boolean
}

const sizes = new WeakMap<object, number>()

/** A copy of a default; undefined if it does not fit into the byte budget. */
function copyOf(value: JsonValue, room: Room): JsonValue | undefined {
  const size = sizeOf(value)
  if (size > room.bytes) {
    room.isExceeded = true
    return undefined
  }
  room.bytes -= size
  return cloneJson(value)
}

function sizeOf(value: JsonValue): number {
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object' || value === null) return 8
  let size = sizes.get(value)
  if (size === undefined) {
    size = JSON.stringify(value).length
    sizes.set(value, size)
  }
  return size
}

/** False for schemas of scalars and free-form values: they define no fields. */
function knowsFields({ properties, items, additionalProperties }: SchemaNode): boolean {
  return properties !== undefined || items !== undefined || typeof additionalProperties === 'object'
}

function fill(value: JsonValue, schema: SchemaNode, room: Room): void {
  if (typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) fillItems(value, schema.items, room)
  else fillFields(value, schema, room)
}

function fillFields(object: JsonObject, schema: SchemaNode, room: Room): void {
  for (const key in object) {
    const value = object[key]
    const field = fieldSchemaOf(schema, key)
    if (field === undefined) continue
    if (value === null && field.nullable !== true) {
      // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- a null that the field may not have
      if (field.default === undefined) delete object[key]
      else if (propertyOf(schema, key) === undefined) putDefault(object, key, field.default, room)
    }
  }
  for (const [key, { default: value, nullable }] of defaultsOf(schema)) {
    const present = Object.hasOwn(object, key) ? object[key] : undefined
    if (present === undefined || (present === null && nullable !== true)) putDefault(object, key, value, room)
  }
  for (const key in object) {
    const value = object[key]
    if (typeof value !== 'object' || value === null) continue
    const field = fieldSchemaOf(schema, key)
    if (field !== undefined && knowsFields(field)) fill(value, field, room)
  }
}

function putDefault(object: JsonObject, key: string, value: JsonValue, room: Room): void {
  const copy = copyOf(value, room)
  if (copy !== undefined) putField(object, key, copy)
}

function fillItems(items: JsonValue[], schema: SchemaNode | undefined, room: Room): void {
  if (schema === undefined) return
  for (let i = 0; i < items.length; i++) {
    if (items[i] === null && schema.nullable !== true && schema.default !== undefined)
      items[i] = copyOf(schema.default, room) ?? null
    const item = items[i] ?? null
    if (knowsFields(schema)) fill(item, schema, room)
  }
}

interface Default {
  readonly default: JsonValue
  readonly nullable: boolean | undefined
}

const defaultsByNode = new WeakMap<SchemaNode, [string, Default][]>()

function defaultsOf(schema: SchemaNode): [string, Default][] {
  let defaults = defaultsByNode.get(schema)
  if (defaults === undefined) {
    defaults = []
    for (const [key, { default: value, nullable }] of Object.entries(schema.properties ?? {})) {
      if (value !== undefined) defaults.push([key, { default: value, nullable }])
    }
    defaultsByNode.set(schema, defaults)
  }
  return defaults
}
