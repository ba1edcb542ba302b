// Parses the openAPIV3Schema of a CustomResourceDefinition into a SchemaNode.
import { fieldOf, isJsonObject, type JsonObject, type JsonValue, isJsonNumber } from '#apimachinery/meta/index.ts'
import type { SchemaNode } from './schema-node.ts'

/**
 * The parsed schema. Members of a wrong type are left out; structuralViolations reports them. Parsed once per schema
 * text; the result is shared and must not be changed.
 */
export function parseStructuralSchema(schema: JsonObject): SchemaNode {
  const node: SchemaNode = {}
  const set = (name: keyof SchemaNode, value: unknown): void => {
    if (value !== undefined) Object.assign(node, { [name]: value })
  }
  const intOrString = flag(schema, 'x-kubernetes-int-or-string')
  set('type', text(schema, 'type'))
  for (const name of ['format', 'description', 'pattern'] as const) set(name, text(schema, name))
  for (const name of numbers) set(name, number(schema, name))
  for (const name of ['nullable', 'uniqueItems', 'exclusiveMinimum', 'exclusiveMaximum'] as const)
    set(name, flag(schema, name))
  const defaultValue = fieldOf(schema, 'default')
  if (defaultValue !== null) set('default', defaultValue)
  set('enum', list(schema, 'enum'))
  set('required', strings(schema, 'required'))
  set('properties', schemaMap(schema, 'properties'))
  const additional = fieldOf(schema, 'additionalProperties')
  // A real server keeps such values but knows none of their fields, so it prunes the objects among them.
  if (additional === true) set('additionalProperties', {})
  else if (additional === false) set('additionalProperties', false)
  else if (isJsonObject(additional)) set('additionalProperties', parseStructuralSchema(additional))
  set('items', schemaAt(schema, 'items'))
  for (const name of ['allOf', 'anyOf', 'oneOf'] as const) {
    set(name, list(schema, name)?.filter(isJsonObject).map(parseStructuralSchema))
  }
  set('not', schemaAt(schema, 'not'))
  set('intOrString', intOrString)
  set('preserveUnknownFields', flag(schema, 'x-kubernetes-preserve-unknown-fields'))
  set('embeddedResource', flag(schema, 'x-kubernetes-embedded-resource'))
  set('listType', text(schema, 'x-kubernetes-list-type'))
  set('listMapKeys', strings(schema, 'x-kubernetes-list-map-keys'))
  set('mapType', text(schema, 'x-kubernetes-map-type'))
  set('validations', list(schema, 'x-kubernetes-validations'))
  return node
}

const numbers = [
  'minProperties',
  'maxProperties',
  'minItems',
  'maxItems',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'multipleOf',
] as const

function text(schema: JsonObject, name: string): string | undefined {
  const value = fieldOf(schema, name)
  return typeof value === 'string' && value !== '' ? value : undefined
}
function number(schema: JsonObject, name: string): number | undefined {
  const value = fieldOf(schema, name)
  // Go keeps bounds as float64.
  return isJsonNumber(value) ? Number(value) : undefined
}
function flag(schema: JsonObject, name: string): true | undefined {
  return fieldOf(schema, name) === true ? true : undefined
}
function list(schema: JsonObject, name: string): JsonValue[] | undefined {
  const value = fieldOf(schema, name)
  return Array.isArray(value) && value.length > 0 ? value : undefined
}
function strings(schema: JsonObject, name: string): string[] | undefined {
  return list(schema, name)?.filter((item) => typeof item === 'string')
}
function schemaAt(schema: JsonObject, name: string): SchemaNode | undefined {
  const value = fieldOf(schema, name)
  return isJsonObject(value) ? parseStructuralSchema(value) : undefined
}
function schemaMap(schema: JsonObject, name: string): Record<string, SchemaNode> | undefined {
  const value = fieldOf(schema, name)
  if (!isJsonObject(value)) return undefined
  // No prototype: a field called `constructor` must not be found here.
  const map = Object.create(null) as Record<string, SchemaNode>
  for (const [key, item] of Object.entries(value)) if (isJsonObject(item)) map[key] = parseStructuralSchema(item)
  return map
}
