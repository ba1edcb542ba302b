// The order of merged lists, and the checks a list must pass before it can be merged.
// Items in the patch come in the patch's order; items only in the server's list keep theirs; the server's order decides
// how the two are interleaved.
import { fieldOf, isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { goPrint } from '#apimachinery/text/index.ts'
import { badRequest } from '#apimachinery/status/index.ts'
import { goKind, goType, unprocessablePatch } from './patch-error.ts'

/** The type of all items of both lists; throws if it differs, is an array, or there are no items. */
export function sameKindOfItems(...lists: JsonValue[][]): string {
  let kind: string | undefined
  for (const list of lists) {
    for (const item of list) {
      const itemKind = goKind(item)
      if (kind === undefined && itemKind === 'array') throw unprocessablePatch('lists of lists are not supported')
      if (kind !== undefined && kind !== itemKind) {
        throw badRequest(`list element types are not identical: ${goPrint(lists)}`)
      }
      kind = itemKind
    }
  }
  if (kind === undefined) throw badRequest('no elements in any of the given slices')
  return kind
}

/** The list as objects; throws if an item is not an object. */
export function requireMaps(list: JsonValue[]): JsonObject[] {
  for (const item of list) {
    if (!isJsonObject(item)) throw badRequest(`expected a map[string]interface {}, but received a ${goType(item)}`)
  }
  return list as JsonObject[]
}

/** The value that identifies an item of a merged list; throws if it has none. */
export function mergeKeyOf(item: JsonObject, mergeKey: string): JsonValue {
  const value = fieldOf(item, mergeKey)
  if (value === undefined) {
    throw badRequest(`map: ${goPrint(item)} does not contain declared merge key: ${mergeKey}`)
  }
  return value
}

/** The index of the first item with each merge key. */
export function indexByKey(list: readonly JsonValue[], mergeKey: string | undefined): Map<JsonValue, number> {
  const indexes = new Map<JsonValue, number>()
  for (const [i, item] of list.entries()) {
    const key = identity(item, mergeKey)
    if (key !== undefined && !indexes.has(key)) indexes.set(key, i)
  }
  return indexes
}

/** The list without the items that `$patch: delete` items of the patch name. */
export function deleteMarked(list: JsonObject[], patch: JsonObject[], mergeKey: string): JsonObject[] {
  const gone = new Set<JsonValue | undefined>()
  for (const item of patch) if (fieldOf(item, '$patch') === 'delete') gone.add(fieldOf(item, mergeKey))
  gone.delete(undefined)
  return gone.size === 0 ? list : list.filter((item) => !gone.has(fieldOf(item, mergeKey) as JsonValue))
}

/**
 * Sorts `merged`: items of `order` in that order, the rest in `serverOrder`; the two are interleaved by `serverOrder`.
 */
export function mergeOrdered(
  merged: JsonValue[],
  order: JsonValue[],
  serverOrder: JsonValue[],
  mergeKey: string | undefined,
): JsonValue[] {
  const wanted = indexByKey(order, mergeKey)
  const known = indexByKey(serverOrder, mergeKey)
  const ordered: JsonValue[] = []
  const serverOnly: JsonValue[] = []
  for (const item of merged) {
    const key = mergeKey === undefined ? item : mergeKeyOf(requireMaps([item])[0] ?? {}, mergeKey)
    ;(wanted.has(key) ? ordered : serverOnly).push(item)
  }
  if (mergeKey !== undefined) for (const item of requireMaps([...order, ...serverOrder])) mergeKeyOf(item, mergeKey)
  const indexOf = (indexes: Map<JsonValue, number>, item: JsonValue): number =>
    indexes.get(identity(item, mergeKey) ?? null) ?? -1
  ordered.sort((a, b) => indexOf(wanted, a) - indexOf(wanted, b))
  serverOnly.sort((a, b) => indexOf(known, a) - indexOf(known, b))
  return interleave(serverOnly, ordered, (item) => indexOf(known, item))
}

function identity(item: JsonValue, mergeKey: string | undefined): JsonValue | undefined {
  return mergeKey === undefined ? item : isJsonObject(item) ? fieldOf(item, mergeKey) : undefined
}

function interleave(left: JsonValue[], right: JsonValue[], indexOf: (item: JsonValue) => number): JsonValue[] {
  const all: JsonValue[] = []
  let [i, j] = [0, 0]
  while (i < left.length && j < right.length) {
    const [l = null, r = null] = [left[i], right[j]]
    const [lp, rp] = [indexOf(l), indexOf(r)]
    if (lp >= 0 && rp >= 0 && lp < rp) {
      all.push(l)
      i++
    } else {
      all.push(r)
      j++
    }
  }
  return [...all, ...left.slice(i), ...right.slice(j)]
}
