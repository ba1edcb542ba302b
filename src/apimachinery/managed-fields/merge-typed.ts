// Merges an applied configuration into an object: the configuration's fields win, all other fields stay.
import { isJsonObject, putField, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { shapeOf, typeOfField, type FieldType, type ListType, type MapType, type Shape } from './field-type.ts'
import { itemElement } from './list-items.ts'
import { elementText, fieldElement } from './path-element.ts'
import { scalarProblem, TypedProblems } from './typed-errors.ts'

type Value = JsonValue | undefined

/**
 * `live` with the fields of `config`. Neither is changed, and the result shares parts with both. Throws a TypedError
 * for values that do not fit.
 */
export function mergeTyped(live: JsonValue, config: JsonValue, type: FieldType): JsonValue {
  const problems = new TypedProblems()
  const merged = new Merger(problems).merge(live, config, type)
  problems.throwIfAny()
  return merged ?? null
}

class Merger {
  readonly #problems: TypedProblems

  constructor(problems: TypedProblems) {
    this.#problems = problems
  }

  /** Merges two values, of which at least one is present. */
  merge(live: Value, config: Value, type: FieldType): Value {
    return this.#as(shapeOf(type, config === undefined ? live : config), live, config, type)
  }

  #as(shape: Shape | undefined, live: Value, config: Value, type: FieldType): Value {
    if (shape === 'map' && type.map !== undefined) return this.#maps(live, config, type.map)
    if (shape === 'list' && type.list !== undefined) return this.#lists(live, config, type.list)
    if (shape === 'scalar' && type.scalar !== undefined) return this.#scalars(live, config, type.scalar)
    this.#problems.add('schema error: invalid atom: inlined')
    return undefined
  }

  #scalars(live: Value, config: Value, scalar: NonNullable<FieldType['scalar']>): Value {
    if (config === undefined) return live
    const [left, right] = [scalarProblem(scalar, live), scalarProblem(scalar, config)]
    if (left === undefined || right === undefined) return config
    this.#problems.add(`lhs: ${left}`)
    this.#problems.add(`rhs: ${right}`)
    return undefined
  }

  #maps(live: Value, config: Value, map: MapType): Value {
    const left = isJsonObject(live) ? live : nothing
    const right = isJsonObject(config) ? config : nothing
    if (map.atomic || (isEmpty(left) && isEmpty(right))) return config === undefined ? live : config
    const result: JsonObject = {}
    // An unchanged value stays the same object, so that it need not be compared later.
    let changed = live !== left
    for (const name in left) {
      const was = left[name]
      const merged = this.#field(name, was, right === nothing ? undefined : memberOf(right, name), map)
      changed ||= merged !== was
      if (merged !== undefined) putField(result, name, merged)
    }
    for (const name in right) {
      if (Object.hasOwn(left, name)) continue
      changed = true
      const merged = this.#field(name, undefined, right[name], map)
      if (merged !== undefined) putField(result, name, merged)
    }
    if (!changed) return live
    return isEmpty(result) ? undefined : result
  }

  #field(name: string, live: Value, config: Value, map: MapType): Value {
    const problems = this.#problems.count
    const merged = this.merge(live, config, typeOfField(map, name) ?? noType)
    if (this.#problems.count > problems) this.#problems.prefix(problems, elementText(fieldElement(name)))
    return merged
  }

  #lists(live: Value, config: Value, list: ListType): Value {
    const left = Array.isArray(live) ? live : []
    const right = Array.isArray(config) ? config : []
    if (list.atomic || (left.length === 0 && right.length === 0)) return config === undefined ? live : config
    const wanted = this.#indexed(right, list, { allowDuplicates: false })
    const present = this.#indexed(left, list, { allowDuplicates: true })
    if (wanted === undefined || present === undefined) return undefined
    const merged: JsonValue[] = []
    for (const { element, live: was } of orderOf(left, present, wanted)) {
      const problems = this.#problems.count
      const item = this.merge(was, wanted.items.get(element), list.items)
      if (this.#problems.count > problems) this.#problems.prefix(problems, elementText(element))
      if (item !== undefined) merged.push(item)
    }
    if (isSameList(merged, live)) return live
    return merged.length === 0 ? undefined : merged
  }

  /** The items by their steps; undefined if an item has no step. */
  #indexed(
    values: readonly JsonValue[],
    list: ListType,
    { allowDuplicates }: { allowDuplicates: boolean },
  ): Index | undefined {
    const items = new Map<string, JsonValue>()
    const elements: string[] = []
    const before = this.#problems.list.length
    for (const [i, value] of values.entries()) {
      try {
        const element = itemElement(list, value)
        const isDuplicate = items.has(element)
        if (isDuplicate && !allowDuplicates) {
          this.#problems.add(`duplicate entries for key ${elementText(element)}`)
          continue
        }
        // Duplicate items are merged with null.
        items.set(element, isDuplicate ? null : value)
        elements.push(element)
      } catch (error) {
        this.#problems.add(`element ${i}: ${(error as Error).message}`)
      }
    }
    return this.#problems.list.length > before ? undefined : { elements, items }
  }
}

interface Index {
  /** The step of every item, in order. */
  readonly elements: readonly string[]
  readonly items: ReadonlyMap<string, JsonValue>
}

interface Slot {
  readonly element: string
  readonly live: Value
}

/**
 * The items of a merged list: the wanted items in their own order, with the items that are only present at their old
 * places between them.
 */
function orderOf(live: readonly JsonValue[], present: Index, wanted: Index): Slot[] {
  const slots: Slot[] = []
  const placed = new Set<string>()
  const shared = wanted.elements.filter((element) => present.items.has(element))
  const place = (element: string): void => {
    placed.add(element)
    slots.push({ element, live: present.items.get(element) })
  }
  let [next, nextShared] = [0, 0]
  for (let i = 0; i < present.elements.length || next < wanted.elements.length;) {
    const element = present.elements[i]
    const want = wanted.elements[next]
    if (element !== undefined && want !== undefined) {
      if (element === want) {
        place(element)
        i++
        next++
        nextShared++
        continue
      }
      const awaited = shared[nextShared]
      if (wanted.items.has(element) && awaited !== undefined && awaited !== element) {
        // This item comes later, in the wanted order.
        i++
        continue
      }
    }
    if (element !== undefined) {
      if (!wanted.items.has(element)) {
        slots.push({ element, live: live[i] })
        i++
        continue
      }
      if (placed.has(element)) i++
    }
    if (want === undefined) continue
    place(want)
    next++
    if (shared[nextShared] === want) nextShared++
  }
  return slots
}

const nothing: JsonObject = Object.freeze({})
const noType: FieldType = {}

function isEmpty(map: JsonObject): boolean {
  for (const _ in map) return false
  return true
}

function isSameList(merged: readonly JsonValue[], live: Value): boolean {
  return Array.isArray(live) && live.length === merged.length && merged.every((item, i) => item === live[i])
}

function memberOf(map: JsonObject, name: string): Value {
  return Object.hasOwn(map, name) ? map[name] : undefined
}
