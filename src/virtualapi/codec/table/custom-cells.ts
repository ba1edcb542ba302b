// Cells of custom resources: the value that the JSONPath of a printer column finds, in the column's type.
import { remember } from '#apimachinery/memo/index.ts'
import { encodeJson, isJsonObject, type JsonObject, type JsonValue, isJsonNumber } from '#apimachinery/meta/index.ts'
import type { PrinterColumn } from '#virtualapi/kinds/resources/resource-definition.ts'
import { timeSince } from './cells/human-duration.ts'
import { tryJsonPath, type Budget, type JsonPath } from './json-path.ts'

/** A cache of parsed paths, because the same few columns are printed for every row. */
const parsed = new Map<string, JsonPath | undefined>()
const maxParsed = 10_000

/** The most values that the paths of one row may visit together, since a tenant may define thousands of columns. */
export const visitsOfRow = 10_000

/**
 * The cell of one column; null if the path finds nothing or a value of another type, or if the budget `row` is spent.
 */
export function customCell(
  { jsonPath, type }: PrinterColumn,
  object: JsonObject,
  nowMs: number,
  row?: Budget,
): JsonValue {
  if (row !== undefined && row.left <= 0) return null
  const value = pathOf(jsonPath)?.(object, row)[0]
  if (value === undefined) return null
  // This is how kube-apiserver prints an explicit null.
  if (value === null) return type === 'string' ? '<no value>' : null
  switch (type) {
    case 'string':
      return typeof value === 'object' ? goJson(value) : String(value)
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : typeof value === 'bigint' ? value : null
    case 'number':
      // Go decodes a number as a float64.
      return isJsonNumber(value) ? Number(value) : null
    case 'boolean':
      return typeof value === 'boolean' ? value : null
    case 'date':
      if (typeof value !== 'string') return null
      return Number.isNaN(Date.parse(value)) ? '<invalid>' : timeSince(value, nowMs)
    default:
      return null
  }
}

/** JSON as Go's encoder writes it: keys sorted, `<`, `>` and `&` escaped. */
function goJson(value: JsonValue): string {
  const escapes: Readonly<Record<string, string>> = { '<': '\\u003c', '>': '\\u003e', '&': '\\u0026' }
  return encodeJson(sorted(value)).replace(/[<>&]/g, (character) => escapes[character] ?? character)
}

function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isJsonObject(value)) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, child]) => [key, sorted(child)]))
}

function pathOf(text: string): JsonPath | undefined {
  if (parsed.has(text)) return parsed.get(text)
  return remember(parsed, text, tryJsonPath(text), { max: maxParsed })
}
