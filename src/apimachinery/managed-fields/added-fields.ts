// The fields of a new value. Most objects of a kind have the same fields as an earlier object, so the last sets of each
// type are kept: a set equal to one of them is the same object.
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { emptySet, type FieldSet, type FieldSetBuilder } from './field-set.ts'
import { shapeOf, typeOfField, type FieldType, type ListType, type MapType } from './field-type.ts'
import { sortForReuse } from './fields-v1.ts'
import { itemElement } from './list-items.ts'
import { fieldElement } from './path-element.ts'

/** The node of a map or list. */
interface Remembered {
  /** Names of fields, or steps to items, in the order of the value, and the nodes that they lead to. */
  readonly names: readonly string[]
  readonly nodes: readonly FieldSet[]
  readonly node: FieldSet
}

const rememberedOf = new WeakMap<MapType | ListType, Remembered[]>()
/** Maximum number of nodes remembered for one type, and of fields of one node. */
const [maxNodes, maxFields] = [8, 64]

/**
 * The node of a value with all fields in it; undefined for a value that does not fit its type or has duplicate items.
 */
export function addedFields(value: JsonValue, type: FieldType): FieldSet | undefined {
  const shape = shapeOf(type, value)
  if (shape === 'scalar') return emptySet
  if (shape === 'list' && type.list !== undefined)
    return type.list.atomic || !Array.isArray(value) || value.length === 0 ? emptySet : ofItems(value, type.list)
  if (type.map === undefined) return undefined
  return type.map.atomic || !isJsonObject(value) ? emptySet : ofMembers(value, type.map)
}

function ofMembers(value: Readonly<Record<string, JsonValue | undefined>>, map: MapType): FieldSet | undefined {
  const [names, nodes]: [string[], FieldSet[]] = [[], []]
  for (const name in value) {
    const item = value[name]
    if (item === undefined) continue
    const type = typeOfField(map, name)
    const below = type === undefined ? undefined : addedFields(item, type)
    if (below === undefined) return undefined
    names.push(name)
    nodes.push(below)
  }
  return nodeFor(map, names, nodes, fieldElement)
}

function ofItems(items: readonly JsonValue[], list: ListType): FieldSet | undefined {
  const [elements, nodes]: [Set<string>, FieldSet[]] = [new Set(), []]
  for (const item of items) {
    const element = elementOf(list, item)
    const below = addedFields(item, list.items)
    if (element === undefined || below === undefined) return undefined
    elements.add(element)
    nodes.push(below)
  }
  // Duplicate items are owned as a whole.
  return elements.size < items.length ? undefined : nodeFor(list, [...elements], nodes, (element) => element)
}

function elementOf(list: ListType, item: JsonValue): string | undefined {
  try {
    return itemElement(list, item)
  } catch {
    return undefined
  }
}

function nodeFor(
  type: MapType | ListType,
  names: readonly string[],
  nodes: readonly FieldSet[],
  elementOfName: (name: string) => string,
): FieldSet {
  if (names.length === 0) return emptySet
  const remembered = rememberedOf.get(type)
  const known = remembered?.find((candidate) => areSame(candidate.names, names) && areSame(candidate.nodes, nodes))
  if (known !== undefined) return known.node
  const members: FieldSetBuilder = { '.': emptySet }
  for (const [i, name] of names.entries()) members[elementOfName(name)] = nodes[i] ?? emptySet
  if (names.length > maxFields) return members
  const node = sortForReuse(members)
  if (remembered === undefined) rememberedOf.set(type, [{ names, nodes, node }])
  else if (remembered.unshift({ names, nodes, node }) > maxNodes) remembered.pop()
  return node
}

function areSame<T>(a: readonly T[], b: readonly T[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}
