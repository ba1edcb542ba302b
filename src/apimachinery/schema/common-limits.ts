// The common rules of several schemas for the values at one place: bounds, enum, format, conditions and expressions.
import { isJsonNumber, isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import {
  canonicalText,
  isSameJson,
  reportNarrowing,
  shortText,
  sortedUnique,
  type Part,
  type Place,
} from './common-parts.ts'
import type { SchemaType } from './schema-node.ts'

/** The types that the values may have; `any`: all. */
export type Types = ReadonlySet<string> | 'any'

interface Bound {
  readonly name: string
  readonly isLower: boolean
  readonly types: readonly SchemaType[]
  readonly unit: string
}

const numeric = ['integer', 'number'] as const
const pairs: readonly (readonly [string, string, readonly SchemaType[], string])[] = [
  ['minimum', 'maximum', numeric, ''],
  ['minLength', 'maxLength', ['string'], ' characters'],
  ['minItems', 'maxItems', ['array'], ' items'],
  ['minProperties', 'maxProperties', ['object'], ' fields'],
]

/** Sets the tighter of all bounds in `result`. False if no value meets them. */
export function setBounds(result: JsonObject, types: Types, parts: readonly Part[], place: Place): boolean {
  for (const [least, most, of, unit] of pairs) {
    if (!concerns(types, of)) continue
    const low = setBound(result, { name: least, isLower: true, types: of, unit }, parts, place)
    const high = setBound(result, { name: most, isLower: false, types: of, unit }, parts, place)
    if (low === undefined || high === undefined) continue
    const isPoint = result['exclusiveMinimum'] !== true && result['exclusiveMaximum'] !== true
    if (low > high || (least === 'minimum' && low === high && !isPoint)) {
      place.losses.push({
        path: place.path,
        kind: 'dropped',
        what: `has no value that all accept: at least ${low} and at most ${high}`,
        members: parts.map(({ member }) => member),
      })
      return false
    }
  }
  return true
}

function concerns(types: Types, of: readonly string[]): boolean {
  return types === 'any' || of.some((type) => types.has(type))
}

function setBound(
  result: JsonObject,
  { name, isLower, unit }: Bound,
  parts: readonly Part[],
  place: Place,
): number | undefined {
  const values = parts.map(({ node }) => node[name]).filter(isJsonNumber)
  if (values.length === 0) return undefined
  const tightest = values.reduce((a, b) => ((isLower ? b > a : b < a) ? b : a))
  result[name] = tightest
  const tight = parts.filter(({ node }) => isJsonNumber(node[name]) && node[name] == tightest)
  const flag = name === 'minimum' ? 'exclusiveMinimum' : name === 'maximum' ? 'exclusiveMaximum' : undefined
  const exclusive = flag === undefined ? [] : tight.filter(({ node }) => node[flag] === true)
  if (flag !== undefined && exclusive.length > 0) result[flag] = true
  const how = exclusive.length > 0 ? (isLower ? 'more than' : 'less than') : isLower ? 'at least' : 'at most'
  reportNarrowing(place, `must have ${how} ${tightest}${unit}`, exclusive.length > 0 ? exclusive : tight, parts)
  return Number(tightest)
}

/** Sets the values that all enums have. False if there is none. */
export function setEnum(result: JsonObject, parts: readonly Part[], place: Place): boolean {
  const with_ = parts.filter(({ node }) => Array.isArray(node['enum']))
  const lists = with_.map(({ node }) => node['enum'] as JsonValue[])
  const [first] = lists
  if (first === undefined) return true
  if (lists.every((list) => isSameJson(list, first))) {
    result['enum'] = first
    reportNarrowing(place, `takes ${first.slice(0, 10).map(shortText).join(', ')} only`, with_, parts)
    return true
  }
  const texts = lists.map((list) => new Set(list.map(canonicalText)))
  const shared = sortedUnique(first).filter((value) => texts.every((known) => known.has(canonicalText(value))))
  const narrow = with_.filter((_, index) =>
    texts.some((known, other) => other !== index && hasMore(known, texts[index])),
  )
  const what =
    shared.length === 0 ? 'has no value in common' : `takes ${shared.slice(0, 10).map(shortText).join(', ')} only`
  place.losses.push({
    path: place.path === '' ? '.' : place.path,
    kind: shared.length === 0 ? 'dropped' : 'narrowed',
    what,
    members: (narrow.length === 0 ? with_ : narrow).map(({ member }) => member),
  })
  result['enum'] = shared
  return shared.length > 0
}

function hasMore(known: ReadonlySet<string>, other: ReadonlySet<string> | undefined): boolean {
  return [...known].some((text) => other?.has(text) !== true)
}

const integerFormats: readonly unknown[] = ['int32', 'int64']

/** Keywords of which a node has one: several of them are put into allOf. */
const single = ['format', 'pattern', 'multipleOf', 'anyOf', 'oneOf', 'not'] as const
/** The form in which int-or-string repeats its types. */
const repeatedTypes: JsonValue = [{ type: 'integer' }, { type: 'string' }]

/** The conditions of all parts, each as a schema with one keyword or as an item of allOf. */
export function conditionsOf(types: Types, parts: readonly Part[], place: Place): JsonObject[] {
  const byPart = parts.map(({ node }) => ownConditions(node, types))
  const all = withoutWideIntegers(sortedUnique(byPart.flat()))
  for (const condition of all) {
    const text = canonicalText(condition)
    const by = parts.filter((_, index) => byPart[index]?.some((one) => canonicalText(one) === text))
    reportNarrowing(place, `must meet ${shortText(condition)}`, by, parts)
  }
  return all
}

function ownConditions(node: JsonObject, types: Types): JsonObject[] {
  const found: JsonObject[] = []
  for (const name of single) {
    const value = node[name]
    if (value === undefined || (name === 'anyOf' && isSameJson(value, repeatedTypes))) continue
    if ((name === 'pattern' && !concerns(types, ['string'])) || (name === 'multipleOf' && !concerns(types, numeric)))
      continue
    found.push({ [name]: value })
  }
  const items = Array.isArray(node['allOf']) ? node['allOf'].filter(isJsonObject) : []
  return [...found, ...items.filter((item) => !isSameJson(item['anyOf'], repeatedTypes))]
}

/** Integers of 32 bits are integers of 64 bits. */
function withoutWideIntegers(conditions: JsonObject[]): JsonObject[] {
  const isNarrow = conditions.some((condition) => condition['format'] === 'int32')
  return isNarrow ? conditions.filter((condition) => condition['format'] !== 'int64') : conditions
}

/** Writes conditions: at the node where a keyword occurs once, else in allOf. */
export function setConditions(result: JsonObject, conditions: readonly JsonObject[]): void {
  const rest: JsonObject[] = []
  for (const condition of sortedUnique(conditions)) {
    const [name = '', ...more] = Object.keys(condition)
    const isSingle = more.length === 0 && (single as readonly string[]).includes(name)
    const same = conditions.filter((one) => Object.keys(one).length === 1 && Object.hasOwn(one, name))
    if (isSingle && (same.length === 1 || integerFormats.includes(condition['format'])))
      Object.assign(result, condition)
    else rest.push(condition)
  }
  if (rest.length > 0) result['allOf'] = rest
}

/** All rules of all parts, and `more`; a rule that several parts have is there once. */
export function setRules(
  result: JsonObject,
  parts: readonly Part[],
  { more, place }: { readonly more: readonly JsonObject[]; readonly place: Place },
): void {
  const lists = parts.map(({ node }) => rulesOf(node))
  const [first = []] = lists
  if (more.length === 0 && lists.every((list) => isSameJson(list, first))) {
    if (first.length > 0) result['x-kubernetes-validations'] = first
    return
  }
  const byRule = new Map<string, JsonValue>()
  for (const rule of sortedUnique([...lists.flat(), ...more])) {
    const text = ruleText(rule)
    if (!byRule.has(text)) byRule.set(text, rule)
  }
  for (const [text, rule] of byRule) {
    const by = parts.filter((_, index) => lists[index]?.some((one) => ruleText(one) === text))
    if (by.length > 0 && isJsonObject(rule)) reportNarrowing(place, `must meet the rule ${text}`, by, parts)
  }
  const rules = [...byRule].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, rule]) => rule)
  if (rules.length > 0) result['x-kubernetes-validations'] = rules
}

export function rulesOf(node: JsonObject): JsonValue[] {
  const rules = node['x-kubernetes-validations']
  return Array.isArray(rules) ? rules : []
}

/** The expression of a rule: its message does not decide. */
export function ruleText(rule: JsonValue): string {
  return isJsonObject(rule) && typeof rule['rule'] === 'string' ? rule['rule'] : canonicalText(rule)
}
