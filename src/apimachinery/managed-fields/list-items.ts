// The steps that distinguish the items of a list.
import { fieldOf, isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import type { ListType } from './field-type.ts'
import { keyElement, valueElement } from './path-element.ts'

/**
 * The step to an item of a list that is not atomic. Throws an Error with upstream's words for an item without a step.
 */
export function itemElement(list: ListType, item: JsonValue): string {
  if (list.atomic) throw new Error('invalid indexing of non-associative list')
  if (list.keys.length > 0) return keyedElement(list, item)
  if (item === null) throw new Error("associative list without keys has an element that's an explicit null")
  if (Array.isArray(item)) throw new Error('not supported: associative list with lists as elements')
  if (typeof item === 'object') throw new Error("associative list without keys has an element that's a map type")
  return valueElement(item)
}

/** The step to items that cannot be distinguished, because a removal took their keys. Never written. */
const lostElement = '?:'

/** The step of `itemElement`, or `lostElement` for every item without one. */
export function anyItemElement(list: ListType, item: JsonValue): string {
  try {
    return itemElement(list, item)
  } catch {
    return lostElement
  }
}

function keyedElement({ keys, items }: ListType, item: JsonValue): string {
  if (item === null) throw new Error('associative list with keys may not have a null element')
  if (!isJsonObject(item)) throw new Error('associative list with keys may not have non-map elements')
  const found: [string, JsonValue][] = []
  for (const name of keys) {
    const value = fieldOf(item, name) ?? (Object.hasOwn(item, name) ? null : undefined)
    if (value === undefined && items.map === undefined)
      throw new Error(`couldn't find default value for ${name}: associative list may not have non-map types`)
    const known = value === undefined ? items.map?.fields.get(name)?.default : value
    if (known !== undefined) found.push([name, known])
  }
  if (found.length === 0)
    throw new Error(
      `associative list with keys has an element that omits all key fields [${keys.map((key) => JSON.stringify(key)).join(' ')}] (and doesn't have default values for any key fields)`,
    )
  if (found.length > 1) found.sort(([a], [b]) => (a < b ? -1 : 1))
  return keyElement(found)
}
