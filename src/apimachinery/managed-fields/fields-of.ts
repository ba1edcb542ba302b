// Fields owned by an applier: every leaf and list item of the applied value.
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { emptySet, nodeOf, type FieldSet, type FieldSetBuilder } from './field-set.ts'
import { shapeOf, typeOfField, type FieldType, type ListType, type MapType } from './field-type.ts'
import { anyItemElement } from './list-items.ts'
import { fieldElement } from './path-element.ts'

/** The set of every leaf and every item of `value`, which must fit `type`. */
export function fieldsOf(value: JsonValue | undefined, type: FieldType): FieldSet {
  return nodeFor(value, type).children
}

interface Node {
  readonly member: boolean
  readonly children: FieldSet
}

const leaf: Node = { member: true, children: emptySet }
const nothing: Node = { member: false, children: emptySet }

function nodeFor(value: JsonValue | undefined, type: FieldType): Node {
  const shape = shapeOf(type, value)
  if (shape === 'scalar') return leaf
  if (shape === 'list' && type.list !== undefined) {
    if (type.list.atomic) return leaf
    return Array.isArray(value) ? { member: false, children: itemsOf(value, type.list) } : nothing
  }
  if (type.map === undefined) return nothing
  if (type.map.atomic) return leaf
  return isJsonObject(value) ? { member: false, children: membersOf(value, type.map) } : nothing
}

function membersOf(value: JsonObject, map: MapType): FieldSet {
  const children: FieldSetBuilder = {}
  for (const name of Object.keys(value)) {
    const item = value[name] ?? null
    const { member, children: below } = nodeFor(item, typeOfField(map, name) ?? {})
    const isEmpty = item === null || (isJsonObject(item) && Object.keys(item).length === 0)
    const node = nodeOf(member || isEmpty || !map.fields.has(name), below)
    if (node !== undefined) children[fieldElement(name)] = node
  }
  return children
}

/** The fields of a list. Duplicate items are owned as a whole. */
function itemsOf(items: readonly JsonValue[], list: ListType): FieldSet {
  const children: FieldSetBuilder = {}
  for (const item of items) {
    const element = anyItemElement(list, item)
    children[element] = Object.hasOwn(children, element)
      ? emptySet
      : (nodeOf(true, nodeFor(item, list.items).children) ?? emptySet)
  }
  return children
}
