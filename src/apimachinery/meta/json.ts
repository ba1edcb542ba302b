// JSON as data: the type of every Kubernetes object after parsing.

/**
 * A bigint is an integer of 64 bits that a JavaScript number cannot hold exactly: beyond 2^53 - 1. Every other number,
 * including integers beyond 64 bits, is a double, as in Go. `parseJsonText` makes such bigints; JSON.stringify prints
 * them (below).
 */
export type JsonValue = string | number | bigint | boolean | null | JsonValue[] | JsonObject
export interface JsonObject {
  [key: string]: JsonValue
}

/** An integer of 64 bits. */
export type Int64 = number | bigint

declare global {
  interface BigInt {
    toJSON(): unknown
  }
  interface JSON {
    /** Wraps JSON text, which JSON.stringify then writes as it is. */
    rawJSON(text: string): object
    isRawJSON(value: unknown): boolean
  }
}

// JSON.stringify calls toJSON of a bigint, and throws if there is none. A replacer function gets the wrapped text: sort
// with sortedMembers.
BigInt.prototype.toJSON = function (this: bigint): unknown {
  return JSON.rawJSON(String(this))
}

const [minInt64, maxInt64] = [-(2n ** 63n), 2n ** 63n - 1n]
/** Characters of the longest integer of 64 bits. */
const maxInt64Text = 20

/**
 * The value of a decimal integer, as Go's JSON decoder reads it for Kubernetes: exact up to 64 bits, and a double
 * beyond.
 */
export function integerOfText(text: string): Int64 {
  const value = Number(text)
  if (Number.isSafeInteger(value) || text.length > maxInt64Text) return value
  const exact = BigInt(text)
  return exact < minInt64 || exact > maxInt64 ? value : exact
}

/** True for an integer that is exact: one that Go reads as int64 from the same text. */
export function isExactInteger(value: unknown): value is Int64 {
  return typeof value === 'bigint' || Number.isSafeInteger(value)
}

/** True for a JSON number. */
export function isJsonNumber(value: unknown): value is Int64 {
  return typeof value === 'number' || typeof value === 'bigint'
}

/** A replacer for JSON.stringify that sorts the keys of objects: equal data gives equal text. */
export function sortedMembers(_key: string, part: unknown): unknown {
  return isJsonObject(part) && !JSON.isRawJSON(part)
    ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
    : part
}

/** True for a JSON object (not an array, not null). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value of an own field; undefined for members of Object.prototype, such as `constructor`. */
export function fieldOf(object: Readonly<JsonObject>, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined
}

/**
 * Makes `__proto__` a key like any other in this thread, as in JSON. For programs, which call it before they read data:
 * a library must not change the objects of others.
 */
export function makeProtoAPlainKey(): void {
  Reflect.deleteProperty(Object.prototype, '__proto__')
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

/** Much faster than structuredClone, which must examine the type of each value. */
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

/** The base64 of a text in UTF-8, as the data of a Secret has it. */
export function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
