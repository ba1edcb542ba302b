// The ownership types that follow from a schema, by the rules of kube-openapi's schemaconv.
import type { JsonValue } from '#apimachinery/meta/index.ts'
import type { SchemaNode } from '#apimachinery/schema/index.ts'
import { deducedType, untypedAtomic, type FieldType, type ListType, type MapType } from './field-type.ts'

type Known = WeakMap<SchemaNode, FieldType>
const known: Known = new WeakMap()
const knownKeeping: Known = new WeakMap()

/**
 * The type of values of a schema; the same for the same node, made at the first call. An undefined schema means that
 * nothing is known about the values.
 */
export function fieldTypeOf(schema: SchemaNode | undefined): FieldType {
  return schema === undefined ? deducedType : typeOf(schema, false)
}

/** `keepsUnknown`: a schema around this one preserves unknown fields, and so do all schemas below it. */
function typeOf(schema: SchemaNode, keepsUnknown: boolean): FieldType {
  // Named types, such as ObjectMeta, are the same wherever they are.
  const keeps = schema.typeName === undefined && (keepsUnknown || schema.preserveUnknownFields === true)
  const types = keeps ? knownKeeping : known
  let type = types.get(schema)
  if (type !== undefined) return type
  type = {}
  // The type is stored before it is filled, because a schema may contain itself.
  types.set(schema, type)
  Object.assign(type, shapesOf(schema, keeps))
  return type
}

function shapesOf(schema: SchemaNode, keeps: boolean): FieldType {
  if (schema.format === 'quantity') return { scalar: 'untyped' }
  if (schema.goType?.endsWith('.RawExtension') === true) return untypedAtomic
  switch (schema.type) {
    case 'object':
      return { map: mapOf(schema, keeps) }
    case 'array':
      return { list: listOf(schema, keeps) }
    case 'integer':
    case 'number':
      return { scalar: 'numeric' }
    case 'boolean':
      return { scalar: 'boolean' }
    case 'string':
      return { scalar: schema.format === undefined || schema.format === 'byte' ? 'string' : 'untyped' }
    default:
      return { scalar: 'untyped', list: listOf(schema, keeps), map: mapOf(schema, keeps) }
  }
}

function mapOf(schema: SchemaNode, keeps: boolean): MapType {
  const fields = new Map<string, { type: FieldType; default?: NonNullable<SchemaNode['default']> }>()
  const { properties = {} } = schema
  for (const name of Object.keys(properties)) {
    const member = properties[name] ?? {}
    const type = typeOf(member, keeps)
    const value = member.default ?? zeroOf(schema, name, member)
    fields.set(name, value == null ? { type } : { type, default: value })
  }
  return { atomic: schema.mapType === 'atomic', fields, values: valuesOf(schema, keeps, fields.size === 0) }
}

/**
 * The value that Go prints for an unset scalar of a built-in struct. It is the default in upstream's OpenAPI, so an
 * item without a key is the item with an empty key.
 */
function zeroOf({ typeName, required = [] }: SchemaNode, name: string, member: SchemaNode): JsonValue | undefined {
  if (typeName === undefined) return undefined
  if (!required.includes(name) && !(typeName === 'LocalObjectReference' && name === 'name')) return undefined
  switch (member.type) {
    case 'string':
      return member.format === undefined ? '' : undefined
    case 'integer':
      return 0
    case 'boolean':
      return false
    default:
      return undefined
  }
}

function valuesOf(
  { additionalProperties }: SchemaNode,
  keeps: boolean,
  declaresNothing: boolean,
): FieldType | undefined {
  if (additionalProperties === undefined) return keeps || declaresNothing ? deducedType : undefined
  if (additionalProperties === false) return undefined
  return additionalProperties === true ? deducedType : typeOf(additionalProperties, keeps)
}

function listOf(schema: SchemaNode, keeps: boolean): ListType {
  const items = schema.items === undefined ? untypedAtomic : typeOf(schema.items, keeps)
  const { listType, listMapKeys = [], patchStrategy, patchMergeKey } = schema
  if (listType !== undefined)
    return { atomic: listType === 'atomic', keys: listType === 'map' ? listMapKeys : [], items }
  // A built-in list that is older than list types is owned by item if strategic merge patches merge it.
  const merges = patchStrategy?.includes('merge') === true
  return { atomic: !merges, keys: merges && patchMergeKey !== undefined ? [patchMergeKey] : [], items }
}
