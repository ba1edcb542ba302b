// Types whose JSON form differs from their message: times, quantities, raw JSON.
import { Buffer } from 'node:buffer'
import { parseJson, surveyJson } from '#apimachinery/json/index.ts'
import { type JsonValue, type Int64 } from '#apimachinery/meta/index.ts'
import { messageNamed, type MessageType, type SpecialType } from './message-table.ts'
import type { MessageValue, SpecialValue } from './message-value.ts'
import { malformed, type WireReader } from './wire-reader.ts'

/** Maximum nesting of raw JSON, because later code walks it recursively. */
const maxRawDepth = 100
const schemaMessage = 'apiextensions.v1.JSONSchemaProps'

type DecodeMessage = (reader: WireReader, type: MessageType) => MessageValue

/** Decodes the message of a special type to its end. `decodeMessage` decodes the schemas inside it. */
export function decodeSpecial(type: SpecialType, reader: WireReader, decodeMessage: DecodeMessage): SpecialValue {
  switch (type) {
    case 'Time':
      return timeOf(reader, { micro: false })
    case 'MicroTime':
      return timeOf(reader, { micro: true })
    case 'Duration':
      return { json: durationText(integers(reader).get(1) ?? 0), empty: false }
    case 'Quantity':
      return { json: quantityText(strings(reader)[0]), empty: false }
    case 'IntOrString':
      return { json: intOrString(reader), empty: false }
    case 'RawExtension':
    case 'FieldsV1':
    case 'JSON':
      return { json: rawJson(reader), empty: false }
    case 'StringList': {
      const list = strings(reader)
      return { json: list.length === 0 ? null : list, empty: list.length === 0 }
    }
    case 'JSONSchemaPropsOrBool':
      return schemaOrBool(reader, decodeMessage)
    case 'JSONSchemaPropsOrArray':
      return schemaOrSchemas(reader, decodeMessage)
    case 'JSONSchemaPropsOrStringArray':
      return schemaOrStrings(reader, decodeMessage)
  }
}

/**
 * Decodes a time from seconds and nanoseconds. Go writes whole seconds of a Time, microseconds of a MicroTime, and null
 * if there is no time.
 */
function timeOf(reader: WireReader, { micro }: { micro: boolean }): SpecialValue {
  if (reader.done) return { json: null, empty: true }
  const fields = integers(reader)
  const seconds = Number(fields.get(1) ?? 0)
  const date = new Date(seconds * 1000)
  const year = date.getUTCFullYear()
  if (Number.isNaN(year) || year < 1 || year > 9999) throw malformed('a time is outside of years 1 to 9999')
  const text = date.toISOString().slice(0, 19)
  // Go's zero time.
  if (text === '0001-01-01T00:00:00' && (fields.get(2) ?? 0) === 0) return { json: null, empty: true }
  if (!micro) return { json: `${text}Z`, empty: false }
  const nanos = Number(fields.get(2) ?? 0)
  if (nanos < 0 || nanos > 999_999_999) throw malformed('nanoseconds of a time are outside of one second')
  return { json: `${text}.${String(Math.floor(nanos / 1000)).padStart(6, '0')}Z`, empty: false }
}

/** Nanoseconds as Go prints a time.Duration: `1h0m2.5s`. */
export function durationText(nanoseconds: Int64): string {
  const total = BigInt(nanoseconds) < 0n ? -BigInt(nanoseconds) : BigInt(nanoseconds)
  if (total === 0n) return '0s'
  const sign = nanoseconds < 0 ? '-' : ''
  if (total < 1000n) return `${sign}${total}ns`
  if (total < 1_000_000n) return `${sign}${trimmed(total, 3)}µs`
  if (total < 1_000_000_000n) return `${sign}${trimmed(total, 6)}ms`
  const minutes = total / 60_000_000_000n
  const seconds = `${trimmed(total % 60_000_000_000n, 9)}s`
  if (minutes === 0n) return sign + seconds
  const hours = minutes / 60n
  return `${sign}${hours === 0n ? '' : `${hours}h`}${minutes % 60n}m${seconds}`
}

/** The value divided by a power of ten, without trailing zeros. */
function trimmed(value: bigint, zeros: number): string {
  const unit = 10n ** BigInt(zeros)
  const fraction = String(value % unit)
    .padStart(zeros, '0')
    .replace(/0+$/, '')
  return fraction === '' ? String(value / unit) : `${value / unit}.${fraction}`
}

/** The quantity as the client sent it (clients send the canonical form); `0` if empty. */
function quantityText(text: string | undefined): string {
  if (text === undefined || text === '') return '0'
  if (!/^[+-]?[0-9.]+([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?$/.test(text) || text.length > 64)
    throw malformed('invalid quantity')
  return text
}

function intOrString(reader: WireReader): JsonValue {
  let type = 0
  let number = 0
  let text = ''
  while (!reader.done) {
    const { field, wire } = reader.tag()
    if (field === 1 && wire === 0) type = reader.varint()
    else if (field === 2 && wire === 0) number = reader.varint()
    else if (field === 3 && wire === 2) text = reader.string()
    else reader.skip(wire)
  }
  if (type !== 0 && type !== 1) throw malformed('a value is neither number nor string')
  return type === 0 ? number : text
}

/** Parses the JSON text in field 1; null if there is none. */
function rawJson(reader: WireReader): JsonValue {
  let raw: Uint8Array | undefined
  while (!reader.done) {
    const { field, wire } = reader.tag()
    if (field === 1 && wire === 2) raw = reader.bytes()
    else reader.skip(wire)
  }
  if (raw === undefined || raw.length === 0) return null
  reader.budget.take(surveyJson(raw, maxRawDepth).values)
  return parseJson(Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength), { maxDepth: maxRawDepth }).value
}

function strings(reader: WireReader): string[] {
  const list: string[] = []
  while (!reader.done) {
    const { field, wire } = reader.tag()
    if (field === 1 && wire === 2) {
      reader.budget.take()
      list.push(reader.string())
    } else reader.skip(wire)
  }
  return list
}

function integers(reader: WireReader): Map<number, Int64> {
  const values = new Map<number, Int64>()
  while (!reader.done) {
    const { field, wire } = reader.tag()
    if (wire === 0) values.set(field, reader.integer())
    else reader.skip(wire)
  }
  return values
}

/** Decodes a schema or a bool. Field 1 is a bool, field 2 a schema, which takes precedence. */
function schemaOrBool(reader: WireReader, decodeMessage: DecodeMessage): SpecialValue {
  let allows = false
  let schema: MessageValue | undefined
  while (!reader.done) {
    const { field, wire } = reader.tag()
    if (field === 1 && wire === 0) allows = reader.varint() !== 0
    else if (field === 2 && wire === 2) schema = decodeSchema(reader, decodeMessage)
    else reader.skip(wire)
  }
  return { json: allows, empty: false, ...(schema === undefined ? {} : { schema }) }
}

/**
 * Decodes a schema or a list of schemas. Field 1 is a schema, field 2 the list, which takes precedence if it is not
 * empty.
 */
function schemaOrSchemas(reader: WireReader, decodeMessage: DecodeMessage): SpecialValue {
  let schema: MessageValue | undefined
  const schemas: MessageValue[] = []
  while (!reader.done) {
    const { field, wire } = reader.tag()
    if (field === 1 && wire === 2) schema = decodeSchema(reader, decodeMessage)
    else if (field === 2 && wire === 2) schemas.push(decodeSchema(reader, decodeMessage))
    else reader.skip(wire)
  }
  if (schemas.length > 0) return { json: null, empty: false, schemas }
  return { json: null, empty: false, ...(schema === undefined ? {} : { schema }) }
}

/**
 * Decodes a schema or a list of strings. Field 1 is a schema, field 2 the list, which takes precedence if it is not
 * empty.
 */
function schemaOrStrings(reader: WireReader, decodeMessage: DecodeMessage): SpecialValue {
  let schema: MessageValue | undefined
  const list: string[] = []
  while (!reader.done) {
    const { field, wire } = reader.tag()
    if (field === 1 && wire === 2) schema = decodeSchema(reader, decodeMessage)
    else if (field === 2 && wire === 2) {
      reader.budget.take()
      list.push(reader.string())
    } else reader.skip(wire)
  }
  if (list.length > 0) return { json: list, empty: false }
  return { json: null, empty: false, ...(schema === undefined ? {} : { schema }) }
}

function decodeSchema(reader: WireReader, decodeMessage: DecodeMessage): MessageValue {
  reader.budget.take()
  return decodeMessage(reader.nested(), messageNamed(schemaMessage))
}
