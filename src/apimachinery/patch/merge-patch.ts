// JSON merge patch (RFC 7386), with the error messages of the library that kube-apiserver uses. Arguments are never
// changed.
import { NumberLiteral } from '#apimachinery/json/index.ts'
import { fieldOf, isJsonObject, putField, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { badRequest } from '#apimachinery/status/index.ts'
import { undecodablePatch } from './patch-error.ts'

/**
 * Returns the patched document: null deletes a field, objects merge, everything else replaces. It shares unchanged
 * parts with the arguments. Throws BadRequest if the patch is not an object.
 */
export function applyMergePatch(document: JsonObject, patch: JsonValue): JsonObject {
  if (patch === null) throw badRequest('Invalid JSON Patch')
  if (!isJsonObject(patch)) throw undecodablePatch(patch, 'map[string]interface {}')
  return mergeObjects(document, patch)
}

function mergeObjects(current: JsonObject, patch: JsonObject): JsonObject {
  const merged = { ...current }
  for (const key of Object.keys(patch)) {
    const change = patch[key] ?? null
    if (change === null) {
      // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- a JSON object of ours, just copied
      delete merged[key]
      continue
    }
    const before = fieldOf(current, key) ?? null
    if (!isJsonObject(before)) putField(merged, key, withoutNulls(change))
    else putField(merged, key, isMergeable(change) ? mergeObjects(before, change) : change)
  }
  return merged
}

function isMergeable(value: JsonValue): value is JsonObject {
  return isJsonObject(value) && !(value instanceof NumberLiteral)
}

/** New values are stored without the nulls of their objects; nulls that are list items stay. */
function withoutNulls(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isMergeable(value)) return value
  const kept: JsonObject = {}
  for (const [key, item] of Object.entries(value)) if (item !== null) putField(kept, key, withoutNulls(item))
  return kept
}
