// The fields that a change added, removed and modified.
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { jsonEqual } from '#apimachinery/json/index.ts'
import { addedFields } from './added-fields.ts'
import { emptySet, unionOfNodes, withoutSelf, type FieldSet, type FieldSetBuilder } from './field-set.ts'
import { shapeOf, typeOfField, type FieldType, type ListType, type MapType, type Shape } from './field-type.ts'
import { itemElement } from './list-items.ts'
import { elementText, fieldElement } from './path-element.ts'
import { scalarProblem, TypedProblems } from './typed-errors.ts'

/** The result of a comparison. No field is in two of its sets. */
export interface Comparison {
  readonly removed: FieldSet
  readonly modified: FieldSet
  readonly added: FieldSet
}

/** Compares two values of a type; undefined stands for no value. Throws a TypedError for values that do not fit. */
export function compareTyped(before: JsonValue, after: JsonValue, type: FieldType): Comparison {
  const problems = new TypedProblems()
  const difference = new Comparer(problems).compare(before, after, type)
  problems.throwIfAny()
  const { removed = emptySet, modified = emptySet, added = emptySet } = difference ?? {}
  return { removed: withoutSelf(removed), modified: withoutSelf(modified), added: withoutSelf(added) }
}

/** The difference at one node: its node in each set, absent if the set has none. */
interface Difference {
  removed?: FieldSetBuilder
  modified?: FieldSetBuilder
  added?: FieldSetBuilder
}

type Value = JsonValue | undefined
type Side = keyof Difference

const noType: FieldType = {}

class Comparer {
  readonly #problems: TypedProblems

  constructor(problems: TypedProblems) {
    this.#problems = problems
  }

  /** Undefined if nothing differs. At least one of both values is present. */
  compare(before: Value, after: Value, type: FieldType): Difference | undefined {
    // Most parts of an object are unchanged and shared, so they need no comparison.
    if (before === after) return undefined
    const [left, right] = [shapeOf(type, before), shapeOf(type, after)]
    if (after === undefined) return withSelf(this.#as(left, before, after, type), 'removed')
    if (before === undefined) {
      const added = addedFields(after, type)
      return added === undefined ? withSelf(this.#as(right, before, after, type), 'added') : { added }
    }
    if (left === right) return this.#as(right, before, after, type)
    return joined(this.#as(left, before, after, type), this.#as(right, before, after, type))
  }

  #as(shape: Shape | undefined, before: Value, after: Value, type: FieldType): Difference | undefined {
    if (shape === 'map' && type.map !== undefined) return this.#maps(before, after, type.map)
    if (shape === 'list' && type.list !== undefined) return this.#lists(before, after, type.list)
    if (shape === 'scalar' && type.scalar !== undefined) return this.#scalars(before, after, type.scalar)
    this.#problems.add('schema error: invalid atom: inlined')
    return undefined
  }

  #scalars(before: Value, after: Value, scalar: NonNullable<FieldType['scalar']>): Difference | undefined {
    const [left, right] = [scalarProblem(scalar, before), scalarProblem(scalar, after)]
    if (left !== undefined && right !== undefined) {
      this.#problems.add(`lhs: ${left}`)
      this.#problems.add(`rhs: ${right}`)
      return undefined
    }
    return leafDifference(before, after)
  }

  #maps(before: Value, after: Value, map: MapType): Difference | undefined {
    const [left, right] = [asMap(before), asMap(after)]
    if (map.atomic || (isEmptyMap(left) && isEmptyMap(right))) return leafDifference(before, after)
    let result: Difference | undefined
    for (const name in left) {
      const [was, is] = [left[name], memberOf(right, name)]
      if (was !== is && Object.hasOwn(left, name)) result = this.#field(name, was, is, map, result)
    }
    for (const name in right)
      if (Object.hasOwn(right, name) && memberOf(left, name) === undefined)
        result = this.#field(name, undefined, right[name], map, result)
    return result
  }

  #field(name: string, was: Value, is: Value, map: MapType, result: Difference | undefined): Difference | undefined {
    const element = fieldElement(name)
    const problems = this.#problems.count
    const difference = this.compare(was, is, typeOfField(map, name) ?? noType)
    if (this.#problems.count > problems) this.#problems.prefix(problems, elementText(element))
    return difference === undefined ? result : put(result ?? {}, element, difference)
  }

  #lists(before: Value, after: Value, list: ListType): Difference | undefined {
    const [left, right] = [asList(before), asList(after)]
    if (list.atomic || (left.length === 0 && right.length === 0)) return leafDifference(before, after)
    const [was, is] = [this.#indexed(left, list), this.#indexed(right, list)]
    let result: Difference | undefined
    for (const element of new Set([...was.keys(), ...is.keys()])) {
      const difference = this.#items(element, was.get(element) ?? [], is.get(element) ?? [], list)
      if (difference !== undefined) result = put(result ?? {}, element, difference)
    }
    return result
  }

  /** Compares the items that one step leads to. Several items with one step are owned as a whole. */
  #items(element: string, was: readonly JsonValue[], is: readonly JsonValue[], list: ListType): Difference | undefined {
    const compare = (left: Value, right: Value): Difference | undefined => {
      const problems = this.#problems.count
      const difference = this.compare(left, right, list.items)
      if (this.#problems.count > problems) this.#problems.prefix(problems, elementText(element))
      return difference
    }
    if (was.length <= 1 && is.length <= 1) return compare(was[0], is[0])
    if (was.length >= 2 && is.length >= 2) return jsonEqual([...was], [...is]) ? undefined : { modified: emptySet }
    if (was.length >= 2) {
      const added = is.length > 0 ? compare(undefined, is[0]) : undefined
      return { ...added, removed: emptySet }
    }
    const removed = was.length > 0 ? compare(was[0], undefined) : undefined
    return { ...removed, added: emptySet }
  }

  #indexed(items: readonly JsonValue[], list: ListType): Map<string, JsonValue[]> {
    const index = new Map<string, JsonValue[]>()
    for (const [i, item] of items.entries()) {
      try {
        const element = itemElement(list, item)
        const same = index.get(element)
        if (same === undefined) index.set(element, [item])
        else same.push(item)
      } catch (error) {
        this.#problems.add(`element ${i}: ${(error as Error).message}`)
      }
    }
    return index
  }
}

function leafDifference(before: Value, after: Value): Difference | undefined {
  if (before === undefined) return { added: emptySet }
  if (after === undefined) return { removed: emptySet }
  return jsonEqual(before, after) ? undefined : { modified: emptySet }
}

/** The difference with the node itself added or removed, besides the fields below it. */
function withSelf(difference: Difference | undefined, side: 'added' | 'removed'): Difference {
  const node = difference?.[side]
  if (node === undefined) return { ...difference, [side]: emptySet }
  return Object.keys(node).length === 0 || Object.hasOwn(node, '.')
    ? { ...difference, [side]: node }
    : { ...difference, [side]: { '.': emptySet, ...node } }
}

const sides: readonly Side[] = ['removed', 'modified', 'added']

function put(into: Difference, element: string, { removed, modified, added }: Difference): Difference {
  if (removed !== undefined) (into.removed ??= {})[element] = removed
  if (modified !== undefined) (into.modified ??= {})[element] = modified
  if (added !== undefined) (into.added ??= {})[element] = added
  return into
}

/** Joins the differences of two readings of the same values; a leaf in one may have children in the other. */
function joined(a: Difference | undefined, b: Difference | undefined): Difference | undefined {
  if (a === undefined || b === undefined) return a ?? b
  const result: Difference = { ...a }
  for (const side of sides) {
    const [left, right] = [a[side], b[side]]
    if (right === undefined) continue
    result[side] = left === undefined ? right : unionOfNodes(left, right)
  }
  return result
}

function asMap(value: Value): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined
}

function asList(value: Value): readonly JsonValue[] {
  return Array.isArray(value) ? value : []
}

function isEmptyMap(map: JsonObject | undefined): boolean {
  for (const _ in map) return false
  return true
}

function memberOf(map: JsonObject | undefined, name: string): Value {
  return map !== undefined && Object.hasOwn(map, name) ? map[name] : undefined
}
