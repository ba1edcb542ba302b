// Prints objects in the form of kube-apiserver's errors: as Kubernetes' internal structs. Their members have Go names
// and another order, and are never omitted.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { readFileSync } from 'node:fs'
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'

/** Printed name, path in the API, type, flags; see scripts/generate/go-internal. */
type Row = readonly [shown: string, path: string, type: string, flags: string]

const table = parseJsonText(
  readFileSync(new URL('generated/internal-types.json', import.meta.url), 'utf8'),
) as unknown as Readonly<Record<string, readonly Row[]>>

/** An Invalid error that prints a decoded value as the internal struct of this name, such as `core.PodTemplateSpec`. */
export function invalidInternal(field: string, struct: string, value: unknown, detail: string): StatusCause {
  return {
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${internalText(struct, value)}${detail === '' ? '' : `: ${detail}`}`,
    field,
  }
}

/** The JSON of a decoded value on one line, as Go writes it. A list is printed as a list of such structs. */
export function internalText(struct: string, value: unknown): string {
  return escapeHtml(JSON.stringify(internalForm(struct, value)))
}

/** Escapes characters that are special in HTML, as Go's JSON encoder does. */
export function escapeHtml(json: string): string {
  return json.replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** A decoded value as the internal struct of this name; null if there is no value. */
export function internalForm(struct: string, value: unknown): JsonValue {
  if (Array.isArray(value)) return value.map((item) => formOf(struct, item as JsonValue, {}))
  return isJsonObject(value) ? formOf(struct, value, {}) : null
}

function formOf(struct: string, value: JsonValue | undefined, parent: JsonObject): JsonObject {
  const rows = table[struct]
  if (rows === undefined) throw new Error(`no internal struct "${struct}" in the table`)
  const own = isJsonObject(value) ? value : {}
  const form: JsonObject = {}
  for (const [shown, path, type, flags] of rows) {
    const member = path.startsWith('^') ? parent[path.slice(1)] : memberAt(own, path)
    const absent = member === undefined || member === null
    if (!(absent && flags.includes('o'))) form[shown] = shownMember(type, flags, member, own)
  }
  return form
}

function memberAt(value: JsonObject, path: string): JsonValue | undefined {
  const dot = path.indexOf('.')
  if (dot < 0) return value[path]
  const inner = value[path.slice(0, dot)]
  return isJsonObject(inner) ? memberAt(inner, path.slice(dot + 1)) : undefined
}

function shownMember(type: string, flags: string, value: JsonValue | undefined, parent: JsonObject): JsonValue {
  const one = (item: JsonValue | undefined): JsonValue =>
    type.startsWith('@') ? formOf(type.slice(1), item, parent) : (item ?? zeros[type] ?? null)
  if (Array.isArray(value)) return value.map(one)
  if (flags.includes('m') && isJsonObject(value))
    return Object.fromEntries(
      Object.keys(value)
        .sort()
        .map((key) => [key, one(value[key])]),
    )
  if (value === undefined || value === null) return /[prm]/.test(flags) ? null : one(undefined)
  return one(value)
}

const zeros: Readonly<Record<string, JsonValue>> = { s: '', n: 0, b: false, Q: '0', I: 0 }
