// The type of default functions: one per Go struct, run on every value of that struct, parents before children.
import { cloneJson, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'

/** Sets unset members. `value` is decoded: empty members that Go omits are absent. Mutates `value`. */
export type DefaultFunction = (value: JsonObject) => void

/** Default functions by struct name, such as `core.v1.Container`. */
export type DefaultFunctions = Readonly<Record<string, DefaultFunction>>

/** Sets every member of `defaults` that `value` lacks. */
export function fill(value: JsonObject, defaults: Readonly<Record<string, JsonValue>>): void {
  for (const [member, wanted] of Object.entries(defaults)) {
    if ((value[member] ?? null) === null) value[member] = cloneJson(wanted)
  }
}

/** Makes a default function that calls `fill`. */
export function filling(defaults: Readonly<Record<string, JsonValue>>): DefaultFunction {
  return (value) => {
    fill(value, defaults)
  }
}

/** The object in a member; if there is none, a new empty object that is not attached to `value`. */
export function objectIn(value: JsonObject, member: string): JsonObject {
  const found = value[member]
  return typeof found === 'object' && found !== null && !Array.isArray(found) ? found : {}
}

/** The string in a member; empty if there is none. */
export function textIn(value: JsonObject, member: string): string {
  const found = value[member]
  return typeof found === 'string' ? found : ''
}

/** The objects of the list in a member; empty if there is none. */
export function objectsIn(value: JsonObject, member: string): JsonObject[] {
  const found = value[member]
  return Array.isArray(found) ? (found as JsonObject[]) : []
}
