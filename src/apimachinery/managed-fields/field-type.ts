// Types as far as ownership goes: whether a list or map is owned as a whole or by item, and by what its items are told
// apart. A type may be cyclic. Of structured-merge-diff's schema: an atom.
import type { JsonValue } from '#apimachinery/meta/index.ts'

export interface FieldType {
  scalar?: 'numeric' | 'string' | 'boolean' | 'untyped'
  list?: ListType
  map?: MapType
}

export interface ListType {
  /** Owned as a whole; else every item by itself. */
  atomic: boolean
  /** By which fields its items are told apart; none: a set of scalars. */
  keys: readonly string[]
  items: FieldType
}

export interface MapType {
  /** Owned as a whole; else every field by itself. */
  atomic: boolean
  fields: ReadonlyMap<string, { readonly type: FieldType; readonly default?: JsonValue }>
  /** Of fields that are not declared; undefined: there may be none. */
  values: FieldType | undefined
}

const noFields: MapType['fields'] = new Map()

/** Of values that no schema says anything of, owned as a whole. */
export const untypedAtomic: FieldType = { scalar: 'untyped' }
untypedAtomic.list = { atomic: true, keys: [], items: untypedAtomic }
untypedAtomic.map = { atomic: true, fields: noFields, values: untypedAtomic }

/** Of values that no schema says anything of: maps are owned by field, lists as a whole. */
export const deducedType: FieldType = { scalar: 'untyped', list: { atomic: true, keys: [], items: untypedAtomic } }
deducedType.map = { atomic: false, fields: noFields, values: deducedType }

export type Shape = 'map' | 'scalar' | 'list'

/**
 * As which of its shapes a type takes a value; for null and what does not fit: as its first. Undefined: it has none.
 */
export function shapeOf(type: FieldType, value: JsonValue | undefined): Shape | undefined {
  if (value !== undefined && value !== null) {
    const own = Array.isArray(value) ? 'list' : typeof value === 'object' ? 'map' : 'scalar'
    if (type[own] !== undefined) return own
  }
  if (type.map !== undefined) return 'map'
  return type.scalar !== undefined ? 'scalar' : type.list !== undefined ? 'list' : undefined
}

/** The type of a field; undefined where it is not declared and no others may be there. */
export function typeOfField(map: MapType, name: string): FieldType | undefined {
  return map.fields.get(name)?.type ?? map.values
}
