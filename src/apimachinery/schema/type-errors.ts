// The errors of Go's decoder for values that do not fit the built-in types. A real server decodes into Go structs, and
// for built-in kinds checks the type of a value nowhere else.
import { quantityError } from '#apimachinery/quantity/index.ts'
import { goNumber, goQuote } from '#apimachinery/text/index.ts'
import {
  integerOfText,
  isExactInteger,
  isJsonNumber,
  isJsonObject,
  type Int64,
  type JsonObject,
  type JsonValue,
} from '#apimachinery/meta/index.ts'
import { NumberLiteral, type LiteralJson } from '#apimachinery/json/index.ts'
import { fieldSchemaOf } from './property.ts'
import type { SchemaNode } from './schema-node.ts'

const maxErrors = 20
/** Two types with decoders of their own. */
const boolOrSchema = 'v1.JSONSchemaPropsOrBool'
const schemaOrList = 'v1.JSONSchemaPropsOrArray'
const oneSchema: SchemaNode = { type: 'object', goType: 'v1.JSONSchemaProps' }

/**
 * Go's error messages in order, such as `json: cannot unmarshal string into Go struct field
 * DeploymentSpec.spec.replicas of type int32`; empty if all values fit. Null fits every type. Only types are checked,
 * neither required fields nor bounds. Pass numbers other than plain integers as NumberLiteral.
 */
export function typeErrors(value: LiteralJson, schema: SchemaNode): string[] {
  const walker: Walker = { fields: [], struct: '', errors: [], converts: false }
  walk(value, schema, walker)
  return walker.fatal === undefined ? walker.errors : [walker.fatal, ...walker.errors]
}

/**
 * The same errors with the messages of Go's converter from maps, which reads the result of a strategic merge patch:
 * `cannot restore map from string`.
 */
export function conversionErrors(value: JsonValue, schema: SchemaNode): string[] {
  const walker: Walker = { fields: [], struct: '', errors: [], converts: true }
  walk(value, schema, walker)
  return walker.errors
}

/**
 * Replaces each quantity that is written as a number by the text of the number, which Go parses. `written` is the same
 * object with its numbers as written. Mutates `object`.
 */
export function takeQuantityTexts(object: JsonObject, written: LiteralJson, schema: SchemaNode): void {
  if (!isJsonObject(written)) return
  for (const key in object) {
    const [value, literal, field] = [object[key], written[key] as LiteralJson, fieldSchemaOf(schema, key)]
    if (field === undefined || value === undefined) continue
    if (literal instanceof NumberLiteral) {
      if (isQuantity(field)) object[key] = literal.text
    } else if (isJsonObject(value)) takeQuantityTexts(value, literal, field)
    else if (Array.isArray(value) && Array.isArray(literal) && field.items !== undefined)
      for (const [index, item] of value.entries())
        if (isJsonObject(item)) takeQuantityTexts(item, literal[index] ?? null, field.items)
  }
}

/** True for a document with a number that may not fit 32 bits. */
export function hasLargeNumber(document: JsonValue): boolean {
  if (typeof document === 'number') return Math.abs(document) >= 2 ** 31
  if (typeof document !== 'object' || document === null) return typeof document === 'bigint'
  return Object.values(document).some(hasLargeNumber)
}

/**
 * Converts integers that do not fit their fields, as Go's converter from maps does on amd64, which reads the result of
 * a strategic merge patch: it keeps the low bits. Mutates `object`, but no part in which every integer fits.
 */
export function truncateIntegers(object: JsonObject, schema: SchemaNode): void {
  for (const key in object) {
    const [value, field] = [object[key], fieldSchemaOf(schema, key)]
    if (field === undefined || value === undefined) continue
    if (isJsonObject(value)) truncateIntegers(value, field)
    else if (Array.isArray(value) && field.items !== undefined) {
      for (const item of value) if (isJsonObject(item)) truncateIntegers(item, field.items)
    } else if (isJsonNumber(value) && field.type === 'integer' && !fitsInteger(value, field.format))
      object[key] = truncated(value, field.format)
  }
}

function truncated(value: Int64, format: string | undefined): JsonValue {
  if (typeof value === 'number' && !Number.isInteger(value)) return value
  const whole = BigInt(value)
  const int64 = BigInt.asIntN(64, whole) === whole ? whole : -(2n ** 63n)
  return integerOfText(String(format === 'int32' ? BigInt.asIntN(32, int64) : int64))
}

interface Walker {
  readonly converts: boolean
  /** Names of fields from the root; Go omits indices and keys. */
  readonly fields: string[]
  struct: string
  readonly errors: string[]
  /** The first error of a type with its own decoder: Go stops there and reports no other. */
  fatal?: string
}

function walk(given: LiteralJson, schema: SchemaNode, walker: Walker): void {
  if (given === null || walker.fatal !== undefined || walker.errors.length >= maxErrors) return
  if (given instanceof NumberLiteral) {
    walkLiteral(given, schema, walker)
    return
  }
  const value = given as JsonValue
  const { type } = schema
  if (schema.intOrString === true) {
    checkIntOrString(value, walker)
    return
  }
  if (isQuantity(schema)) {
    checkQuantity(value, walker)
    return
  }
  switch (type) {
    case 'object':
      if (isJsonObject(value)) walkObject(value, schema, walker)
      else fail(value, schema, walker)
      return
    case 'array':
      if (!Array.isArray(value)) fail(value, schema, walker)
      else if (schema.items !== undefined) for (const item of value) walk(item, schema.items, walker)
      return
    case 'string':
      if (typeof value === 'string') checkText(value, schema, walker)
      else if (isTime(schema)) failItself(value, { type: 'string' }, walker)
      else if (schema.format === 'byte' && Array.isArray(value)) for (const item of value) walk(item, uint8, walker)
      else fail(value, schema, walker)
      return
    case 'boolean':
      if (typeof value !== 'boolean') fail(value, schema, walker)
      return
    case 'integer':
      if (!isJsonNumber(value) || !fitsInteger(value, schema.format)) fail(value, schema, walker)
      return
    case 'number':
      if (!isJsonNumber(value)) fail(value, schema, walker)
      return
    case undefined:
      if (schema.goType === boolOrSchema && typeof value !== 'boolean' && !isJsonObject(value))
        setFatal('boolean or JSON schema expected', walker)
      else if (schema.goType === schemaOrList && Array.isArray(value))
        for (const item of value) walk(item, oneSchema, walker)
      else if (isJsonObject(value)) walkObject(value, schema, walker)
  }
}

/** Checks a number that JavaScript prints differently, or takes for an integer. */
function walkLiteral(literal: NumberLiteral, schema: SchemaNode, walker: Walker): void {
  const { text } = literal
  if (isQuantity(schema)) return
  const integer = schema.intOrString === true ? int32 : schema.type === 'integer' ? schema : undefined
  if (integer !== undefined) {
    const message = decodingText(literal, integer, walker)
    if (schema.intOrString === true) setFatal(message, walker)
    else walker.errors.push(message)
    return
  }
  const holds = schema.type === 'number' || (schema.type === undefined && schema.goType !== boolOrSchema)
  if (holds && Number.isFinite(Number(text))) return
  if (isTime(schema) || schema.goType === boolOrSchema) walk(0, schema, walker)
  else if (schema.type === undefined)
    setFatal(`json: cannot unmarshal number ${text} into Go value of type float64`, walker)
  else fail(Number(text), schema, walker, literal)
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

function fail(value: JsonValue, schema: SchemaNode, walker: Walker, literal?: NumberLiteral): void {
  walker.errors.push(walker.converts ? conversionText(value, schema) : decodingText(literal ?? value, schema, walker))
}

/** Reports an error of a type with its own decoder. The converter from maps reports it without a path. */
function failItself(value: JsonValue, schema: SchemaNode, walker: Walker): void {
  setFatal(decodingText(value, schema, walker.converts ? { ...walker, fields: [] } : walker), walker)
}

function setFatal(text: string, walker: Walker): void {
  if (walker.converts) walker.errors.push(text)
  else walker.fatal ??= text
}

/** The error for a value. The message contains the value if it is a number for a numeric field that does not fit. */
function decodingText(value: JsonValue | NumberLiteral, schema: SchemaNode, walker: Walker): string {
  const isNumeric = schema.type === 'integer' || schema.type === 'number'
  const shown = value instanceof NumberLiteral ? value.text : isJsonNumber(value) ? goNumber(value) : undefined
  const what = shown === undefined ? kindOf(value as JsonValue) : isNumeric ? `number ${shown}` : 'number'
  const where = walker.fields.length === 0 ? 'Go value' : `Go struct field ${walker.struct}.${walker.fields.join('.')}`
  return `json: cannot unmarshal ${what} into ${where} of type ${goTypeName(schema)}`
}

function conversionText(value: JsonValue, schema: SchemaNode): string {
  const from = conversionKindOf(value)
  switch (schema.type) {
    case 'object':
      if (schema.typeName !== undefined || schema.properties !== undefined) return `cannot restore struct from: ${from}`
      return `cannot restore map from ${from}`
    case 'array':
      return `cannot restore slice from ${from}`
    case 'string':
      if (schema.format === 'byte') return `cannot restore slice from ${from}`
      return from === 'int64' ? `cannot convert int64 to ${goTypeName(schema)}` : 'unrecognized type: string'
    default:
      return isJsonNumber(value) && schema.type === 'integer'
        ? `cannot convert ${from} to ${goTypeName(schema)}`
        : `unrecognized type: ${goTypeName(schema)}`
  }
}

function conversionKindOf(value: JsonValue): string {
  if (Array.isArray(value)) return 'slice'
  if (isJsonNumber(value)) return isExactInteger(value) ? 'int64' : 'float64'
  return typeof value === 'object' ? 'map' : kindOf(value)
}

function kindOf(value: JsonValue): string {
  if (Array.isArray(value)) return 'array'
  return typeof value === 'boolean' ? 'bool' : isJsonNumber(value) ? 'number' : typeof value
}

function goTypeName(schema: SchemaNode): string {
  if (schema.goType !== undefined) return schema.goType
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

/** The schema of a byte: bytes may be sent as a list of numbers. */
const uint8: SchemaNode = { type: 'integer', format: 'uint8', goType: 'uint8' }
const int32: SchemaNode = { type: 'integer', format: 'int32' }

function checkIntOrString(value: JsonValue, walker: Walker): void {
  if (typeof value === 'string' || (isJsonNumber(value) && fitsInteger(value, 'int32'))) return
  failItself(value, int32, walker)
}

const quantity = /^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$/

function checkQuantity(value: JsonValue, walker: Walker): void {
  if (isJsonNumber(value) || (typeof value === 'string' && quantity.test(value.trim()))) return
  setFatal(quantityError(typeof value === 'string' ? value.trim() : ''), walker)
}

function checkText(value: string, schema: SchemaNode, walker: Walker): void {
  if (schema.format === 'byte') {
    const at = misplacedInBase64(value.replace(/[\r\n]/g, ''))
    if (at !== undefined) walker.errors.push(`illegal base64 data at input byte ${String(at)}`)
  } else if (isTime(schema)) {
    const micro = schema.typeName === 'MicroTime'
    const why = timeError(value, micro ? microTimeParts : timeParts)
    const layout = micro ? '2006-01-02T15:04:05.000000Z07:00' : '2006-01-02T15:04:05Z07:00'
    if (why !== undefined)
      setFatal(`parsing time ${goQuote(value)}${why.startsWith(':') ? '' : ` as ${goQuote(layout)}: `}${why}`, walker)
  }
}

/** Index of the first byte that is not valid base64; undefined if all is valid. */
function misplacedInBase64(text: string): number | undefined {
  const good = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?/.exec(text)?.[0] ?? ''
  if (good.length === text.length) return undefined
  // Padding ends the text.
  if (good.endsWith('=')) return good.length
  const stray = text.slice(good.length).search(/[^A-Za-z0-9+/]/)
  return stray < 0 ? text.length - (text.length % 4) : good.length + stray
}

function isTime({ format, typeName }: SchemaNode): boolean {
  return format === 'date-time' && (typeName === undefined || typeName === 'Time' || typeName === 'MicroTime')
}

/** The parts of RFC 3339 with the names in Go's layout and the range of each. */
type TimePart = readonly [RegExp, string, (readonly [number, number, string])?]
const timeParts: readonly TimePart[] = [
  [/^[0-9]{4}/, '2006'],
  [/^-/, '-'],
  [/^[0-9]{2}/, '01', [1, 12, 'month']],
  [/^-/, '-'],
  [/^[0-9]{2}/, '02', [1, 31, 'day']],
  [/^T/, 'T'],
  [/^[0-9]{2}/, '15', [0, 23, 'hour']],
  [/^:/, ':'],
  [/^[0-9]{2}/, '04', [0, 59, 'minute']],
  [/^:/, ':'],
  [/^[0-9]{2}(?:[.,][0-9]+)?/, '05', [0, 59.999999999, 'second']],
  [/^(?:Z|[+-][0-9]{2}:[0-9]{2})/, 'Z07:00'],
]

/** A MicroTime has exactly six digits of fractional seconds. */
const microTimeParts: readonly TimePart[] = timeParts.flatMap((part): TimePart[] =>
  part[1] === '05'
    ? [
        [/^[0-9]{2}/, '05', [0, 59, 'second']],
        [/^[.,][0-9]{6}/, '.000000'],
      ]
    : [part],
)

function timeError(value: string, parts: readonly TimePart[]): string | undefined {
  let rest = value
  for (const [pattern, name, range] of parts) {
    const match = pattern.exec(rest)?.[0]
    if (match === undefined) return `cannot parse ${goQuote(rest)} as ${goQuote(name)}`
    const number = Number(match.replace(',', '.'))
    if (range !== undefined && (number < range[0] || number > range[1])) return `: ${range[2]} out of range`
    rest = rest.slice(match.length)
  }
  if (rest !== '') return `: extra text: ${goQuote(rest)}`
  const [year = 0, month = 1, day = 1] = value.slice(0, 10).split('-').map(Number)
  return day > new Date(Date.UTC(year, month, 0)).getUTCDate() ? ': day out of range' : undefined
}

function fitsInteger(value: Int64, format: string | undefined): boolean {
  if (!isExactInteger(value)) return false
  if (format === 'uint8') return value >= 0 && value < 256
  return format !== 'int32' || (value >= -(2 ** 31) && value < 2 ** 31)
}
