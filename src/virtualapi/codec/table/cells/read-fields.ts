// Reads fields of an object of unverified shape: an absent value and a value of another type count as empty.
import { isJsonObject, type JsonObject, type JsonValue, isJsonNumber } from '#apimachinery/meta/index.ts'

const nothing: JsonObject = {}

/** The value at a path of member names; undefined if there is none. */
export function valueAt(object: JsonObject, ...path: string[]): JsonValue | undefined {
  let value: JsonValue | undefined = object
  for (const name of path) {
    if (!isJsonObject(value) || !Object.hasOwn(value, name)) return undefined
    value = value[name]
  }
  return value ?? undefined
}

export function textAt(object: JsonObject, ...path: string[]): string {
  const value = valueAt(object, ...path)
  return typeof value === 'string' ? value : ''
}

export function numberAt(object: JsonObject, ...path: string[]): number {
  const value = valueAt(object, ...path)
  return typeof value === 'number' ? value : 0
}

export function objectAt(object: JsonObject, ...path: string[]): JsonObject {
  const value = valueAt(object, ...path)
  return isJsonObject(value) ? value : nothing
}

/** The objects in a list; empty if there is no list. */
export function objectsAt(object: JsonObject, ...path: string[]): JsonObject[] {
  const value = valueAt(object, ...path)
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

/** The strings in a list; empty if there is no list. */
export function textsAt(object: JsonObject, ...path: string[]): string[] {
  const value = valueAt(object, ...path)
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}

/** The condition of this type in a list of conditions; undefined if there is none. */
export function conditionAt(object: JsonObject, type: string, ...path: string[]): JsonObject | undefined {
  return objectsAt(object, ...path).find((condition) => condition['type'] === type)
}

/** A number or string as text; `otherwise` for anything else. */
export function scalarText(value: JsonValue | undefined, otherwise: string): string {
  return typeof value === 'string' || isJsonNumber(value) ? String(value) : otherwise
}
