// JSON as data: the type of every Kubernetes object after parsing.

export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject
export interface JsonObject {
  [key: string]: JsonValue
}

/** True for a JSON object (not an array, not null). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value of an own field: nothing that Object.prototype has, such as `constructor`. */
export function fieldOf(object: Readonly<JsonObject>, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined
}

/** Sets a field. `__proto__` becomes a plain key, as in JSON.parse. */
export function putField(object: JsonObject, key: string, value: JsonValue): void {
  if (key !== '__proto__') object[key] = value
  else Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })
}

/**
 * Encodes a value as Go's encoding/json does where JSON.stringify differs: U+2028 and U+2029 are escaped, because
 * clients that split lines take them for line ends.
 */
export function encodeJson(value: unknown): string {
  return escapeSeparators(JSON.stringify(value))
}

/** JSON text with U+2028 and U+2029 escaped. They occur only inside of its strings. */
export function escapeSeparators(json: string): string {
  return json.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
}

/** A deep copy of plain JSON data; shared structure is not kept. */
export function cloneJson<T>(value: T): T {
  return cloned(value) as T
}

/** Much faster than structuredClone, which has to find out what a value is. */
function cloned(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const items: unknown[] = []
    for (const item of value) items.push(cloned(item))
    return items
  }
  const copy: Record<string, unknown> = {}
  const members = value as Record<string, unknown>
  for (const key in members) {
    const member = cloned(members[key])
    if (key !== '__proto__') copy[key] = member
    else Object.defineProperty(copy, key, { value: member, enumerable: true, configurable: true, writable: true })
  }
  return copy
}
