// What Go's decoder says of a body whose values do not fit the built-in types. A real server decodes into Go structs, so
// for built-in kinds this is the only thing it checks of a value's type.
import { goNumber } from '../field/index.ts'
import { isJsonObject, type JsonValue } from '../meta/index.ts'
import { fieldSchemaOf } from './property.ts'
import type { SchemaNode } from './schema-node.ts'

const maxErrors = 20

/**
 * Go's complaints, in order, such as
 * `json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`. Empty if all fits.
 * Null fits everything. Only types count: nothing is required, no bound is checked.
 */
export function typeErrors(value: JsonValue, schema: SchemaNode): string[] {
  const walker: Walker = { fields: [], struct: '', errors: [] }
  walk(value, schema, walker)
  return walker.errors
}

interface Walker {
  /** Names of fields from the root; Go leaves indices and keys out. */
  readonly fields: string[]
  struct: string
  readonly errors: string[]
}

function walk(value: JsonValue, schema: SchemaNode, walker: Walker): void {
  if (value === null || walker.errors.length >= maxErrors) return
  const { type } = schema
  if (schema.intOrString === true) {
    checkIntOrString(value, walker)
    return
  }
  switch (type) {
    case 'object':
      if (isJsonObject(value)) walkObject(value, schema, walker)
      else fail(kindOf(value), schema, walker)
      return
    case 'array':
      if (!Array.isArray(value)) fail(kindOf(value), schema, walker)
      else if (schema.items !== undefined) for (const item of value) walk(item, schema.items, walker)
      return
    case 'string':
      if (typeof value === 'string') checkText(value, schema, walker)
      else if (typeof value !== 'number' || !isQuantity(schema)) fail(kindOf(value), schema, walker)
      return
    case 'boolean':
      if (typeof value !== 'boolean') fail(kindOf(value), schema, walker)
      return
    case 'integer':
      if (typeof value !== 'number') fail(kindOf(value), schema, walker)
      else if (!fitsInteger(value, schema.format)) fail(`number ${goNumber(value)}`, schema, walker)
      return
    case 'number':
      if (typeof value !== 'number') fail(kindOf(value), schema, walker)
      return
    case undefined:
      if (isJsonObject(value)) walkObject(value, schema, walker)
  }
}

function walkObject(object: Record<string, JsonValue>, schema: SchemaNode, walker: Walker): void {
  const isStruct = schema.properties !== undefined
  const before = walker.struct
  for (const key in object) {
    const field = fieldSchemaOf(schema, key)
    if (field === undefined) continue
    if (isStruct) {
      walker.struct = schema.typeName ?? ''
      walker.fields.push(key)
    }
    walk(object[key] ?? null, field, walker)
    if (isStruct) walker.fields.pop()
  }
  walker.struct = before
}

function fail(what: string, schema: SchemaNode, walker: Walker): void {
  const where = walker.fields.length === 0 ? 'Go value' : `Go struct field ${walker.struct}.${walker.fields.join('.')}`
  walker.errors.push(`json: cannot unmarshal ${what} into ${where} of type ${goTypeName(schema)}`)
}

function kindOf(value: JsonValue): string {
  if (Array.isArray(value)) return 'array'
  return typeof value === 'boolean' ? 'bool' : typeof value
}

function goTypeName(schema: SchemaNode): string {
  switch (schema.type) {
    case 'string':
      return schema.format === 'byte' ? '[]uint8' : schema.typeName === undefined ? 'string' : `v1.${schema.typeName}`
    case 'boolean':
      return 'bool'
    case 'integer':
      return schema.format === 'int32' ? 'int32' : 'int64'
    case 'number':
      return 'float64'
    case 'array':
      return `[]${schema.items === undefined ? 'interface {}' : goTypeName(schema.items)}`
    case 'object':
      if (schema.typeName !== undefined) return `v1.${schema.typeName}`
      return `map[string]${typeof schema.additionalProperties === 'object' ? goTypeName(schema.additionalProperties) : 'interface {}'}`
    default:
      return 'interface {}'
  }
}

/** resource.Quantity takes numbers as well: `cpu: 1`. */
function isQuantity({ typeName, format }: SchemaNode): boolean {
  return typeName === 'Quantity' || format === 'quantity'
}

function checkIntOrString(value: JsonValue, walker: Walker): void {
  if (typeof value === 'string') return
  if (typeof value !== 'number')
    walker.errors.push(`json: cannot unmarshal ${kindOf(value)} into Go value of type int32`)
  else if (!fitsInteger(value, 'int32')) {
    walker.errors.push(`json: cannot unmarshal number ${goNumber(value)} into Go value of type int32`)
  }
}

function checkText(value: string, { format, typeName }: SchemaNode, walker: Walker): void {
  if (format === 'byte') {
    const clean = value.replace(/[\r\n]/g, '')
    const bad = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?/.exec(clean)?.[0].length ?? 0
    if (bad < clean.length) {
      const stray = clean.slice(bad).search(/[^A-Za-z0-9+/]/)
      walker.errors.push(
        `illegal base64 data at input byte ${String(stray < 0 ? clean.length - (clean.length % 4) : bad + stray)}`,
      )
    }
  } else if (format === 'date-time' && (typeName === undefined || typeName === 'Time' || typeName === 'MicroTime')) {
    if (value !== '' && !isTime(value)) {
      const layout = typeName === 'MicroTime' ? '2006-01-02T15:04:05.000000Z07:00' : '2006-01-02T15:04:05Z07:00'
      walker.errors.push(
        `parsing time ${JSON.stringify(value)} as ${JSON.stringify(layout)}: cannot parse ${JSON.stringify(value)}`,
      )
    }
  }
}

function isTime(value: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}([.,]\d+)?(Z|[+-]\d{2}:\d{2})$/.test(value)) return false
  return !Number.isNaN(Date.parse(value.replace(',', '.')))
}

function fitsInteger(value: number, format: string | undefined): boolean {
  if (!Number.isInteger(value)) return false
  return format === 'int32' ? value >= -(2 ** 31) && value < 2 ** 31 : value >= -(2 ** 63) && value <= 2 ** 63
}
