// The types that a structural schema gives to expressions, with the sizes that values may have.
import type { SchemaNode } from '#apimachinery/schema/index.ts'
import {
  boolType,
  bytesType,
  type CelType,
  doubleType,
  durationType,
  dynType,
  intType,
  listOf,
  mapOf,
  stringType,
  structType,
  timestampType,
} from './cel-type.ts'
import { escapeFieldName, isReservedWord } from './field-names.ts'

/** The largest body of a request in bytes: no value of a schema can be larger. */
const maxRequestBytes = 3 * 1024 * 1024
const datetimeBytes = 32
const dateBytes = 12
const minDatetimeBytes = 21
const minDurationBytes = 3

export interface DeclaredType {
  readonly type: CelType
  /** Characters, items or entries at most; 0 where the type has no size. */
  readonly maxElements: number
  /** Bytes that a value takes in JSON at least. */
  readonly minSerializedSize: number
  /** Of an object, by the identifier of the field. */
  readonly fields?: ReadonlyMap<string, DeclaredType>
  readonly key?: DeclaredType
  readonly element?: DeclaredType
}

const scalar = (type: CelType, minSerializedSize: number, maxElements = 0): DeclaredType => ({
  type,
  minSerializedSize,
  maxElements,
})

const mapKey = scalar(stringType, 2)

/** The type of a schema under the name of its root; undefined where expressions do not see such values. */
export function declaredType(schema: SchemaNode, name: string, { isResource = false } = {}): DeclaredType | undefined {
  if (schema.intOrString === true) return scalar(dynType, 1, maxLengthOf(schema))
  const node = isResource ? withTypeAndMeta(schema) : schema
  switch (node.type) {
    case 'array':
      return declaredList(node, name)
    case 'object':
      return typeof node.additionalProperties === 'object' ? declaredMap(node, name) : declaredObject(node, name)
    case 'string':
      return declaredString(node)
    case 'boolean':
      return scalar(boolType, 4)
    case 'number':
      return scalar(doubleType, 1)
    case 'integer':
      return scalar(intType, 1)
    default:
      return undefined
  }
}

const notNegative = (value: number): number => Math.max(value, 0)

function declaredList({ items, maxItems }: SchemaNode, name: string): DeclaredType | undefined {
  if (items === undefined) return undefined
  const element = declaredType(items, `${name}.@idx`, { isResource: items.embeddedResource === true })
  if (element === undefined) return undefined
  const fitting = Math.trunc((maxRequestBytes - 2) / (element.minSerializedSize + 1))
  const maxElements = maxItems === undefined ? fitting : notNegative(maxItems)
  return { type: listOf(element.type), minSerializedSize: 2, maxElements, element }
}

function declaredMap({ additionalProperties, maxProperties }: SchemaNode, name: string): DeclaredType | undefined {
  if (typeof additionalProperties !== 'object') return undefined
  const isResource = additionalProperties.embeddedResource === true
  const element = declaredType(additionalProperties, `${name}.@elem`, { isResource })
  if (element === undefined) return undefined
  const fitting = Math.trunc((maxRequestBytes - 2) / (element.minSerializedSize + 6))
  const maxElements = maxProperties === undefined ? fitting : notNegative(maxProperties)
  return { type: mapOf(stringType, element.type), minSerializedSize: 2, maxElements, key: mapKey, element }
}

function declaredObject({ properties = {}, required = [] }: SchemaNode, name: string): DeclaredType {
  const fields = new Map<string, DeclaredType>()
  let minSerializedSize = 2
  for (const [property, schema] of Object.entries(properties)) {
    const field = escapeFieldName(property)
    const path = `${name}.${field ?? property}`
    const type = declaredType(schema, path, { isResource: schema.embeddedResource === true })
    if (type === undefined) continue
    if (field !== undefined) fields.set(field, type)
    if (required.includes(property) && schema.default === undefined)
      minSerializedSize += Buffer.byteLength(property) + type.minSerializedSize + 4
  }
  return { type: structType(name), minSerializedSize, maxElements: 0, fields }
}

function declaredString(schema: SchemaNode): DeclaredType {
  switch (schema.format) {
    case 'byte':
      return scalar(bytesType, 2, schema.maxLength === undefined ? maxRequestBytes - 2 : notNegative(schema.maxLength))
    case 'duration':
      return scalar(durationType, minDurationBytes, datetimeBytes)
    case 'date':
      return scalar(timestampType, dateBytes, dateBytes)
    case 'date-time':
      return scalar(timestampType, minDatetimeBytes, datetimeBytes)
    default:
      return scalar(stringType, 2, maxLengthOf(schema))
  }
}

// maxLength counts code points, of up to four bytes each.
function maxLengthOf({ maxLength, enum: values, intOrString }: SchemaNode): number {
  if (maxLength !== undefined) return notNegative(maxLength) * 4
  if (values === undefined || values.length === 0 || intOrString === true) return maxRequestBytes - 2
  return Math.max(0, ...values.map((value) => (typeof value === 'string' ? Buffer.byteLength(value) : 0)))
}

const stringNode: SchemaNode = { type: 'string' }
const metaNode: SchemaNode = { type: 'object', properties: { name: stringNode, generateName: stringNode } }
const resources = new WeakMap<SchemaNode, SchemaNode>()

/**
 * The schema with apiVersion, kind, metadata.name and metadata.generateName, which rules of resources can always see.
 */
export function withTypeAndMeta(schema: SchemaNode): SchemaNode {
  const meta = schema.properties?.metadata?.properties
  const { kind, apiVersion } = schema.properties ?? {}
  const isComplete = [kind, apiVersion, meta?.name, meta?.generateName].every((node) => node?.type === 'string')
  if (isComplete) return schema
  let extended = resources.get(schema)
  if (extended === undefined) {
    const added = { kind: stringNode, apiVersion: stringNode, metadata: metaNode }
    extended = { ...schema, properties: { ...schema.properties, ...added } }
    resources.set(schema, extended)
  }
  return extended
}

/** All objects of a type by the name of their struct. */
export function structsOf(root: DeclaredType): ReadonlyMap<string, DeclaredType> {
  const found = new Map<string, DeclaredType>()
  const visit = (declared: DeclaredType): void => {
    if (declared.type.kind === 'struct') found.set(declared.type.name, declared)
    for (const field of declared.fields?.values() ?? []) visit(field)
    if (declared.element !== undefined) visit(declared.element)
  }
  visit(root)
  return found
}

/** The type of a field by its identifier. Reserved words are found without their escape too. */
export function fieldOfStruct({ fields }: DeclaredType, name: string): DeclaredType | undefined {
  return fields?.get(name) ?? (isReservedWord(name) ? fields?.get(`__${name}__`) : undefined)
}

/** How often a value of a schema can be there in one request at most. */
export function maxCardinality({ minSerializedSize }: DeclaredType): number {
  return Math.trunc(maxRequestBytes / (minSerializedSize + 1))
}

/** Follows the path of a node of an expression: fields, `@items`, `@keys`, `@values`. */
export function typeAtPath(root: DeclaredType, path: readonly string[]): DeclaredType | undefined {
  let at: DeclaredType | undefined = root
  for (const name of path) {
    if (name === '@items' || name === '@values') at = at.element
    else if (name === '@keys') at = at.key
    // Of a map of any values: all have the same bound, whatever their key is.
    else at = at.fields?.get(name) ?? (at.element?.type.kind === 'any' ? at.element : undefined)
    if (at === undefined) return undefined
  }
  return at
}
