// The string functions of cel-go's extension in version 2, which count in code points.
import {
  type FunctionDeclaration,
  type Implementation,
  member,
  overload,
} from '#apimachinery/cel/declarations/declarations.ts'
import { codePointCount } from '#apimachinery/cel/syntax/source.ts'
import { type CelType, dynType, intType, listOf, stringType } from '#apimachinery/cel/types/cel-type.ts'
import { ArrayList } from '#apimachinery/cel/values/collections.ts'
import { printValue } from '#apimachinery/cel/values/print.ts'
import { CelError, type CelInt, CelList, isInt, noSuchOverload, type Value } from '#apimachinery/cel/values/value.ts'
import { lookAt, maxTextLength, textTooLong } from '#apimachinery/cel/values/work.ts'
import { formatText } from './format-string.ts'

const outOfRange = (index: CelInt): CelError => new CelError(`index out of range: ${String(index)}`)

function charAt(text: string, index: CelInt): Value {
  if (index < 0) return outOfRange(index)
  const unit = unitIndex(text, Number(index))
  if (unit !== undefined) return String.fromCodePoint(text.codePointAt(unit) ?? 0)
  return Number(index) === codePointCount(text) ? '' : outOfRange(index)
}

function indexOf(text: string, part: string, offset: CelInt = 0): Value {
  if (part === '') return offset
  if (offset < 0) return outOfRange(offset)
  const start = unitIndex(text, Number(offset))
  const found = start === undefined ? -1 : text.indexOf(part, start)
  return found < 0 ? -1 : codePointCount(text.slice(0, found))
}

function lastIndexOf(text: string, part: string, offset?: CelInt): Value {
  if (part === '') return offset ?? codePointCount(text)
  if (offset !== undefined && offset < 0) return outOfRange(offset)
  const start = offset === undefined ? text.length : unitIndex(text, Number(offset))
  const found = start === undefined ? -1 : text.lastIndexOf(part, start)
  return found < 0 ? -1 : codePointCount(text.slice(0, found))
}

// Where a code point begins; undefined beyond the last one.
function unitIndex(text: string, points: number): number | undefined {
  let unit = 0
  for (let i = 0; i < points; i++) {
    if (unit >= text.length) return undefined
    unit += (text.codePointAt(unit) ?? 0) > 0xffff ? 2 : 1
  }
  return unit < text.length ? unit : undefined
}

function substring(text: string, start: CelInt, end?: CelInt): Value {
  const points = Array.from(text)
  if (end !== undefined && start > end)
    return new CelError(`invalid substring range. start: ${String(start)}, end: ${String(end)}`)
  for (const index of [start, end ?? start]) if (index < 0 || index > points.length) return outOfRange(index)
  return points.slice(Number(start), end === undefined ? undefined : Number(end)).join('')
}

const unlimited = -1

function replace(text: string, from: string, to: string, limit = unlimited): Value {
  if (limit === 0 || from === to) return text
  if (replacedLength(text, from, to) > maxTextLength) return textTooLong
  if (limit < 0) return from === '' ? surround(text, to, Infinity) : text.replaceAll(from, () => to)
  if (from === '') return surround(text, to, limit)
  const parts = splitText(text, from, limit + 1)
  return parts.join(to)
}

// At most: where every possible place is replaced.
function replacedLength(text: string, from: string, to: string): number {
  const places = from === '' ? text.length + 1 : Math.floor(text.length / from.length)
  const longest = text.length + places * Math.max(to.length - from.length, 0)
  if (longest <= maxTextLength || from === '') return longest
  return text.length + countOf(text, from) * (to.length - from.length)
}

function surround(text: string, to: string, limit: number): string {
  let out = ''
  let count = 0
  for (const point of text) {
    out += count++ < limit ? to + point : point
  }
  return count < limit ? out + to : out
}

function countOf(text: string, part: string): number {
  let found = 0
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) found += 1
  return found
}

function splitText(text: string, separator: string, limit = unlimited): string[] {
  if (limit === 0) return []
  lookAt(separator === '' ? text.length : countOf(text, separator))
  const parts = separator === '' ? Array.from(text) : text.split(separator)
  if (limit < 0 || parts.length <= limit) return parts
  return [...parts.slice(0, limit - 1), parts.slice(limit - 1).join(separator)]
}

const space =
  /^[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+|[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+$/g

const lower = (text: string): string => text.replaceAll(/[A-Z]+/g, (part) => part.toLowerCase())
const upper = (text: string): string => text.replaceAll(/[a-z]+/g, (part) => part.toUpperCase())

function join(list?: Value, separator: Value = ''): Value {
  if (!(list instanceof CelList) || typeof separator !== 'string') return noSuchOverload
  const parts: string[] = []
  let length = 0
  for (let i = 0; i < list.size; i++) {
    const part = list.at(i)
    if (typeof part !== 'string') return new CelError(`join: invalid input: ${printValue(part)}`)
    length += part.length + separator.length
    if (length > maxTextLength) return textTooLong
    parts.push(part)
  }
  return parts.join(separator)
}

const quoted: Readonly<Record<string, string>> = {
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

const quote = (text: string): string =>
  `"${text.toWellFormed().replaceAll(/[\x07-\r\\"]/g, (char) => quoted[char] ?? char)}"`

const text =
  (run: (text: string) => Value): Implementation =>
  (value) =>
    typeof value === 'string' ? run(value) : noSuchOverload

const int = (value: Value | undefined): CelInt | undefined => (value !== undefined && isInt(value) ? value : undefined)

const count = (value: Value | undefined): number | undefined => (value === undefined ? undefined : Number(value))

function withTexts(
  textCount: 1 | 2,
  run: (texts: readonly string[], rest: readonly (CelInt | undefined)[]) => Value,
): Implementation {
  return (...args) => {
    const texts = args.slice(0, textCount)
    if (!texts.every((value) => typeof value === 'string')) return noSuchOverload
    return run(texts, args.slice(textCount).map(int))
  }
}

function stringFunction(
  name: string,
  result: CelType,
  overloads: Record<string, CelType[]>,
  run: Implementation,
): FunctionDeclaration {
  return {
    name,
    overloads: Object.entries(overloads).map(([id, params]) => member(id, [stringType, ...params], result, run)),
  }
}

const indexing = (prefix: string): Record<string, CelType[]> => ({
  [`${prefix}_of_string`]: [stringType],
  [`${prefix}_of_string_int`]: [stringType, intType],
})

export const stringFunctions: readonly FunctionDeclaration[] = [
  stringFunction(
    'charAt',
    stringType,
    { string_char_at_int: [intType] },
    withTexts(1, ([value = ''], [index = 0]) => charAt(value, index)),
  ),
  stringFunction(
    'indexOf',
    intType,
    indexing('string_index'),
    withTexts(2, ([value = '', part = ''], [offset]) => indexOf(value, part, offset)),
  ),
  stringFunction(
    'lastIndexOf',
    intType,
    indexing('string_last_index'),
    withTexts(2, ([value = '', part = ''], [offset]) => lastIndexOf(value, part, offset)),
  ),
  stringFunction('lowerAscii', stringType, { string_lower_ascii: [] }, text(lower)),
  stringFunction('upperAscii', stringType, { string_upper_ascii: [] }, text(upper)),
  stringFunction(
    'trim',
    stringType,
    { string_trim: [] },
    text((value) => value.replaceAll(space, '')),
  ),
  stringFunction(
    'replace',
    stringType,
    {
      string_replace_string_string: [stringType, stringType],
      string_replace_string_string_int: [stringType, stringType, intType],
    },
    (value, from, to, limit) =>
      typeof value === 'string' && typeof from === 'string' && typeof to === 'string'
        ? replace(value, from, to, count(limit))
        : noSuchOverload,
  ),
  stringFunction(
    'split',
    listOf(stringType),
    { string_split_string: [stringType], string_split_string_int: [stringType, intType] },
    withTexts(2, ([value = '', separator = ''], [limit]) => new ArrayList(splitText(value, separator, count(limit)))),
  ),
  stringFunction(
    'substring',
    stringType,
    { string_substring_int: [intType], string_substring_int_int: [intType, intType] },
    withTexts(1, ([value = ''], [start = 0, end]) => substring(value, start, end)),
  ),
  stringFunction('format', stringType, { string_format: [listOf(dynType)] }, (value, args) =>
    typeof value === 'string' && args instanceof CelList ? formatText(value, args) : noSuchOverload,
  ),
  { name: 'strings.quote', overloads: [overload('strings_quote', [stringType], stringType, text(quote))] },
  {
    name: 'join',
    overloads: [
      member('list_join', [listOf(stringType)], stringType, join),
      member('list_join_string', [listOf(stringType), stringType], stringType, join),
    ],
  },
]
