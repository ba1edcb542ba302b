// JSON as data: what every Kubernetes object is made of once a parser has spoken.

export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject
export interface JsonObject {
  [key: string]: JsonValue
}

/** True for a JSON object (not an array, not null). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Encodes a value the way Go's encoding/json does where JSON.stringify differs: U+2028 and U+2029 are escaped,
 * because line-splitting clients take them for line ends.
 */
export function encodeJson(value: unknown): string {
  return JSON.stringify(value).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
}

/** A deep copy of plain JSON data; shared structure is not kept. */
export function cloneJson<T>(value: T): T {
  return structuredClone(value)
}
