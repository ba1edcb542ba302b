// Types as far as ownership goes: whether a list or map is owned as a whole or by item, and which fields distinguish
// its items. A type may be cyclic. It is an atom of structured-merge-diff's schema.
import type { JsonValue } from '#apimachinery/meta/index.ts'

export interface FieldType {
  scalar?: 'numeric' | 'string' | 'boolean' | 'untyped'
  list?: ListType
  map?: MapType
}

export interface ListType {
  /** Whether the list is owned as a whole; else every item is owned separately. */
  atomic: boolean
  /** The fields that distinguish the items; empty for a set of scalars. */
  keys: readonly string[]
  items: FieldType
}

export interface MapType {
  /** Whether the map is owned as a whole; else every field is owned separately. */
  atomic: boolean
  fields: ReadonlyMap<string, { readonly type: FieldType; readonly default?: JsonValue }>
  /** The type of fields that are not declared; undefined if no such fields are allowed. */
  values: FieldType | undefined
}

const noFields: MapType['fields'] = new Map()

/** The type of values without a schema that are owned as a whole. */
export const untypedAtomic: FieldType = { scalar: 'untyped' }
untypedAtomic.list = { atomic: true, keys: [], items: untypedAtomic }
untypedAtomic.map = { atomic: true, fields: noFields, values: untypedAtomic }

/** The type of values without a schema: maps are owned by field, lists as a whole. */
export const deducedType: FieldType = { scalar: 'untyped', list: { atomic: true, keys: [], items: untypedAtomic } }
deducedType.map = { atomic: false, fields: noFields, values: deducedType }

export type Shape = 'map' | 'scalar' | 'list'

/**
 * The shape of the type that a value has; the type's first shape for null and for values that do not fit. Undefined if
 * the type has no shape.
 */
export function shapeOf(type: FieldType, value: JsonValue | undefined): Shape | undefined {
  if (value !== undefined && value !== null) {
    const own = Array.isArray(value) ? 'list' : typeof value === 'object' ? 'map' : 'scalar'
    if (type[own] !== undefined) return own
  }
  if (type.map !== undefined) return 'map'
  return type.scalar !== undefined ? 'scalar' : type.list !== undefined ? 'list' : undefined
}

/** The type of a field; undefined if it is not declared and other fields are not allowed. */
export function typeOfField(map: MapType, name: string): FieldType | undefined {
  return map.fields.get(name)?.type ?? map.values
}
