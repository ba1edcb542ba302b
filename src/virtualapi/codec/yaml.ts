// Parses YAML bodies to JSON values, with bounds against documents that grow when aliases are expanded.
import { isScalar, Lexer, LineCounter, parseDocument, visit, type Document, type Tags } from 'yaml'
import { goQuote } from '../../apimachinery/text/index.ts'
import { defaultMaxJsonValues, parseJson, tooManyValues } from '../../apimachinery/json/index.ts'
import { isJsonObject, type JsonValue, integerOfText } from '../../apimachinery/meta/index.ts'
import { badRequest, isStatusError, requestEntityTooLarge } from '../../apimachinery/status/index.ts'

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

/** Bound on the expansion of aliases. */
const maxAliasCount = 100
/** Maximum number of values after aliases are expanded, as for JSON. */
const maxValues = defaultMaxJsonValues
/** Maximum number of values in a body that is YAML and not JSON: parsing it takes ten times as long, and no client sends large ones. */
const maxYamlValues = 30_000
/** Maximum number of tokens in such a body. An ordinary value takes four or five; two million quotes make a million. */
const maxTokens = 200_000
const maxDuplicates = 100

/**
 * YAML as the Go library of kube-apiserver reads it: version 1.1 (`yes` and `on` are booleans, `0777` is octal), but without
 * sexagesimal numbers and timestamps.
 */
const goYaml = {
  version: '1.1',
  merge: true,
  customTags: (tags: Tags) =>
    tags.filter((tag) => typeof tag === 'string' || !(isForeign(tag.tag) || tag.format === 'TIME')),
} as const

function isForeign(tag: string): boolean {
  return /:(timestamp|binary|omap|pairs|set)$/.test(tag)
}

/**
 * Parses the first document of a YAML body. Throws RequestEntityTooLarge above `maxBytes`, `maxYamlValues` or `maxTokens`, and
 * BadRequest for invalid YAML, values that JSON does not have, and documents that nest or grow too much.
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
    document = parseDocument(text, {
      uniqueKeys: false,
      lineCounter,
      prettyErrors: false,
      intAsBigInt: true,
      ...goYaml,
    })
  } catch (cause) {
    throw badRequest('error converting YAML to JSON: the document cannot be read', cause)
  }
  // As upstream, further documents are ignored.
  const [error] = document.errors.filter(({ code }) => code !== 'MULTIPLE_DOCS')
  if (error !== undefined) {
    const { line } = lineCounter.linePos(error.pos[0])
    throw badRequest(`error converting YAML to JSON: yaml: line ${String(line)}: ${error.message}`)
  }
  const duplicateFields = duplicatesOf(document, lineCounter)
  if (mayOverflow.test(text)) keepTextOfInfinite(document)
  let value: unknown
  try {
    value = document.toJS({ maxAliasCount })
  } catch (cause) {
    throw badRequest('error converting YAML to JSON: yaml: document contains excessive aliasing', cause)
  }
  return { value: asJson(value, maxDepth), duplicateFields }
}

/** Parses the body as JSON, which is faster: most YAML bodies are JSON. Undefined if it is not, or has duplicate fields. */
function tryJson(bytes: Uint8Array, text: string, limits: Required<YamlLimits>): JsonValue | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    const { value, duplicateFields, infinite, oddNumbers } = parseJson(bytes, limits)
    if (duplicateFields.length > 0 || infinite !== undefined) return undefined
    return oddNumbers ? asJson(value, limits.maxDepth) : value
  } catch (error) {
    if (isStatusError(error, 'RequestEntityTooLarge')) throw error
    return undefined
  }
}

/** Upper bound on the values: one begins on each line, after each comma, and after each colon with a space. */
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

/** Throws 400 for too deep nesting before the parser runs, which is recursive: each byte of `[[[` nests once. */
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

/** Digits or an exponent of a number that may be too large for a double. */
const mayOverflow = /\d[eE]\+?\d{3}|\d{309}/

/** A number that is too large for a double is a string to Go. */
function keepTextOfInfinite(document: Document.Parsed): void {
  visit(document, {
    Scalar(_, scalar) {
      if (typeof scalar.value !== 'number' || Number.isFinite(scalar.value)) return
      if (scalar.source !== undefined && /\d/.test(scalar.source)) scalar.value = scalar.source
    },
  })
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

/** The decoded value as JSON; aliases become copies, so that no object is shared. */
function asJson(value: unknown, maxDepth: number): JsonValue {
  let count = 0
  const copy = (from: unknown, depth: number): JsonValue => {
    if (depth > maxDepth) throw tooDeep(maxDepth)
    if (++count > maxValues)
      throw badRequest('error converting YAML to JSON: yaml: document contains excessive aliasing')
    if (from === null || from === undefined) return null
    if (typeof from === 'string' || typeof from === 'boolean') return from
    if (typeof from === 'bigint') return integerOfText(String(from))
    if (typeof from === 'number') {
      // Go converts the document to JSON, where a whole float is written as an integer.
      if (Number.isInteger(from) && Math.abs(from) < 1e21) return integerOfText(String(from))
      if (Number.isFinite(from)) return from
      throw badRequest(
        `error converting YAML to JSON: json: unsupported value: ${String(from).replace(/^(-?)Infinity$/, (_, sign) => `${sign === '-' ? '-' : '+'}Inf`)}`,
      )
    }
    if (Array.isArray(from)) return from.map((item) => copy(item, depth + 1))
    if (!isJsonObject(from)) throw badRequest(`error converting YAML to JSON: unsupported value of type ${typeof from}`)
    return Object.fromEntries(Object.entries(from).map(([key, item]) => [key, copy(item, depth + 1)]))
  }
  return copy(value, 0)
}
