// Fills in the defaults of a schema, and removes nulls that a field may not have.
import { cloneJson, putField, type JsonObject, type JsonValue } from '../meta/index.ts'
import { fieldSchemaOf, propertyOf } from './property.ts'
import type { SchemaNode } from './schema-node.ts'

/**
 * Changes `object` as kube-apiserver does on requests and on reads: a null where the schema allows none becomes the
 * default, or goes away if there is none; absent fields get their default; defaults themselves are filled in.
 */
export function applyDefaults(object: JsonObject, schema: SchemaNode): void {
  fill(object, schema)
}

/** False for schemas of scalars and of free-form values: nothing below them is known. */
function knowsFields({ properties, items, additionalProperties }: SchemaNode): boolean {
  return properties !== undefined || items !== undefined || typeof additionalProperties === 'object'
}

function fill(value: JsonValue, schema: SchemaNode): void {
  if (typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) fillItems(value, schema.items)
  else fillFields(value, schema)
}

function fillFields(object: JsonObject, schema: SchemaNode): void {
  for (const key in object) {
    const value = object[key]
    const field = fieldSchemaOf(schema, key)
    if (field === undefined) continue
    if (value === null && field.nullable !== true) {
      // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- a null that the field may not have
      if (field.default === undefined) delete object[key]
      else if (propertyOf(schema, key) === undefined) putField(object, key, cloneJson(field.default))
    }
  }
  for (const [key, { default: value, nullable }] of defaultsOf(schema)) {
    const present = Object.hasOwn(object, key) ? object[key] : undefined
    if (present === undefined || (present === null && nullable !== true)) putField(object, key, cloneJson(value))
  }
  for (const key in object) {
    const value = object[key]
    if (typeof value !== 'object' || value === null) continue
    const field = fieldSchemaOf(schema, key)
    if (field !== undefined && knowsFields(field)) fill(value, field)
  }
}

function fillItems(items: JsonValue[], schema: SchemaNode | undefined): void {
  if (schema === undefined) return
  for (let i = 0; i < items.length; i++) {
    if (items[i] === null && schema.nullable !== true && schema.default !== undefined)
      items[i] = cloneJson(schema.default)
    const item = items[i] ?? null
    if (knowsFields(schema)) fill(item, schema)
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
