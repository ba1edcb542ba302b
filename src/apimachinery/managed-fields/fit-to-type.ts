// Adapts sets to a type that has changed since they were written, and adds the declared fields that hold their members.
import { emptySet, hasChildren, isMember, nodeOf, type FieldSet, type FieldSetBuilder } from './field-set.ts'
import { shapeOf, type FieldType, type MapType } from './field-type.ts'
import { fieldElement } from './path-element.ts'

/**
 * The set in which fields that became atomic are owned as a whole; the same set if none did. Fields that became owned
 * by field stay owned as a whole. Throws for an invalid type.
 */
export function fitToType(set: FieldSet, type: FieldType): FieldSet {
  return fitted(set, set, type) ?? set
}

/**
 * The changed children of a node; undefined if they need no change. `emptySet` if the children become part of the
 * whole.
 */
function fitted(node: FieldSet, root: FieldSet, type: FieldType): FieldSet | undefined {
  const isLeaf = node !== root && !hasChildren(node)
  const shape = shapeOf(type, null)
  if (shape === undefined)
    throw new Error('errors reconciling field set with schema: schema error: invalid atom: inlined')
  if (shape === 'map' && type.map !== undefined) {
    if (isUntyped(type.map)) return undefined
    if (type.map.atomic && !isLeaf) return node === root ? undefined : emptySet
    return isLeaf ? undefined : childrenFitted(node, root, type.map, undefined)
  }
  if (shape === 'list' && type.list !== undefined) {
    if (type.list.atomic && !isLeaf) return node === root ? undefined : emptySet
    return isLeaf ? undefined : childrenFitted(node, root, undefined, type.list.items)
  }
  return undefined
}

function childrenFitted(
  node: FieldSet,
  root: FieldSet,
  map: MapType | undefined,
  items: FieldType | undefined,
): FieldSet | undefined {
  let result: FieldSetBuilder | undefined
  for (const element in node) {
    const child = node[element] ?? emptySet
    const type = element === '.' ? undefined : map === undefined ? items : memberType(map, element)
    if (type === undefined) continue
    const changed = fitted(child, root, type)
    if (changed === undefined) continue
    result ??= { ...node }
    result[element] = changed
  }
  return result
}

function memberType(map: MapType, element: string): FieldType | undefined {
  return declaredBy(map).get(element) ?? map.values
}

const declaredOf = new WeakMap<MapType, ReadonlyMap<string, FieldType>>()

/** The types of declared fields by the steps to them. */
function declaredBy(map: MapType): ReadonlyMap<string, FieldType> {
  let declared = declaredOf.get(map)
  if (declared === undefined) {
    declared = new Map([...map.fields].map(([name, { type }]) => [fieldElement(name), type]))
    declaredOf.set(map, declared)
  }
  return declared
}

/** Whether nothing is known about the fields of a map, and therefore about its former type. */
function isUntyped({ fields, values }: MapType): boolean {
  return fields.size === 0 && values?.scalar === 'untyped'
}

/** The set with every declared field that holds a member. */
export function withNamedFields(set: FieldSet, type: FieldType | undefined): FieldSet {
  const result: FieldSetBuilder = {}
  for (const element in set) {
    if (element === '.') continue
    const node = set[element] ?? emptySet
    if (!hasChildren(node)) {
      result[element] = node
      continue
    }
    const declared = type?.map === undefined ? undefined : declaredBy(type.map).get(element)
    const below = element.startsWith('f:')
      ? (declared ?? type?.map?.values)
      : element.startsWith('k:')
        ? type?.list?.items
        : undefined
    result[element] = nodeOf(isMember(node) || declared !== undefined, withNamedFields(node, below)) ?? emptySet
  }
  return result
}
