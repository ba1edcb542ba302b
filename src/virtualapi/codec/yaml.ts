// Parses YAML bodies to JSON values, with bounds against documents that grow when aliases are expanded.
import { isScalar, Lexer, LineCounter, parseDocument, visit, type Document } from 'yaml'
import { goQuote } from '#apimachinery/text/index.ts'
import { defaultMaxJsonValues, parseJson, tooManyValues } from '#apimachinery/json/index.ts'
import type { JsonValue } from '#apimachinery/meta/index.ts'
import { badRequest, isStatusError, requestEntityTooLarge } from '#apimachinery/status/index.ts'
import { jsonOfFloat } from './yaml-scalars.ts'
import { valueOfDocument } from './yaml-values.ts'

export interface ParsedYaml {
  value: JsonValue
  /** Messages such as `line 3: key "image" already set in map`, at most 100; the last value wins. */
  duplicateFields: string[]
}

export interface YamlLimits {
  /** Maximum nesting. */
  maxDepth?: number
  /** Maximum size of the body, bytes. */
  maxBytes?: number
}

/** A character that is not printable by the YAML specification. */
const notYaml = /[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u

/** Maximum number of values after aliases are expanded, as for JSON. */
const maxValues = defaultMaxJsonValues
/**
 * Maximum number of values in a body that is YAML and not JSON: parsing YAML takes ten times as long, and no client
 * sends large YAML bodies.
 */
const maxYamlValues = 30_000
/**
 * Maximum number of tokens in such a body. An ordinary value has four or five tokens; two million quotes have a
 * million.
 */
const maxTokens = 200_000
const maxDuplicates = 100

/** Options for which scalars stay texts. yaml-scalars.ts resolves them as Go does. */
const unresolved = { version: '1.1', schema: 'failsafe', merge: false } as const

/**
 * Parses the first document of a YAML body. Throws RequestEntityTooLarge above `maxBytes`, `maxYamlValues` or
 * `maxTokens`, and BadRequest for invalid YAML, values that JSON does not have, and documents that nest or grow too
 * much.
 */
export function parseYamlBody(
  bytes: Uint8Array,
  { maxDepth = 1000, maxBytes = 3 * 1024 * 1024 }: YamlLimits = {},
): ParsedYaml {
  if (bytes.length > maxBytes) throw requestEntityTooLarge(`Request entity too large: limit is ${String(maxBytes)}`)
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
  const json = tryJson(bytes, text, { maxDepth, maxBytes })
  if (json !== undefined) return { value: json, duplicateFields: [] }
  if (notYaml.test(text)) throw badRequest('error converting YAML to JSON: yaml: control characters are not allowed')
  refuseDeep(text, maxDepth)
  if (atMostValues(text) > maxYamlValues) throw tooManyValues(maxYamlValues)
  refuseManyTokens(text)
  const lineCounter = new LineCounter()
  let document: Document.Parsed
  try {
    document = parseDocument(text, { uniqueKeys: false, lineCounter, prettyErrors: false, ...unresolved })
  } catch (cause) {
    throw badRequest('error converting YAML to JSON: the document cannot be read', cause)
  }
  // As upstream, further documents are ignored.
  const [error] = document.errors.filter(({ code }) => code !== 'MULTIPLE_DOCS')
  if (error !== undefined) {
    const { line } = lineCounter.linePos(error.pos[0])
    throw badRequest(`error converting YAML to JSON: yaml: line ${String(line)}: ${error.message}`)
  }
  const { yaml } = document.directives
  if (yaml.explicit === true && yaml.version !== '1.1')
    throw badRequest('error converting YAML to JSON: yaml: found incompatible YAML document')
  const duplicateFields = duplicatesOf(document, lineCounter)
  let value: JsonValue
  try {
    value = valueOfDocument(document, { maxValues, maxText: maxBytes })
  } catch (cause) {
    throw badRequest(`error converting YAML to JSON: ${(cause as Error).message}`, cause)
  }
  refuseDeepValue(value, maxDepth)
  return { value, duplicateFields }
}

/**
 * Parses the body as JSON, which is faster, because most YAML bodies are JSON. Returns undefined if the body is not
 * JSON or has duplicate fields.
 */
function tryJson(bytes: Uint8Array, text: string, limits: Required<YamlLimits>): JsonValue | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    const { value, duplicateFields, infinite, oddNumbers } = parseJson(bytes, limits)
    if (duplicateFields.length > 0 || infinite !== undefined) return undefined
    return oddNumbers ? withNumbersOfYaml(value) : value
  } catch (error) {
    if (isStatusError(error, 'RequestEntityTooLarge')) throw error
    return undefined
  }
}

/** The document with its numbers as the YAML reader would read them. */
function withNumbersOfYaml(value: JsonValue): JsonValue {
  if (typeof value === 'number') return jsonOfFloat(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(withNumbersOfYaml)
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withNumbersOfYaml(one)]))
}

/**
 * An upper bound of the number of values: a value begins on each line, after each comma, and after each colon with a
 * space.
 */
function atMostValues(text: string): number {
  let count = 1
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i)
    if (char === 10 || char === 44 || (char === 58 && text.charCodeAt(i + 1) === 32)) count++
  }
  return count
}

/** Throws 413 for too many tokens. The lexer takes a tenth of the parser's time. */
function refuseManyTokens(text: string): void {
  if (text.length <= maxTokens) return
  let count = 0
  for (const _token of new Lexer().lex(text))
    if (++count > maxTokens)
      throw requestEntityTooLarge(`Request entity too large: limit is ${maxTokens} tokens of YAML`)
}

/**
 * Throws 400 for too many levels before the parser runs, because the parser is recursive: each byte of `[[[` is one
 * level.
 */
function refuseDeep(text: string, maxDepth: number): void {
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i)
    if (char === 91 || char === 123) {
      if (++depth > maxDepth) throw tooDeep(maxDepth)
    } else if (char === 93 || char === 125) depth = Math.max(0, depth - 1)
  }
  // Block collections nest by indentation, or by `- - -` on one line.
  for (const match of text.matchAll(/(?:[-?:][ \t]+){2,}/g)) {
    if (match[0].length / 2 > maxDepth) throw tooDeep(maxDepth)
  }
  for (const match of text.matchAll(/^ +/gm)) if (match[0].length > maxDepth) throw tooDeep(maxDepth)
}

function tooDeep(maxDepth: number): Error {
  return badRequest(
    `error converting YAML to JSON: exceeded max depth: the document has more than ${String(maxDepth)} levels`,
  )
}

function duplicatesOf(document: Document.Parsed, lines: LineCounter): string[] {
  const duplicates: string[] = []
  visit(document, {
    Map(_, map) {
      const seen = new Set<string>()
      for (const { key } of map.items) {
        if (!isScalar(key)) continue
        const name = String(key.value)
        if (seen.has(name) && name !== '<<' && duplicates.length < maxDuplicates) {
          const { line } = lines.linePos(key.range?.[0] ?? 0)
          duplicates.push(`line ${String(line)}: key ${goQuote(name)} already set in map`)
        }
        seen.add(name)
      }
    },
  })
  return duplicates
}

/** Throws 400 for values that nest too deep once aliases are expanded. */
function refuseDeepValue(value: JsonValue, levels: number): void {
  if (levels < 0) throw tooDeep(levels)
  if (typeof value !== 'object' || value === null) return
  for (const item of Array.isArray(value) ? value : Object.values(value)) refuseDeepValue(item, levels - 1)
}
