// The strict reader of JSON bodies. JSON.parse does the work; one pass over the bytes before it bounds the depth and
// counts members, and only a body that has fewer members after parsing than before is read again, to name the duplicate
// fields.
import { goQuote } from '#apimachinery/text/index.ts'
import type { JsonValue } from '#apimachinery/meta/index.ts'
import { badRequest, requestEntityTooLarge } from '#apimachinery/status/index.ts'
import { parseJsonText } from './parse-text.ts'
import { scanJson } from './scan-json.ts'

/**
 * Maximum depth of a document. Go allows 10,000, but our walkers and V8's JSON.stringify recurse, and no object of
 * Kubernetes has a hundred levels.
 */
export const defaultMaxJsonDepth = 1000
/**
 * Maximum number of values in a document, arrays and objects included. A real server bounds only bytes (1.5 MiB at
 * rest), but here each value costs about a microsecond of the shared thread; the largest known CRDs have some 30,000.
 */
export const defaultMaxJsonValues = 100_000
/** Maximum size of a body, as in kube-apiserver. */
export const defaultMaxJsonBytes = 3 * 1024 * 1024

export interface ParsedJson {
  value: JsonValue
  /** Warnings such as `duplicate field "spec.containers[0].name"`; the last occurrence of a field wins. At most 100. */
  duplicateFields: string[]
  /** True if some number is not written as a plain integer of at most 15 digits. */
  oddNumbers: boolean
  /** The text of the first number that is too large for a double, which Go refuses. */
  infinite?: string
}

export interface JsonLimits {
  maxDepth?: number
  maxBytes?: number
  maxValues?: number
}

const [quote, backslash, colon, comma, openBracket, closeBracket, openBrace, closeBrace] = [
  34, 92, 58, 44, 91, 93, 123, 125,
]
const [dot, largeE, smallE] = [46, 69, 101]

/**
 * Parses a JSON document. Invalid UTF-8 becomes U+FFFD, as in Go. Throws RequestEntityTooLarge above `maxBytes` or
 * `maxValues`, and BadRequest above `maxDepth` or for a syntax error, with Go's message.
 */
export function parseJson(
  bytes: Uint8Array,
  { maxDepth = defaultMaxJsonDepth, maxBytes = defaultMaxJsonBytes, maxValues = defaultMaxJsonValues }: JsonLimits = {},
): ParsedJson {
  if (bytes.length > maxBytes) {
    throw requestEntityTooLarge(`Request entity too large: limit is ${String(maxBytes)}`)
  }
  const { members, values, depth, oddNumbers } = surveyJson(bytes, maxDepth)
  if (depth > maxDepth) throw badRequest(`exceeded max depth: the document has more than ${String(maxDepth)} levels`)
  if (values > maxValues) throw tooManyValues(maxValues)
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
  let value: JsonValue
  try {
    value = parseJsonText(text)
  } catch (cause) {
    throw badRequest(scanJson(text).error ?? 'invalid JSON', cause)
  }
  const duplicateFields =
    countMembers(value) === members ? [] : scanJson(text).duplicates.map((path) => `duplicate field ${goQuote(path)}`)
  const infinite = oddNumbers ? infiniteNumber(text) : undefined
  return { value, duplicateFields, oddNumbers, ...(infinite === undefined ? {} : { infinite }) }
}

function infiniteNumber(text: string): string | undefined {
  // Most documents with a fraction or an exponent have no number as large as this.
  if (!/\d[eE]\+?\d{3}|\d{309}/.test(text)) return undefined
  for (const [literal] of text.matchAll(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g))
    if (!literal.startsWith('"') && !Number.isFinite(Number(literal))) return literal
  return undefined
}

/** The error for a body with too many values. */
export function tooManyValues(maxValues: number): Error {
  return requestEntityTooLarge(`Request entity too large: limit is ${String(maxValues)} values`)
}

export interface Survey {
  readonly members: number
  /** An upper bound: at least the real number, at most twice that. */
  readonly values: number
  /** Objects and lists. */
  readonly opened: number
  readonly depth: number
  readonly oddNumbers: boolean
}

/** Counts members and depth without parsing the document; stops early when it is too deep. */
export function surveyJson(bytes: Uint8Array, maxDepth = defaultMaxJsonDepth): Survey {
  let [members, commas, opened, depth, deepest, digits] = [0, 0, 0, 0, 0, 0]
  let oddNumbers = false
  const end = bytes.length
  for (let i = 0; i < end; i++) {
    const byte = bytes[i] ?? 0
    if (byte === quote) {
      i = bytes.indexOf(quote, i + 1)
      while (i > 0 && bytes[i - 1] === backslash && isEscaped(bytes, i)) i = bytes.indexOf(quote, i + 1)
      if (i < 0) break
    } else if (byte === colon) members++
    else if (byte === comma) commas++
    else if (byte === openBrace || byte === openBracket) {
      opened++
      if (++depth > deepest) deepest = depth
      if (deepest > maxDepth) break
    } else if (byte === closeBrace || byte === closeBracket) depth--
    else if (byte >= 48 && byte <= 57) {
      if (++digits > 15) oddNumbers = true
      continue
    } else if (byte === dot || (digits > 0 && (byte === smallE || byte === largeE))) oddNumbers = true
    digits = 0
  }
  // A colon or a comma precedes every value except the first of an array.
  return { members, values: Math.max(members, commas) + opened, opened, depth: deepest, oddNumbers }
}

function isEscaped(bytes: Uint8Array, quoteAt: number): boolean {
  let at = quoteAt - 1
  while (at >= 0 && bytes[at] === backslash) at--
  return (quoteAt - at) % 2 === 0
}

function countMembers(value: JsonValue): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object') count += countMembers(item)
    return count
  }
  for (const key in value) {
    count++
    const item = value[key]
    if (typeof item === 'object') count += countMembers(item)
  }
  return count
}
