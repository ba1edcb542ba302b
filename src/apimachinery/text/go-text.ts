// Prints values as Go does, because API messages quote values in Go's syntax and clients' tests compare them.
import { isJsonNumber, isJsonObject, type Int64, type JsonValue } from '#apimachinery/meta/index.ts'

const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/
const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u
const shortEscapes: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
}

/** Go's strconv.Quote: the text in double quotes, everything unprintable escaped. */
export function goQuote(text: string): string {
  if (plain.test(text)) return `"${text}"`
  let out = '"'
  for (const char of text.toWellFormed())
    out += shortEscapes[char] ?? (printable.test(char) ? char : numericEscape(char))
  return out + '"'
}

function numericEscape(char: string): string {
  const code = char.codePointAt(0) ?? 0
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`
}

/**
 * Go's %v of a number that came from JSON: integers of 64 bits in full, other numbers with an exponent from 1e6 and
 * below 1e-4.
 */
export function goNumber(value: Int64): string {
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) return String(value)
  const [mantissa = '', exponentText = '0'] = value.toExponential().split('e')
  const exponent = Number(exponentText)
  if (exponent >= -4 && exponent < 6) return String(value)
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`
}

/** Go's %v of a float64: with an exponent from 1e6 and below 1e-4, integers too. */
export function goFloat(number: Int64): string {
  const value = Number(number)
  if (Math.abs(value) < 1e6) return goNumber(value)
  const [mantissa = '', exponent = '0'] = value.toExponential().split('e+')
  return `${mantissa}e+${exponent.padStart(2, '0')}`
}

/** Go's json.Marshal of plain JSON data: keys sorted, `<`, `>`, `&`, U+2028 and U+2029 escaped. */
export function goJson(value: JsonValue): string {
  return JSON.stringify(sorted(value)).replace(/[<>&\u2028\u2029]/g, (char) => numericEscapeUtf16(char))
}

function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, sorted(item)]),
  )
}

function numericEscapeUtf16(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** A value as messages about fields show it: strings quoted, numbers plain, the rest as JSON. */
export function goValue(value: JsonValue): string {
  if (typeof value === 'string') return goQuote(value)
  if (isJsonNumber(value)) return goNumber(value)
  if (typeof value === 'boolean') return String(value)
  return goJson(value)
}

/** Go's %v of plain JSON data: `map[a:1 b:[x y]]`, `<nil>` for null, strings bare. */
export function goPrint(value: JsonValue): string {
  if (value === null) return '<nil>'
  if (isJsonNumber(value)) return goNumber(value)
  if (Array.isArray(value)) return `[${value.map(goPrint).join(' ')}]`
  if (!isJsonObject(value)) return String(value)
  const fields = Object.keys(value).sort()
  return `map[${fields.map((key) => `${key}:${goPrint(value[key] ?? null)}`).join(' ')}]`
}

const booleans: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map((text) => [text, false] as const),
])

/** Go's strconv.ParseBool; undefined for other texts. */
export function tryParseBool(text: string): boolean | undefined {
  return booleans.get(text)
}
