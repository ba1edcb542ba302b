// One step of a path into an object, written as FieldsV1 writes it as a key: `f:name`, `k:{"name":"x"}`, `v:"x"`,
// `i:0`. A step is always in its canonical form, so that equal steps are equal strings.
import { goFloat, goQuote } from '#apimachinery/text/index.ts'
import { remember } from '#apimachinery/memo/index.ts'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isJsonNumber, isJsonObject, type Int64, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'

/** The step to a field of a map or struct. */
export function fieldElement(name: string): string {
  const known = fieldElements.get(name)
  if (known !== undefined) return known
  const element = `f:${name}`
  return name.length > maxKnownName ? element : remember(fieldElements, name, element, { max: maxKnownNames })
}

/** Cache of the steps of recent names: finding a text is faster than building it again. */
const fieldElements = new Map<string, string>()
/** Maximum number of cached names, and maximum length of a cached name in characters. */
const [maxKnownNames, maxKnownName] = [4096, 64]

/** The step to the item of a list of maps that has these keys; `keys` must be sorted by name. */
export function keyElement(keys: readonly (readonly [string, JsonValue])[]): string {
  let text = ''
  for (const [name, value] of keys) text += `${text === '' ? '' : ','}${goString(name)}:${jsonText(value)}`
  return `k:{${text}}`
}

/** The step to a scalar item of a set. */
export function valueElement(value: JsonValue): string {
  return `v:${jsonText(value)}`
}

/**
 * The canonical form of a step that a client sent. Undefined for an unknown type of step, which upstream leaves out.
 * Throws for a text that is not a step.
 */
export function canonicalElement(element: string): string | undefined {
  if (element.length < 2) throw new Error('key must be 2 characters long:')
  if (element[1] !== ':') throw new Error(`missing colon: ${element}`)
  const rest = element.slice(2)
  switch (element[0]) {
    case 'f':
      return element
    case 'k':
      return keyElement(sortedKeys(parsedKeys(rest)))
    case 'v':
      return valueElement(parseJsonText(rest))
    case 'i':
      if (!/^[+-]?\d+$/.test(rest)) throw new Error(`strconv.Atoi: parsing ${goQuote(rest)}: invalid syntax`)
      return `i:${Number(rest)}`
    default:
      return undefined
  }
}

/** The step as messages show it: `.spec`, `[name="x"]`, `[="x"]`, `[0]`. */
export function elementText(element: string): string {
  const rest = element.slice(2)
  if (element[0] === 'f') return `.${rest}`
  if (element[0] === 'i') return `[${rest}]`
  if (element[0] === 'v') return `[=${valueText(parseJsonText(rest))}]`
  const keys = Object.entries(parsedKeys(rest))
  return `[${keys.map(([name, value]) => `${name}=${valueText(value)}`).join(',')}]`
}

const ranks: Readonly<Record<string, number>> = { f: 0, k: 1, v: 2, i: 3 }

/** The order of steps in FieldsV1: fields, keys, values, indexes; texts by their UTF-8 bytes. */
export function compareElements(a: string, b: string): number {
  const [kind = '', other = ''] = [a[0], b[0]]
  if (kind !== other) return (ranks[kind] ?? -1) - (ranks[other] ?? -1)
  if (kind === 'f') return compareUtf8(a, b)
  const [left, right] = [a.slice(2), b.slice(2)]
  if (a === b) return 0
  if (kind === 'i') return Number(left) - Number(right)
  if (kind === 'v') return compareValues(parseJsonText(left), parseJsonText(right))
  return compareKeys(Object.entries(parsedKeys(left)), Object.entries(parsedKeys(right)))
}

/** Keys with their values, sorted by name as a step has them. */
export function sortedKeys(keys: JsonObject): [string, JsonValue][] {
  return Object.entries(keys).sort(([a], [b]) => compareUtf8(a, b))
}

function parsedKeys(text: string): JsonObject {
  const keys = parseJsonText(text)
  if (!isJsonObject(keys)) throw new Error(`ReadObjectCB: expect { or n, but found ${text[0] ?? ''}`)
  return keys
}

function compareKeys(a: readonly [string, JsonValue][], b: readonly [string, JsonValue][]): number {
  for (let i = 0; ; i++) {
    const [left, right] = [a[i], b[i]]
    if (left === undefined || right === undefined) return a.length - b.length
    const order = compareUtf8(left[0], right[0]) || compareValues(left[1], right[1])
    if (order !== 0) return order
  }
}

/** The order by type (numbers, texts, booleans, lists, maps, null), then by value. */
function compareValues(a: JsonValue, b: JsonValue): number {
  const rank = valueRank(a) - valueRank(b)
  if (rank !== 0) return rank
  if (typeof a === 'boolean') return Number(a) - Number(b)
  if (isJsonNumber(a)) return a < (b as Int64) ? -1 : a > (b as Int64) ? 1 : 0
  if (typeof a === 'string') return compareUtf8(a, b as string)
  if (a === null) return 0
  const items = (value: JsonValue): [string, JsonValue][] =>
    Array.isArray(value) ? value.map((item) => ['', item]) : sortedKeys(value as JsonObject)
  return compareKeys(items(a), items(b))
}

function valueRank(value: JsonValue): number {
  if (value === null) return 5
  if (Array.isArray(value)) return 3
  return { number: 0, bigint: 0, string: 1, boolean: 2, object: 4 }[
    typeof value as 'number' | 'bigint' | 'string' | 'boolean' | 'object'
  ]
}

/**
 * Compares by UTF-8 bytes. Comparing UTF-16 units would put characters from U+10000 on, which are surrogates, before
 * U+E000.
 */
function compareUtf8(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length)
  for (let i = 0; i < shorter; i++) {
    const [left, right] = [a.charCodeAt(i), b.charCodeAt(i)]
    if (left !== right) return inUtf8Order(left) - inUtf8Order(right)
  }
  return a.length - b.length
}

function inUtf8Order(unit: number): number {
  if (unit < 0xd800) return unit
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800
}

/** The value as Go's %v prints it, with texts as %q. Go reads all numbers in FieldsV1 as floats. */
function valueText(value: JsonValue): string {
  if (value === null) return 'null'
  if (typeof value === 'string') return goQuote(value)
  if (isJsonNumber(value)) return goFloat(value)
  if (typeof value === 'boolean') return String(value)
  if (Array.isArray(value)) return `[${value.map(valueText).join(',')}]`
  return Object.entries(value)
    .map(([name, item]) => `${name}=${valueText(item)}`)
    .join('')
}

function jsonText(value: JsonValue): string {
  if (typeof value === 'string') return goString(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(jsonText).join(',')}]`
  return keyElement(sortedKeys(value)).slice(2)
}

/** A JSON string in which characters that are special in HTML are escaped, as Go's encoders do. */
function goString(text: string): string {
  if (!/[\u0000-\u001f"\\<>&\u2028\u2029\ud800-\udfff]/.test(text)) return `"${text}"`
  return JSON.stringify(text.toWellFormed())
    .replace(/\\[bf]|\\\\/g, (escape) => ({ '\\b': '\\u0008', '\\f': '\\u000c' })[escape] ?? escape)
    .replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
