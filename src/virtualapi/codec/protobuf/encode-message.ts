// Encodes the JSON of a message to the bytes that Go's generated code writes: fields by number, maps by key, and zero
// values of fields that are not pointers.
import { Buffer } from 'node:buffer'
import { encodeJson, isJsonObject, type JsonObject, type JsonValue, isJsonNumber } from '#apimachinery/meta/index.ts'
import { encodeSpecial } from './encode-special.ts'
import type { FieldShape, FieldType, MessageType } from './message-table.ts'
import type { WireWriter } from './wire-writer.ts'

const inOrder = new WeakMap<MessageType, readonly FieldShape[]>()

function fieldsByNumber(type: MessageType): readonly FieldShape[] {
  let fields = inOrder.get(type)
  if (fields === undefined) inOrder.set(type, (fields = type.fields.toSorted((a, b) => a.number - b.number)))
  return fields
}

/** Writes the members of `object` that the message has. */
export function encodeMessage(writer: WireWriter, type: MessageType, object: JsonObject): void {
  for (const shape of fieldsByNumber(type)) {
    // An inlined message has its members beside those of its parent.
    const value = shape.json === '' ? object : own(object, shape.json)
    if (shape.container === 'list') encodeList(writer, shape, value)
    else if (shape.container === 'map') encodeMap(writer, shape, value)
    else if (value !== undefined && value !== null) encodeField(writer, shape, value)
    else if (!shape.pointer) encodeZero(writer, shape)
  }
}

function own(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

function encodeList(writer: WireWriter, shape: FieldShape, value: JsonValue | undefined): void {
  if (!Array.isArray(value)) return
  for (const item of value) {
    if (item === null) encodeZero(writer, shape)
    else encodeField(writer, shape, item)
  }
}

function encodeMap(writer: WireWriter, shape: FieldShape, value: JsonValue | undefined): void {
  if (!isJsonObject(value)) return
  const keys = Object.keys(value)
  // Go sorts by bytes of UTF-8. The order of JavaScript differs only for keys with surrogates.
  keys.sort()
  if (keys.some((key) => surrogate.test(key))) keys.sort(compareUtf8)
  for (const key of keys) {
    const item = value[key]
    writer.tag(shape.number, 2)
    writer.nested(() => {
      writer.tag(1, 2)
      writer.string(key)
      if (item === null || item === undefined) encodeZero(writer, { type: shape.type, number: 2 })
      else encodeField(writer, { type: shape.type, number: 2 }, item)
    })
  }
}

const surrogate = /[\ud800-\udfff]/

function compareUtf8(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

function encodeField(
  writer: WireWriter,
  { number, type }: Pick<FieldShape, 'number' | 'type'>,
  value: JsonValue,
): void {
  writer.tag(number, wireOf(type))
  switch (type.is) {
    case 'message':
      writer.nested(() => encodeMessage(writer, type.message, isJsonObject(value) ? value : {}))
      return
    case 'special':
      writer.nested(() => encodeSpecial(writer, type.special, value, encodeMessage))
      return
    case 'scalar':
      encodeScalar(writer, type.scalar, value)
  }
}

function encodeScalar(
  writer: WireWriter,
  scalar: Extract<FieldType, { is: 'scalar' }>['scalar'],
  value: JsonValue,
): void {
  switch (scalar) {
    case 'bool':
      writer.unsigned(value === true ? 1 : 0)
      return
    case 'integer':
      writer.integer(isJsonNumber(value) ? value : Number(value))
      return
    case 'double':
      writer.double(Number(value))
      return
    case 'string':
      writer.string(textOf(value))
      return
    case 'bytes':
      writer.sized(Buffer.from(textOf(value), 'base64'))
  }
}

function textOf(value: JsonValue): string {
  return typeof value === 'string' ? value : encodeJson(value)
}

/** Writes a zero value. Go writes fields that are not pointers even if they are zero, except for bytes that are nil. */
function encodeZero(writer: WireWriter, { number, type }: Pick<FieldShape, 'number' | 'type'>): void {
  if (type.is === 'scalar' && type.scalar === 'bytes') return
  writer.tag(number, wireOf(type))
  if (type.is === 'message') writer.nested(() => encodeMessage(writer, type.message, {}))
  else if (type.is === 'special') writer.nested(() => encodeSpecial(writer, type.special, null, encodeMessage))
  else if (type.scalar === 'double') writer.double(0)
  else writer.unsigned(0)
}

function wireOf(type: FieldType): 0 | 1 | 2 {
  if (type.is !== 'scalar' || type.scalar === 'string' || type.scalar === 'bytes') return 2
  return type.scalar === 'double' ? 1 : 0
}
