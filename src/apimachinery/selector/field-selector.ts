// Field selectors: `metadata.name=web,status.phase!=Running`. Each resource defines which fields it supports.
import { badRequest } from '#apimachinery/status/index.ts'

export interface FieldRequirement {
  readonly field: string
  readonly operator: '=' | '!='
  readonly value: string
}

/** Reads a field of an object as text; undefined counts as empty. */
export type FieldGetter = (field: string) => string | undefined

/** A compiled selector. Immutable; may be shared. */
export interface FieldSelector {
  readonly requirements: readonly FieldRequirement[]
  /** True if it matches every object. */
  readonly matchesEverything: boolean
  matches(get: FieldGetter): boolean
  /** The value that the selector requires of this field, if any: a list restricted to one name is a get. */
  exactly(field: string): string | undefined
  /** The text form, which parses to the same selector. */
  toString(): string
}

/** The selector with these requirements. */
export function fieldSelectorOf(requirements: readonly FieldRequirement[]): FieldSelector {
  return {
    requirements,
    matchesEverything: requirements.length === 0,
    matches(get) {
      for (const { field, operator, value } of requirements) {
        if (((get(field) ?? '') === value) !== (operator === '=')) return false
      }
      return true
    },
    exactly: (name) => requirements.find(({ field, operator }) => operator === '=' && field === name)?.value,
    toString: () =>
      requirements.map(({ field, operator, value }) => `${field}${operator}${escapeFieldValue(value)}`).join(','),
  }
}

/** Parses the fieldSelector parameter of a request. Empty text matches everything. Throws BadRequest. */
export function parseFieldSelector(text: string): FieldSelector {
  const terms = splitTerms(text).sort()
  return fieldSelectorOf(terms.filter((term) => term !== '').map((term) => parseTerm(term, text)))
}

/**
 * Refuses a selector on a field that the resource does not support, as a real server does for custom resources and for
 * built-in kinds with fields of their own. Throws BadRequest.
 */
export function requireSupportedFields({ requirements }: FieldSelector, supported: ReadonlySet<string>): void {
  for (const { field } of requirements) {
    if (!supported.has(field)) throw badRequest(`field label not supported: ${field}`)
  }
}

/** Refuses a selector on a field of a built-in kind that supports only metadata.name and metadata.namespace. */
export function requireMetadataFields({ requirements }: FieldSelector): void {
  for (const { field } of requirements) {
    if (field === 'metadata.name' || field === 'metadata.namespace') continue
    throw badRequest(`"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`)
  }
}

/** The value as it is written inside a field selector: `\`, `,` and `=` escaped. */
export function escapeFieldValue(value: string): string {
  return value.replace(/[\\,=]/g, '\\$&')
}

function splitTerms(text: string): string[] {
  if (text === '') return []
  const terms: string[] = []
  let start = 0
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === ',') {
      terms.push(text.slice(start, i))
      start = i + 1
    }
  }
  terms.push(text.slice(start))
  return terms
}

function parseTerm(term: string, selector: string): FieldRequirement {
  const match = /!=|==|=/.exec(term)
  if (match === null) throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`)
  const value = unescape(term.slice(match.index + match[0].length))
  return { field: term.slice(0, match.index), operator: match[0] === '!=' ? '!=' : '=', value }
}

function unescape(text: string): string {
  if (!/[\\,=]/.test(text)) return text
  let out = ''
  const chars = Array.from(text)
  for (let i = 0; i < chars.length; i++) {
    const char = chars[i] ?? ''
    if (char === '\\') {
      const next = chars[++i] ?? ''
      if (next !== '\\' && next !== ',' && next !== '=') {
        throw badRequest(`invalid field selector: invalid escape sequence: \\${next}`)
      }
      out += next
    } else if (char === ',' || char === '=') {
      throw badRequest(`invalid field selector: unescaped character in value: ${String(char.codePointAt(0) ?? 0)}`)
    } else out += char
  }
  return out
}
