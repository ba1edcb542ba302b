// The subset of kubectl's JSONPath that printer columns and scale paths use: members, indexes, slices, wildcards,
// filters.
import { isJsonObject, type JsonValue, integerOfText, isJsonNumber, type Int64 } from '#apimachinery/meta/index.ts'

/** Finds values in JSON, in document order; `row` is a budget that several paths over one object share. */
export type JsonPath = (root: JsonValue, row?: Budget) => JsonValue[]

/** The number of values that a path may still visit. With several filters a path could visit each value many times. */
export interface Budget {
  left: number
}
/** The most characters of a path. Longer paths are invalid. */
const maxLength = 4096
const maxVisits = 20_000
/** Maximum nesting of filters. */
const maxFilters = 10

type Step = (value: JsonValue, budget: Budget) => JsonValue[]

/**
 * Parses a path such as `.spec.items[0].name` or `.conditions[?(@.type=="Ready")].status`; undefined if it is invalid.
 */
export function tryJsonPath(text: string): JsonPath | undefined {
  if (text.length > maxLength) return undefined
  const source = text.startsWith('{') && text.endsWith('}') ? text.slice(1, -1) : text
  const steps = parseSteps(source.startsWith('$') ? source.slice(1) : source)
  if (steps === undefined) return undefined
  return (root, row = { left: maxVisits }) => {
    const before = Math.min(maxVisits, row.left)
    const budget = { left: before }
    const found = run(steps, root, budget)
    row.left -= before - Math.max(0, budget.left)
    return found
  }
}

function run(steps: readonly Step[], root: JsonValue, budget: Budget): JsonValue[] {
  return steps.reduce<JsonValue[]>((values, step) => values.flatMap((value) => visit(value, step, budget)), [root])
}

/** Applies a step; finds nothing once the budget is spent. */
function visit(value: JsonValue, step: Step, budget: Budget): JsonValue[] {
  if (--budget.left < 0) return []
  return step(value, budget)
}

function parseSteps(source: string, depth = 0): Step[] | undefined {
  if (depth > maxFilters) return undefined
  const steps: Step[] = []
  let rest = source
  while (rest !== '') {
    const next = parseStep(rest, depth)
    if (next === undefined) return undefined
    if (next.step !== undefined) steps.push(next.step)
    rest = rest.slice(next.length)
  }
  return steps
}

interface Parsed {
  readonly step: Step | undefined
  readonly length: number
}

function parseStep(text: string, depth: number): Parsed | undefined {
  if (text.startsWith('[')) return parseBracket(text, depth)
  if (text.startsWith('..')) {
    const name = /^\.\.((?:\\.|[^.[\\])+)/.exec(text)
    if (name?.[1] === undefined) return undefined
    const key = unescaped(name[1])
    return { step: (value, budget) => descendants(value, key, 0, budget), length: name[0].length }
  }
  if (text.startsWith('.*')) return { step: children, length: 2 }
  // A lone dot, as in `.` or `.['x']`, selects the value itself.
  const match = /^\.?((?:\\.|[^.[\\])*)/.exec(text)
  if (match === null || match[0] === '') return undefined
  const name = unescaped(match[1] ?? '')
  return { step: name === '' ? undefined : (value) => member(value, name), length: match[0].length }
}

function parseBracket(text: string, depth: number): Parsed | undefined {
  const inner = bracketContent(text)
  if (inner === undefined) return undefined
  const step = bracketStep(inner.trim(), depth)
  return step === undefined ? undefined : { step, length: inner.length + 2 }
}

/** The text between the first bracket and its closing one; brackets in quotes do not count. */
function bracketContent(text: string): string | undefined {
  let depth = 0
  let quote = ''
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at)
    if (quote !== '') {
      if (character === '\\') at++
      else if (character === quote) quote = ''
    } else if (character === '"' || character === "'") quote = character
    else if (character === '[') depth++
    else if (character === ']' && --depth === 0) return text.slice(1, at)
  }
  return undefined
}

function bracketStep(inner: string, depth: number): Step | undefined {
  if (inner === '*') return children
  const filter = /^\?\((.*)\)$/s.exec(inner)
  if (filter?.[1] !== undefined) return filterStep(filter[1].trim(), depth)
  const quoted = /^(['"])(.*)\1$/s.exec(inner)
  if (quoted?.[2] !== undefined) {
    const name = unescaped(quoted[2])
    return (value) => member(value, name)
  }
  if (/^-?\d+$/.test(inner)) return (value) => element(value, Number(inner))
  const slice = /^(-?\d+)?:(-?\d+)?$/.exec(inner)
  if (slice === null) return undefined
  const from = slice[1] === undefined ? 0 : Number(slice[1])
  const to = slice[2] === undefined ? undefined : Number(slice[2])
  return (value) => (Array.isArray(value) ? value.slice(from, to) : [])
}

function filterStep(expression: string, depth: number): Step | undefined {
  const match = /^@((?:[^=!<>"']|"[^"]*"|'[^']*')*)(?:(==|!=|<=|>=|<|>)(.+))?$/s.exec(expression)
  if (match === null) return undefined
  const [, path = '', operator, literal] = match
  const steps = parseSteps(path.trim(), depth + 1)
  if (steps === undefined) return undefined
  if (operator === undefined || literal === undefined)
    return (value, budget) => elements(value).filter((item) => run(steps, item, budget).length > 0)
  const wanted = parseLiteral(literal.trim())
  if (wanted === undefined) return undefined
  return (value, budget) =>
    elements(value).filter((item) => {
      const found = run(steps, item, budget)[0]
      return found !== undefined && compare(found, operator, wanted)
    })
}

function parseLiteral(text: string): string | Int64 | boolean | undefined {
  const quoted = /^(['"])(.*)\1$/s.exec(text)
  if (quoted?.[2] !== undefined) return unescaped(quoted[2])
  if (text === 'true' || text === 'false') return text === 'true'
  if (/^-?\d+$/.test(text)) return integerOfText(text)
  return /^-?\d+\.\d+$/.test(text) ? Number(text) : undefined
}

function compare(found: JsonValue, operator: string, wanted: string | Int64 | boolean): boolean {
  if (operator === '==') return found === wanted
  if (operator === '!=') return found !== wanted
  if ((isJsonNumber(found) && isJsonNumber(wanted)) || (typeof found === 'string' && typeof wanted === 'string'))
    return ordered(found < wanted ? -1 : found > wanted ? 1 : 0, operator)
  return false
}

function ordered(difference: number, operator: string): boolean {
  switch (operator) {
    case '<':
      return difference < 0
    case '<=':
      return difference <= 0
    case '>':
      return difference > 0
    default:
      return difference >= 0
  }
}

function member(value: JsonValue, name: string): JsonValue[] {
  if (!isJsonObject(value) || !Object.hasOwn(value, name)) return []
  const found = value[name]
  return found === undefined ? [] : [found]
}

function element(value: JsonValue, index: number): JsonValue[] {
  const found = Array.isArray(value) ? value.at(index) : undefined
  return found === undefined ? [] : [found]
}

function elements(value: JsonValue): JsonValue[] {
  return Array.isArray(value) ? value : []
}

function children(value: JsonValue): JsonValue[] {
  if (Array.isArray(value)) return value
  return isJsonObject(value) ? Object.values(value) : []
}

const maxDepth = 100

function descendants(value: JsonValue, name: string, depth: number, budget: Budget): JsonValue[] {
  if (depth > maxDepth || --budget.left < 0) return []
  const below = children(value).flatMap((child) => descendants(child, name, depth + 1, budget))
  return [...member(value, name), ...below]
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, '$1')
}
