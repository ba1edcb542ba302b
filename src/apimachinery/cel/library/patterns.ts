// Regular expressions in expressions: Go's syntax, linear time, compiled once per text.
import { LRUCache } from 'lru-cache'
import { RE2JS } from 're2js'
import { type FunctionDeclaration, type Implementation, member } from '../declarations/declarations.ts'
import { intType, listOf, stringType } from '../types/cel-type.ts'
import { ArrayList } from '../values/collections.ts'
import { CelError, noSuchOverload, type Value } from '../values/value.ts'

type Compiled = RE2JS | CelError

const compiled = new LRUCache<string, Compiled>({ max: 1000 })

/** A pattern, or what is wrong with it. */
export function compileRegex(pattern: string): Compiled {
  let entry = compiled.get(pattern)
  if (entry === undefined) {
    try {
      entry = RE2JS.compile(pattern)
    } catch (error) {
      entry = new CelError(error instanceof Error ? error.message : 'error parsing regexp')
    }
    compiled.set(pattern, entry)
  }
  return entry
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
