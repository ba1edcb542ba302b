// Lists and maps that expressions build.
import { equal, equalTypedLists } from './compare.ts'
import {
  CelDouble,
  CelDuration,
  CelError,
  CelList,
  CelMap,
  CelTimestamp,
  CelTypeValue,
  CelUint,
  isInt,
  type Value,
} from './value.ts'
import { lookAt, lookAtText } from './work.ts'

export class ArrayList extends CelList {
  readonly items: readonly Value[]

  constructor(items: readonly Value[]) {
    super()
    this.items = items
  }

  override get size(): number {
    return this.items.length
  }

  override at(index: number): Value {
    return this.items[index] ?? null
  }
}

/** The list that a comprehension grows in place. It is handed on only when the comprehension ends. */
export class GrowingList extends CelList {
  readonly #items: Value[] = []

  override get size(): number {
    return this.#items.length
  }

  override at(index: number): Value {
    return this.#items[index] ?? null
  }

  override append(other: CelList): this {
    lookAt(other.size)
    for (let i = 0; i < other.size; i++) this.#items.push(other.at(i))
    return this
  }

  freeze(): ArrayList {
    return new ArrayList(this.#items)
  }
}

class ConcatenatedList extends CelList {
  readonly #first: CelList
  readonly #second: CelList
  readonly size: number
  override readonly depth: number

  constructor(first: CelList, second: CelList) {
    super()
    this.#first = first
    this.#second = second
    this.size = first.size + second.size
    this.depth = 1 + Math.max(first.depth, second.depth)
    if (first.equalTo !== undefined) this.equalTo = (other) => equalTypedLists(this, other)
  }

  override at(index: number): Value {
    return index < this.#first.size ? this.#first.at(index) : this.#second.at(index - this.#first.size)
  }
}

const maxConcatenations = 16

/** One list after the other, in constant time while the chain is short. */
export function concatenate(first: CelList, second: CelList): CelList {
  if (first.append !== undefined) return first.append(second)
  if (first.size === 0) return second
  if (second.size === 0) return first
  const both = new ConcatenatedList(first, second)
  return both.depth < maxConcatenations ? both : new ArrayList(itemsOf(both))
}

/** The elements of a list as an array that nobody may change. Counts what it copies. */
export function itemsOf(list: CelList): readonly Value[] {
  if (list instanceof ArrayList) return list.items
  lookAt(list.size * (1 + list.depth))
  return Array.from({ length: list.size }, (_, i) => list.at(i))
}

/** Whether a list has an element. */
export function contains(list: CelList, value: Value): boolean {
  lookAt(list.size * (1 + list.depth))
  for (let i = 0; i < list.size; i++) if (equal(list.at(i), value) === true) return true
  return false
}

// Keys of different types are different keys, but 1, 1u and 1.0 find each other.
function keyText(key: Value): string | undefined {
  if (typeof key === 'string') {
    lookAtText(key.length)
    return `s${key}`
  }
  if (isInt(key)) return `i${String(key)}`
  if (key instanceof CelUint) return `u${String(key.value)}`
  if (key instanceof CelDouble) return `d${String(key.value)}`
  if (typeof key === 'boolean') return `b${String(key)}`
  if (key === null) return 'n'
  if (key instanceof CelTimestamp) return `t${String(key.seconds)}.${String(key.nanos)}`
  if (key instanceof CelDuration) return `p${String(key.nanos)}`
  return key instanceof CelTypeValue ? `c${key.name}` : undefined
}

/** True for values that may be the key of an entry. */
export const isKey = (value: Value): boolean => keyText(value) !== undefined

export class EntryMap extends CelMap {
  readonly #entries = new Map<string, readonly [key: Value, value: Value]>()

  /** Adds or replaces an entry. Only while the map is being built. */
  set(key: Value, value: Value): void {
    const text = keyText(key)
    if (text !== undefined) this.#entries.set(text, [key, value])
  }

  delete(key: Value): void {
    this.#entries.delete(keyText(key) ?? '')
  }

  override get size(): number {
    return this.#entries.size
  }

  override find(key: Value): Value | undefined {
    const found = this.#entries.get(keyText(key) ?? '')
    if (found !== undefined) return found[1]
    for (const other of sameNumbers(key)) {
      const entry = this.#entries.get(keyText(other) ?? '')
      if (entry !== undefined) return entry[1]
    }
    return undefined
  }

  override keys(): readonly Value[] {
    return Array.from(this.#entries.values(), ([key]) => key)
  }
}

function sameNumbers(key: Value): Value[] {
  let exact: bigint | undefined
  if (isInt(key)) exact = BigInt(key)
  else if (key instanceof CelUint) exact = key.value
  else if (key instanceof CelDouble && Number.isSafeInteger(key.value)) exact = BigInt(key.value)
  if (exact === undefined) return []
  const number = Number(exact)
  return [Number.isSafeInteger(number) ? number : exact, new CelUint(exact), new CelDouble(number)]
}

/** The map with one entry more. An error where the key is there already. */
export function insertEntry(map: CelMap, key: Value, value: Value): CelMap | CelError {
  if (map.find(key) !== undefined) return new CelError(`insert failed: key ${keyShown(key)} already exists`)
  const grown = map instanceof EntryMap ? map : copyOf(map)
  grown.set(key, value)
  return grown
}

/** A map of its own with the same entries. */
export function copyOf(map: CelMap): EntryMap {
  const copy = new EntryMap()
  for (const key of map.keys()) copy.set(key, map.find(key) ?? null)
  return copy
}

const keyShown = (key: Value): string => (keyText(key) ?? ' ').slice(1)
