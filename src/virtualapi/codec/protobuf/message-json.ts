// Converts a decoded message to the JSON object that Go would write: same members, same order, same zero values.
import { Buffer } from 'node:buffer'
import { putField, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { zeroOf } from './decode-message.ts'
import type { FieldValue, MessageValue, SingleValue } from './message-value.ts'
import type { FieldShape } from './message-table.ts'
import type { ValueBudget } from './value-budget.ts'

/**
 * Adds the members of `message` to `into`. Every value counts against `budget`, including zero values that the client
 * did not send.
 */
export function messageJson(message: MessageValue, budget: ValueBudget, into: JsonObject = {}): JsonObject {
  for (const [index, shape] of message.type.fields.entries()) {
    const value = message.fields[index]
    if (shape.json === '') inline(shape, value, budget, into)
    else if (!isOmitted(shape, value)) putField(into, shape.json, fieldJson(shape, value, budget))
  }
  return into
}

function inline(shape: FieldShape, value: FieldValue | undefined, budget: ValueBudget, into: JsonObject): void {
  const message = value ?? zeroOf(shape.type)
  if (isMessage(message)) messageJson(message, budget, into)
}

/** encoding/json: omitempty drops false, 0, "", nil and values of length 0, but never a struct. */
function isOmitted(
  { type, container, pointer, omitEmpty, omitZero }: FieldShape,
  value: FieldValue | undefined,
): boolean {
  if (!omitEmpty && !omitZero) return false
  if (pointer) return value === undefined
  if (container === 'list') return !Array.isArray(value) || value.length === 0
  if (container === 'map') return !(value instanceof Map) || value.size === 0
  if (type.is === 'message') return false
  const single = value ?? zeroOf(type)
  if (type.is === 'special') return (omitZero || type.special === 'StringList') && isSpecial(single) && single.empty
  return single instanceof Uint8Array ? single.length === 0 : single === false || single === 0 || single === ''
}

function fieldJson(
  { type, container, pointer }: FieldShape,
  value: FieldValue | undefined,
  budget: ValueBudget,
): JsonValue {
  if (container === 'map') return value instanceof Map ? mapJson(value, budget) : null
  if (container === 'list') return Array.isArray(value) ? value.map((item) => singleJson(item, budget)) : null
  if (value === undefined) {
    if (pointer || (type.is === 'scalar' && type.scalar === 'bytes')) return null
    return singleJson(zeroOf(type), budget)
  }
  return Array.isArray(value) || value instanceof Map ? null : singleJson(value, budget)
}

function mapJson(map: Map<string, SingleValue>, budget: ValueBudget): JsonObject {
  const object: JsonObject = {}
  const keys = [...map.keys()].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  for (const key of keys) {
    const value = map.get(key)
    if (value !== undefined) putField(object, key, singleJson(value, budget))
  }
  return object
}

function singleJson(value: SingleValue, budget: ValueBudget): JsonValue {
  budget.take()
  if (typeof value !== 'object') return value
  if (value instanceof Uint8Array)
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')
  if (isMessage(value)) return messageJson(value, budget)
  if (value.schemas !== undefined) return value.schemas.map((schema) => messageJson(schema, budget))
  return value.schema === undefined ? value.json : messageJson(value.schema, budget)
}

function isMessage(value: FieldValue): value is MessageValue {
  return typeof value === 'object' && 'fields' in value
}

function isSpecial(value: FieldValue): value is Extract<SingleValue, { empty: boolean }> {
  return typeof value === 'object' && 'empty' in value
}
