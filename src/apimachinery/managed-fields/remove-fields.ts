// A value without some of its fields.
import { isJsonObject, putField, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { hasChildren, isMember, type FieldSet } from './field-set.ts'
import { shapeOf, typeOfField, type FieldType, type ListType, type MapType } from './field-type.ts'
import { anyItemElement } from './list-items.ts'
import { fieldElement } from './path-element.ts'

/**
 * `value` without the fields and items in `fields`; a map or list with nothing left becomes null. `value` is not
 * changed.
 */
export function removeFields(value: JsonValue, fields: FieldSet, type: FieldType): JsonValue {
  const shape = shapeOf(type, value)
  if (shape === 'scalar') return value
  if (shape === 'list' && type.list !== undefined)
    return Array.isArray(value) ? fromList(value, fields, type.list) : null
  return type.map !== undefined && isJsonObject(value) ? fromMap(value, fields, type.map) : null
}

function fromList(items: readonly JsonValue[], fields: FieldSet, list: ListType): JsonValue {
  if (list.atomic) return null
  const kept: JsonValue[] = []
  for (const item of items) {
    const node = fields[anyItemElement(list, item)]
    if (node === undefined) kept.push(item)
    else if (!isMember(node)) kept.push(removeFields(item, node, list.items))
  }
  return kept.length === 0 ? null : kept
}

function fromMap(value: JsonObject, fields: FieldSet, map: MapType): JsonValue {
  if (map.atomic) return null
  const kept: JsonObject = {}
  for (const name of Object.keys(value)) {
    const item = value[name] ?? null
    const node = fields[fieldElement(name)]
    if (node !== undefined && isMember(node)) continue
    const rest =
      node === undefined || !hasChildren(node) ? item : removeFields(item, node, typeOfField(map, name) ?? {})
    putField(kept, name, rest)
  }
  return Object.keys(kept).length === 0 ? null : kept
}
