// Regular expressions in expressions: Go's syntax, linear time, compiled once per text.
import type { RE2JS } from 're2js'
import { compilePattern } from '#apimachinery/schema/index.ts'
import { type FunctionDeclaration, type Implementation, member } from '#apimachinery/cel/declarations/declarations.ts'
import { intType, listOf, stringType } from '#apimachinery/cel/types/cel-type.ts'
import { ArrayList } from '#apimachinery/cel/values/collections.ts'
import { CelError, noSuchOverload, type Value } from '#apimachinery/cel/values/value.ts'

type Compiled = RE2JS | CelError

/** A pattern, or what is wrong with it: tenants write them, so the same bounds hold as for those of schemas. */
export function compileRegex(pattern: string): Compiled {
  const compiled = compilePattern(pattern)
  return 'error' in compiled ? new CelError(compiled.error) : compiled.regex
}

/** `text.matches(pattern)`: true where the pattern is found anywhere. */
export function matchesPattern(text?: Value, pattern?: Value): Value {
  if (typeof text !== 'string' || typeof pattern !== 'string') return noSuchOverload
  const regex = compileRegex(pattern)
  return regex instanceof CelError ? regex : regex.matcher(text).find()
}

function find(regex: RE2JS, text: string): string {
  const matcher = regex.matcher(text)
  return matcher.find() ? (matcher.group() ?? '') : ''
}

// At most `limit` matches, all where it is negative.
function findAll(regex: RE2JS, text: string, limit: number): Value {
  const found: string[] = []
  const matcher = regex.matcher(text)
  while ((limit < 0 || found.length < limit) && matcher.find()) found.push(matcher.group() ?? '')
  return new ArrayList(found)
}

type Search = (regex: RE2JS, text: string, limit: Value | undefined) => Value

const searches: Readonly<Record<string, Search>> = {
  matches: (regex, text) => regex.matcher(text).find(),
  find: (regex, text) => find(regex, text),
  findAll: (regex, text, limit) => findAll(regex, text, limit === undefined ? -1 : Number(limit)),
}

const illegal = (regex: CelError): CelError => new CelError(`Illegal regex: ${regex.message}`)

function search(name: string) {
  return (text?: Value, pattern?: Value, limit?: Value): Value => {
    if (typeof text !== 'string' || typeof pattern !== 'string') return noSuchOverload
    const regex = compileRegex(pattern)
    return regex instanceof CelError ? illegal(regex) : (searches[name]?.(regex, text, limit) ?? null)
  }
}

/** The implementation of a search whose pattern is constant; what is wrong with it; undefined for other functions. */
export function withConstantPattern(name: string, pattern: string): Implementation | CelError | undefined {
  const run = Object.hasOwn(searches, name) ? searches[name] : undefined
  if (run === undefined) return undefined
  const regex = compileRegex(pattern)
  if (regex instanceof CelError) return regex
  return (text, _pattern, limit) => (typeof text === 'string' ? run(regex, text, limit) : noSuchOverload)
}

/** find() and findAll() of Kubernetes. */
export const regexFunctions: readonly FunctionDeclaration[] = [
  {
    name: 'find',
    overloads: [member('string_find_string', [stringType, stringType], stringType, search('find'))],
  },
  {
    name: 'findAll',
    overloads: [
      member('string_find_all_string', [stringType, stringType], listOf(stringType), search('findAll')),
      member('string_find_all_string_int', [stringType, stringType, intType], listOf(stringType), search('findAll')),
    ],
  },
]
