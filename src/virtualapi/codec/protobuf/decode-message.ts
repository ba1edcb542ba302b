// Decodes wire bytes to the values of a message's fields, by their position in its table.
import type { FieldShape, FieldType, MessageType, SpecialType } from './message-table.ts'
import type { FieldValue, MessageValue, SingleValue, SpecialValue } from './message-value.ts'
import { decodeSpecial } from './special-types.ts'
import { malformed, WireReader, type WireType } from './wire-reader.ts'

/**
 * The most levels of nested messages. No built-in kind has half as many, but the schema of a CustomResourceDefinition
 * may: each of its levels takes two levels of messages.
 */
const maxDepth = 200

/** Reads a message to its end. Repeated occurrences of a singular message field are merged, as protobuf requires. */
export function decodeMessage(
  reader: WireReader,
  type: MessageType,
  depth = 0,
  into: MessageValue = { type, fields: new Array<undefined>(type.fields.length) },
): MessageValue {
  if (depth > maxDepth) throw malformed('nested too deep')
  while (!reader.done) {
    const { field, wire } = reader.tag()
    const index = type.index[field]
    const shape = index === undefined ? undefined : type.fields[index]
    if (index === undefined || shape === undefined) reader.skip(wire)
    else into.fields[index] = decodeField(reader, shape, wire, into.fields[index], depth)
  }
  return into
}

function decodeField(
  reader: WireReader,
  { type, container, json }: FieldShape,
  wire: WireType,
  before: FieldValue | undefined,
  depth: number,
): FieldValue {
  if (container === 'map') {
    expectWire(wire, 2, json)
    const map = before instanceof Map ? before : new Map<string, SingleValue>()
    const { key, value } = decodeEntry(reader.nested(), type, json, depth)
    return map.set(key, value)
  }
  if (container === 'list') {
    const list = Array.isArray(before) ? before : []
    if (wire === 2 && isNumeric(type)) {
      const packed = reader.nested()
      while (!packed.done) list.push(decodeValue(packed, type, wireOf(type), json, undefined, depth))
    } else list.push(decodeValue(reader, type, wire, json, undefined, depth))
    return list
  }
  const old = before === undefined || Array.isArray(before) || before instanceof Map ? undefined : before
  return decodeValue(reader, type, wire, json, old, depth)
}

function decodeEntry(
  reader: WireReader,
  type: FieldType,
  json: string,
  depth: number,
): { key: string; value: SingleValue } {
  let key = ''
  let value: SingleValue | undefined
  while (!reader.done) {
    const { field, wire } = reader.tag()
    if (field === 1) {
      expectWire(wire, 2, json)
      key = reader.string()
    } else if (field === 2) value = decodeValue(reader, type, wire, json, undefined, depth)
    else reader.skip(wire)
  }
  return { key, value: value ?? zeroOf(type) }
}

function decodeValue(
  reader: WireReader,
  type: FieldType,
  wire: WireType,
  json: string,
  before: SingleValue | undefined,
  depth: number,
): SingleValue {
  expectWire(wire, wireOf(type), json)
  reader.budget.take()
  switch (type.is) {
    case 'message': {
      const old = isMessage(before) ? before : undefined
      return decodeMessage(reader.nested(), type.message, depth + 1, old)
    }
    case 'special':
      return special(type.special, reader.nested(), depth + 1)
    case 'scalar':
      switch (type.scalar) {
        case 'bool':
          return reader.varint() !== 0
        case 'integer':
          return reader.integer()
        case 'double':
          return reader.double()
        case 'string':
          return reader.string()
        case 'bytes':
          return reader.bytes()
      }
  }
}

function special(type: SpecialType, reader: WireReader, depth: number): SpecialValue {
  return decodeSpecial(type, reader, (nested, message) => decodeMessage(nested, message, depth))
}

function isMessage(value: SingleValue | undefined): value is MessageValue {
  return typeof value === 'object' && 'fields' in value
}

/** Go's zero value of a type. */
export function zeroOf(type: FieldType): SingleValue {
  if (type.is === 'message') return { type: type.message, fields: new Array<undefined>(type.message.fields.length) }
  if (type.is === 'special') return special(type.special, new WireReader(new Uint8Array()), 0)
  return { bool: false, integer: 0, double: 0, string: '', bytes: new Uint8Array() }[type.scalar]
}

function isNumeric(type: FieldType): boolean {
  return wireOf(type) !== 2
}

function wireOf(type: FieldType): WireType {
  if (type.is !== 'scalar' || type.scalar === 'string' || type.scalar === 'bytes') return 2
  return type.scalar === 'double' ? 1 : 0
}

function expectWire(got: WireType, want: WireType, json: string): void {
  if (got !== want) throw malformed(`wrong wire type ${got} for field "${json}"`)
}
