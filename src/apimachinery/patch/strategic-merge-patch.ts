// Strategic merge patch: what kubectl sends for built-in kinds. Like a merge patch, but lists whose schema says so are
// merged item by item, and directives in the patch delete, replace and order.
//   $patch: replace | delete              on an object, or as an item of a merged list
//   $retainKeys: [k, ...]                 drop all other fields of the object
//   $deleteFromPrimitiveList/F: [v, ...]  remove values from the list F
//   $setElementOrder/F: [...]             the order of the items the client knows of list F
// If upstream's result depends on the order of a Go map, deletions from a list come first here.
import { fieldOf, isJsonObject, putField, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import type { SchemaNode } from '#apimachinery/schema/schema-node.ts'
import { goPrint } from '#apimachinery/text/index.ts'
import { badRequest } from '#apimachinery/status/index.ts'
import { deleteMarked, mergeKeyOf, mergeOrdered, indexByKey, requireMaps, sameKindOfItems } from './list-order.ts'
import { goType, unmarshalText } from './patch-error.ts'

const directive = '$patch'
const retainKeys = '$retainKeys'
const setOrderPrefix = '$setElementOrder'
const deleteListPrefix = '$deleteFromPrimitiveList'

/**
 * Returns the patched document. Arguments are never changed; the result may share parts with both. A field that the
 * schema does not know merges like a merge patch. Throws BadRequest or Invalid (422) for an invalid patch, even if a
 * real server responds with 500, because the mistake is the client's.
 */
export function applyStrategicMergePatch(document: JsonObject, patch: JsonValue, schema: SchemaNode): JsonObject {
  if (!isJsonObject(patch)) throw badRequest(unmarshalText(patch, 'map[string]interface {}'))
  return mergeObject(document, patch, schema)
}

function mergeObject(original: JsonObject, patch: JsonObject, schema: SchemaNode | undefined): JsonObject {
  if (Object.hasOwn(patch, directive)) return replaceOrDelete(patch)
  const result = { ...original }
  const rest = { ...patch }
  applyRetainKeys(result, rest)
  for (const key of Object.keys(rest)) if (key.startsWith(setOrderPrefix)) mergeWithOrder(result, rest, key, schema)
  const keys = Object.keys(rest)
  for (const key of keys)
    if (key.startsWith(deleteListPrefix)) deleteFromList(result, rest[key] ?? null, fieldAfter(key, deleteListPrefix))
  for (const key of keys) if (!key.startsWith(deleteListPrefix)) mergeField(result, key, rest[key] ?? null, schema)
  return result
}

function replaceOrDelete(patch: JsonObject): JsonObject {
  const { [directive]: kind, ...rest } = patch
  if (kind === 'replace') return rest
  if (kind === 'delete') return {}
  throw badPatchType(kind, patch)
}

function badPatchType(kind: JsonValue | undefined, patch: JsonObject): Error {
  return badRequest(`unknown patch type: ${goPrint(kind ?? null)} in map: ${goPrint(patch)}`)
}

function applyRetainKeys(result: JsonObject, patch: JsonObject): void {
  const wanted = fieldOf(patch, retainKeys)
  if (wanted === undefined) return
  drop(patch, retainKeys)
  if (!Array.isArray(wanted)) throw badRequest('invalid patch format of retainKeys')
  const retained = new Set(wanted)
  for (const [key, value] of Object.entries(patch)) {
    if (value === null || key.startsWith(deleteListPrefix) || key.startsWith(setOrderPrefix)) continue
    if (!retained.has(key)) throw badRequest('invalid patch format of retainKeys')
  }
  for (const key of Object.keys(result)) if (!retained.has(key)) drop(result, key)
}

function drop(object: JsonObject, key: string): void {
  // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- a JSON object of ours, just copied
  delete object[key]
}

function fieldAfter(key: string, prefix: string): string {
  const slash = key.indexOf('/')
  if (slash < 0 || key.slice(0, slash) !== prefix) {
    const list = prefix === setOrderPrefix ? 'setElementOrder list' : 'primitive list'
    throw badRequest(`invalid patch format of ${list}`)
  }
  return key.slice(slash + 1)
}

function deleteFromList(result: JsonObject, values: JsonValue, field: string): void {
  const current = fieldOf(result, field)
  if (values === null) {
    drop(result, field)
    return
  }
  if (!Array.isArray(current) || !Array.isArray(values)) return
  if (current.length === 0 && values.length === 0) return
  sameKindOfItems(current, values)
  const removed = new Set(values)
  putField(
    result,
    field,
    current.filter((item) => !removed.has(item)),
  )
}

function mergeField(result: JsonObject, key: string, change: JsonValue, schema: SchemaNode | undefined): void {
  if (change === null) {
    drop(result, key)
    return
  }
  const before = fieldOf(result, key)
  const field = fieldSchema(schema, key)
  if (isJsonObject(before) && isJsonObject(change)) {
    putField(result, key, isReplaced(field) ? change : mergeObject(before, change, field))
  } else if (Array.isArray(before) && Array.isArray(change)) {
    putField(result, key, isMerged(field) ? mergeList(before, change, field) : change)
  } else {
    // Upstream keeps the nulls inside a new value if the old one was a scalar of another type. Here they are always
    // dropped.
    const kept = withoutDirectives(withoutNulls(change))
    if (kept === undefined) drop(result, key)
    else putField(result, key, kept)
  }
}

function fieldSchema(schema: SchemaNode | undefined, key: string): SchemaNode | undefined {
  const { properties, additionalProperties } = schema ?? {}
  if (properties !== undefined && Object.hasOwn(properties, key)) return properties[key]
  return typeof additionalProperties === 'object' ? additionalProperties : undefined
}

function isReplaced(field: SchemaNode | undefined): boolean {
  return field?.patchStrategy?.includes('replace') ?? false
}

function isMerged(field: SchemaNode | undefined): boolean {
  return field?.patchStrategy?.includes('merge') ?? false
}

function mergeList(original: JsonValue[], patch: JsonValue[], field: SchemaNode | undefined): JsonValue[] {
  if (original.length === 0 && patch.length === 0) return original
  if (sameKindOfItems(original, patch) !== 'object') {
    return mergeOrdered([...new Set([...original, ...patch])], patch, original, undefined)
  }
  const mergeKey = field?.patchMergeKey ?? ''
  if (mergeKey === '') throw badRequest('cannot merge lists without merge key for struct')
  const { kept, additions } = applyListDirectives(requireMaps(original), requireMaps(patch), mergeKey)
  const merged = mergeByKey(kept, additions, mergeKey, field?.items)
  return mergeOrdered(merged, additions, kept, mergeKey)
}

function applyListDirectives(
  original: JsonObject[],
  patch: JsonObject[],
  mergeKey: string,
): { kept: JsonObject[]; additions: JsonObject[] } {
  const additions: JsonObject[] = []
  let replace = false
  for (const item of patch) {
    const kind = fieldOf(item, directive)
    if (kind === undefined) additions.push(item)
    else if (kind === 'replace') replace = true
    else if (kind === 'merge') throw badRequest('merging lists cannot yet be specified in the patch')
    else if (kind !== 'delete') throw badPatchType(kind, item)
    else mergeKeyOf(item, mergeKey)
  }
  return replace ? { kept: additions, additions: [] } : { kept: deleteMarked(original, patch, mergeKey), additions }
}

function mergeByKey(
  original: JsonObject[],
  patch: JsonObject[],
  mergeKey: string,
  itemSchema: SchemaNode | undefined,
): JsonObject[] {
  const merged = [...original]
  const indexes = indexByKey(original, mergeKey)
  for (const item of patch) {
    const key = mergeKeyOf(item, mergeKey)
    const index = indexes.get(key)
    const before = index === undefined ? undefined : merged[index]
    if (index === undefined || before === undefined) {
      indexes.set(key, merged.length)
      merged.push(item)
    } else merged[index] = mergeObject(before, item, itemSchema)
  }
  return merged
}

/** Applies `$setElementOrder/F` together with the change of F itself, and removes the latter from the patch. */
function mergeWithOrder(result: JsonObject, patch: JsonObject, key: string, schema: SchemaNode | undefined): void {
  const order = patch[key] ?? null
  drop(patch, key)
  const name = fieldAfter(key, setOrderPrefix)
  const original = fieldOf(result, name)
  const change = fieldOf(patch, name)
  if (!Array.isArray(order)) throw noList(order)
  if (original !== undefined && !Array.isArray(original)) throw noList(original)
  if (change !== undefined && !Array.isArray(change)) throw noList(change)
  const field = fieldSchema(schema, name)
  const mergeKey = field?.patchMergeKey
  if (change !== undefined) checkOrder(change, order, mergeKey)
  if (original === undefined && change === undefined) return
  const merged =
    change === undefined
      ? (original ?? [])
      : original === undefined
        ? ((withoutDirectives(change) ?? []) as JsonValue[])
        : isMerged(field)
          ? mergeList(original, change, field)
          : change
  sameKindOfItems(original ?? [], change ?? [])
  const known =
    mergeKey === undefined || original === undefined || change === undefined
      ? (original ?? [])
      : orderAfterDeletions(requireMaps(original), requireMaps(change), mergeKey)
  putField(result, name, mergeOrdered(merged, order, known, mergeKey))
  drop(patch, name)
}

/**
 * The list whose order counts as the server's. Upstream deletes and appends in place, so new items take the slots of
 * deleted ones; the order of what `kubectl apply` writes depends on it.
 */
function orderAfterDeletions(original: JsonObject[], change: JsonObject[], mergeKey: string): JsonObject[] {
  const kept = deleteMarked(original, change, mergeKey)
  const indexes = indexByKey(kept, mergeKey)
  const isNew = (item: JsonObject): boolean =>
    !Object.hasOwn(item, directive) && !indexes.has(mergeKeyOf(item, mergeKey))
  return [...kept, ...change.filter(isNew).slice(0, original.length - kept.length)]
}

function noList(value: JsonValue): Error {
  return badRequest(`expected a []interface {}, but received a ${goType(value)}`)
}

/** Throws unless the items of the patch are all in `$setElementOrder`, in the same order. */
function checkOrder(change: JsonValue[], order: JsonValue[], mergeKey: string | undefined): void {
  if (change.length === 0 || order.length === 0) return
  const items = mergeKey === undefined ? change : requireMaps(change).filter((item) => !Object.hasOwn(item, directive))
  let at = 0
  for (const wanted of order) {
    const item = items[at]
    if (item === undefined) return
    if (sameItem(item, wanted, mergeKey)) at++
  }
  if (at < items.length) {
    throw badRequest(
      `The order in patch list:\n${goPrint(change)}\n doesn't match ${setOrderPrefix} list:\n${goPrint(order)}\n`,
    )
  }
}

function sameItem(item: JsonValue, wanted: JsonValue, mergeKey: string | undefined): boolean {
  if (mergeKey === undefined) return item === wanted
  const [left, right] = requireMaps([item, wanted])
  return left !== undefined && right !== undefined && mergeKeyOf(left, mergeKey) === mergeKeyOf(right, mergeKey)
}

/** The value without objects that carry `$patch`; undefined if the value is such an object. */
function withoutDirectives(value: JsonValue): JsonValue | undefined {
  if (Array.isArray(value)) return value.map(withoutDirectives).filter((item) => item !== undefined)
  if (!isJsonObject(value)) return value
  if (Object.hasOwn(value, directive)) return undefined
  const kept: JsonObject = {}
  for (const [key, item] of Object.entries(value)) {
    const keptItem = withoutDirectives(item)
    if (keptItem !== undefined) putField(kept, key, keptItem)
  }
  return kept
}

function withoutNulls(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isJsonObject(value)) return value
  const kept: JsonObject = {}
  for (const [key, item] of Object.entries(value)) if (item !== null) putField(kept, key, withoutNulls(item))
  return kept
}
