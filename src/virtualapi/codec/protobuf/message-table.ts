// The protobuf messages of built-in kinds, from a generated table.
import { readGenerated } from '#virtualapi/kinds/resources/generated-facts.ts'

/** A scalar type of the wire format. */
type ScalarType = 'bool' | 'integer' | 'string' | 'bytes' | 'double'
export type SpecialType =
  | 'Time'
  | 'MicroTime'
  | 'Duration'
  | 'Quantity'
  | 'IntOrString'
  | 'RawExtension'
  | 'FieldsV1'
  | 'JSON'
  | 'JSONSchemaPropsOrBool'
  | 'JSONSchemaPropsOrArray'
  | 'JSONSchemaPropsOrStringArray'
  | 'StringList'

export type FieldType =
  | { readonly is: 'scalar'; readonly scalar: ScalarType }
  | { readonly is: 'special'; readonly special: SpecialType }
  | { readonly is: 'message'; readonly message: MessageType }

export interface FieldShape {
  readonly number: number
  /** The name of the JSON member. Empty: the message is inlined into its parent. */
  readonly json: string
  readonly type: FieldType
  readonly container: 'one' | 'list' | 'map'
  readonly pointer: boolean
  readonly omitEmpty: boolean
  readonly omitZero: boolean
}

/** A message. `fields` are in the order in which Go writes them to JSON. */
export interface MessageType {
  readonly name: string
  readonly fields: readonly FieldShape[]
  /** The index into `fields` by field number; undefined for numbers without a field. */
  readonly index: readonly (number | undefined)[]
}

interface Table {
  readonly kinds: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly messages: Readonly<Record<string, readonly (readonly [number, string, string, string])[]>>
}

const scalars: Readonly<Record<string, ScalarType>> = { b: 'bool', i: 'integer', s: 'string', y: 'bytes', d: 'double' }
const specials: Readonly<Record<string, SpecialType>> = {
  T: 'Time',
  U: 'MicroTime',
  D: 'Duration',
  Q: 'Quantity',
  I: 'IntOrString',
  R: 'RawExtension',
  F: 'FieldsV1',
  J: 'JSON',
  B: 'JSONSchemaPropsOrBool',
  A: 'JSONSchemaPropsOrArray',
  S: 'JSONSchemaPropsOrStringArray',
  L: 'StringList',
}

/** Fields of later versions of Kubernetes than that of the table, whose features we serve. */
const laterMessages: Table['messages'] = { 'meta.v1.ShardInfo': [[1, 'selector', 's', '']] }
const laterFields: Table['messages'] = { 'meta.v1.ListMeta': [[5, 'shardInfo', '@meta.v1.ShardInfo', 'po']] }

let table: Table | undefined
const known = new Map<string, MessageType>()

/** The message of a kind; undefined for kinds without a protobuf form. */
export function messageOfKind(apiVersion: string, kind: string): MessageType | undefined {
  const { kinds } = loadedTable()
  const name = own(own(kinds, apiVersion), kind) ?? own(kinds['*'], kind)
  return name === undefined ? undefined : messageNamed(name)
}

/** A message by its name in the table. */
export function messageNamed(name: string): MessageType {
  const existing = known.get(name)
  if (existing !== undefined) return existing
  const found = loadedTable().messages[name] ?? laterMessages[name]
  const rows = found && [...found, ...(laterFields[name] ?? [])]
  if (rows === undefined) throw new Error(`protobuf table: message "${name}" is referred to and missing`)
  const fields: FieldShape[] = []
  const index: (number | undefined)[] = []
  const message: MessageType = { name, fields, index }
  known.set(name, message)
  for (const [number, json, type, flags] of rows) {
    index[number] = fields.length
    fields.push({
      number,
      json: flags.includes('n') ? '' : json,
      type: typeOf(type),
      container: flags.includes('r') ? 'list' : flags.includes('m') ? 'map' : 'one',
      pointer: flags.includes('p'),
      omitEmpty: flags.includes('o'),
      omitZero: flags.includes('z'),
    })
  }
  return message
}

function typeOf(code: string): FieldType {
  if (code.startsWith('@')) return { is: 'message', message: messageNamed(code.slice(1)) }
  const scalar = scalars[code]
  if (scalar !== undefined) return { is: 'scalar', scalar }
  const special = specials[code]
  if (special === undefined) throw new Error(`protobuf table: unknown type "${code}"`)
  return { is: 'special', special }
}

function loadedTable(): Table {
  table ??= readGenerated('protobuf') as Table
  return table
}

function own<T>(record: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined
}
