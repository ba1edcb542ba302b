// The messages of types whose JSON form differs from their message: times, quantities, raw JSON.
import { Buffer } from 'node:buffer'
import { encodeJson, isJsonObject, type JsonObject, type JsonValue, isJsonNumber } from '#apimachinery/meta/index.ts'
import { messageNamed, type MessageType, type SpecialType } from './message-table.ts'
import type { WireWriter } from './wire-writer.ts'

type EncodeMessage = (writer: WireWriter, type: MessageType, object: JsonObject) => void

/** Writes the message of a special type; null is written as Go's zero value. */
export function encodeSpecial(
  writer: WireWriter,
  type: SpecialType,
  value: JsonValue,
  encodeMessage: EncodeMessage,
): void {
  switch (type) {
    case 'Time':
    case 'MicroTime':
      encodeTime(writer, value)
      return
    case 'Duration':
      writer.tag(1, 0)
      writer.integer(typeof value === 'string' ? nanosecondsOf(value) : 0)
      return
    case 'Quantity':
      writer.tag(1, 2)
      writer.string(typeof value === 'string' ? value : isJsonNumber(value) ? String(value) : '0')
      return
    case 'IntOrString':
      encodeIntOrString(writer, value)
      return
    case 'RawExtension':
    case 'FieldsV1':
    case 'JSON':
      if (value === null) return
      writer.tag(1, 2)
      writer.sized(Buffer.from(encodeJson(value)))
      return
    case 'StringList':
      encodeStrings(writer, 1, value)
      return
    case 'JSONSchemaPropsOrBool':
      // Go reads `allows` as true if there is a schema, because the schema describes allowed values.
      writer.tag(1, 0)
      writer.unsigned(value === true || isJsonObject(value) ? 1 : 0)
      if (isJsonObject(value)) encodeSchema(writer, 2, value, encodeMessage)
      return
    case 'JSONSchemaPropsOrArray':
      if (isJsonObject(value)) encodeSchema(writer, 1, value, encodeMessage)
      else if (Array.isArray(value))
        for (const schema of value) encodeSchema(writer, 2, isJsonObject(schema) ? schema : {}, encodeMessage)
      return
    case 'JSONSchemaPropsOrStringArray':
      if (isJsonObject(value)) encodeSchema(writer, 1, value, encodeMessage)
      else encodeStrings(writer, 2, value)
  }
}

/** Writes seconds and nanoseconds; writes nothing if there is no time. */
function encodeTime(writer: WireWriter, value: JsonValue): void {
  if (typeof value !== 'string') return
  const [, whole = value, fraction = ''] = /^(.*?)(?:\.([0-9]+))?(?:Z|[+-][0-9:]+)$/.exec(value) ?? []
  const zone = value.slice(whole.length + (fraction === '' ? 0 : fraction.length + 1))
  writer.tag(1, 0)
  writer.integer(Date.parse(whole + zone) / 1000)
  writer.tag(2, 0)
  writer.unsigned(Number(fraction.padEnd(9, '0').slice(0, 9)))
}

const unitNanoseconds: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1000n,
  µs: 1000n,
  μs: 1000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
}

/** The nanoseconds of a Go duration such as `1h0m2.5s`. */
function nanosecondsOf(text: string): bigint {
  let sum = 0n
  for (const [, amount = '0', unit = 's'] of text.matchAll(/([0-9.]+)(ns|us|µs|μs|ms|s|m|h)/g)) {
    const [whole = '0', fraction = ''] = amount.split('.')
    const scale = unitNanoseconds[unit] ?? 0n
    sum += BigInt(whole || '0') * scale
    if (fraction !== '') sum += (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length)
  }
  return text.startsWith('-') ? -sum : sum
}

function encodeIntOrString(writer: WireWriter, value: JsonValue): void {
  const isText = typeof value === 'string'
  writer.tag(1, 0)
  writer.unsigned(isText ? 1 : 0)
  writer.tag(2, 0)
  writer.integer(typeof value === 'number' ? value : 0)
  writer.tag(3, 2)
  writer.string(isText ? value : '')
}

function encodeStrings(writer: WireWriter, field: number, value: JsonValue): void {
  if (!Array.isArray(value)) return
  for (const item of value) {
    writer.tag(field, 2)
    writer.string(typeof item === 'string' ? item : '')
  }
}

function encodeSchema(writer: WireWriter, field: number, schema: JsonObject, encodeMessage: EncodeMessage): void {
  writer.tag(field, 2)
  writer.nested(() => encodeMessage(writer, messageNamed('apiextensions.v1.JSONSchemaProps'), schema))
}
