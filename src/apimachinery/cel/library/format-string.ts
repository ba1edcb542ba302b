// `text.format(args)`: reading format strings, formatting, and checking constant ones before a program runs.
import { goQuote } from '#apimachinery/text/index.ts'
import type { CheckedExpression } from '#apimachinery/cel/declarations/checked-expression.ts'
import type { Call, Expression } from '#apimachinery/cel/syntax/expression.ts'
import { toDouble, toText } from '#apimachinery/cel/values/convert.ts'
import {
  CelDouble,
  CelDuration,
  CelError,
  CelList,
  CelMap,
  CelTimestamp,
  CelTypeValue,
  CelUint,
  isInt,
  typeNameOf,
  type Value,
} from '#apimachinery/cel/values/value.ts'
import { itemsOf } from '#apimachinery/cel/values/collections.ts'
import { printParts } from '#apimachinery/cel/values/print.ts'
import { lookAtPrinted, maxTextLength, textTooLong } from '#apimachinery/cel/values/work.ts'

const defaultPrecision = 6

interface Clause {
  readonly letter: string
  readonly precision: number
  /** Index of the argument. */
  readonly index: number
}

class FormatError extends Error {
  readonly node: Expression | undefined

  constructor(message: string, node?: Expression) {
    super(message)
    this.node = node
  }
}

// Calls back for each clause, in order; what lies between them is passed on as text.
function readFormat(
  format: string,
  argCount: number,
  text: (part: string) => void,
  clause: (clause: Clause) => void,
): void {
  let index = 0
  for (let i = 0; i < format.length;) {
    const next = format.indexOf('%', i)
    if (next < 0) {
      text(format.slice(i))
      return
    }
    text(format.slice(i, next))
    if (format[next + 1] === '%') {
      text('%')
      i = next + 2
      continue
    }
    if (index >= argCount) throw new FormatError(`index ${String(index)} out of range`)
    if (next + 1 >= format.length) throw new FormatError('unexpected end of string')
    const { letter, precision, end } = readClause(format, next + 1)
    clause({ letter, precision, index })
    index += 1
    i = end
  }
}

const parsing = 'could not parse formatting clause'

function readClause(format: string, start: number): { letter: string; precision: number; end: number } {
  let precision = defaultPrecision
  let at = start
  if (format[at] === '.') {
    const digits = /^\d*/.exec(format.slice(at + 1))?.[0] ?? ''
    at += 1 + digits.length
    if (at >= format.length)
      throw new FormatError(`${parsing}: error while parsing precision: could not find end of precision specifier`)
    if (digits === '')
      throw new FormatError(
        `${parsing}: error while parsing precision: error while converting precision to integer: ` +
          'strconv.Atoi: parsing "": invalid syntax',
      )
    precision = Number(digits)
    if (precision > maxPrecision)
      throw new FormatError(`${parsing}: precision ${digits} is larger than ${String(maxPrecision)}`)
  }
  const letter = format[at] ?? ''
  if (!'sdfebxXo'.includes(letter)) throw new FormatError(`${parsing}: unrecognized formatting clause "${letter}"`)
  return { letter, precision, end: at + 1 }
}

const wrongType: Readonly<Record<string, string>> = {
  s: 'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps',
  d: 'decimal clause can only be used on integers',
  f: 'fixed-point clause can only be used on doubles',
  e: 'scientific clause can only be used on doubles',
  b: 'only integers and bools can be formatted as binary',
  x: 'only integers, byte buffers, and strings can be formatted as hex',
  X: 'only integers, byte buffers, and strings can be formatted as hex',
  o: 'octal clause can only be used on integers',
}

function mismatch(letter: string, typeName: string, node?: Expression): FormatError {
  return new FormatError(`error during formatting: ${wrongType[letter] ?? ''}, was given ${typeName}`, node)
}

/** Formats a text with the arguments of a list. */
export function formatText(format: string, args: CelList): Value {
  let out = ''
  const append = (part: string): void => {
    lookAtPrinted(part.length)
    out += part
    if (out.length > maxTextLength) throw new FormatError(textTooLong.message)
  }
  try {
    readFormat(format, args.size, append, (clause) => append(formatClause(clause, args.at(clause.index))))
  } catch (error) {
    if (error instanceof FormatError) return new CelError(error.message)
    throw error
  }
  return out
}

function formatClause({ letter, precision }: Clause, value: Value): string {
  switch (letter) {
    case 's':
      return formatAsText(value)
    case 'd':
      if (isInt(value) || value instanceof CelUint) return integerOf(value).toString()
      break
    case 'f':
    case 'e':
      return formatDouble(letter, precision, value)
    case 'b':
      if (typeof value === 'boolean') return value ? '1' : '0'
      if (isInt(value) || value instanceof CelUint) return integerOf(value).toString(2)
      break
    case 'o':
      if (isInt(value) || value instanceof CelUint) return integerOf(value).toString(8)
      break
    default:
      return formatHex(letter, value)
  }
  throw mismatch(letter, typeNameOf(value))
}

const integerOf = (value: number | bigint | CelUint): bigint => (value instanceof CelUint ? value.value : BigInt(value))

function formatHex(letter: string, value: Value): string {
  let text: string | undefined
  if (isInt(value) || value instanceof CelUint) text = integerOf(value).toString(16)
  else if (typeof value === 'string') text = Buffer.from(value).toString('hex')
  else if (value instanceof Uint8Array) text = Buffer.from(value).toString('hex')
  if (text === undefined) throw mismatch(letter, typeNameOf(value))
  return letter === 'X' ? text.toUpperCase() : text
}

function formatDouble(letter: 'f' | 'e', precision: number, value: Value): string {
  const isName = value === 'NaN' || value === 'Infinity' || value === '-Infinity'
  if (!(value instanceof CelDouble) && !isName) throw mismatch(letter, typeNameOf(value))
  const double = toDouble(value)
  const number = double instanceof CelDouble ? double.value : NaN
  if (Number.isNaN(number)) return 'NaN'
  if (!Number.isFinite(number)) return number > 0 ? '∞' : '-∞'
  return letter === 'f' ? fixedPoint(number, precision) : scientific(number, precision)
}

// As the en_US locale writes it: thousands in groups, ties to the nearest even digit of the exact value.
function fixedPoint(number: number, precision: number): string {
  const text = exactFixed(number, precision)
  const [whole = '', fraction] = text.split('.')
  const grouped = whole.replaceAll(/\B(?=(\d{3})+(?!\d))/g, ',')
  return fraction === undefined ? grouped : `${grouped}.${fraction}`
}

const maxPrecision = 1000
const layout = new DataView(new ArrayBuffer(8))

// Rounds the exact value, ties to even: Number.prototype.toFixed rounds them up.
function exactFixed(number: number, precision: number): string {
  layout.setFloat64(0, number)
  const bits = layout.getBigUint64(0)
  const exponent = Number((bits >> 52n) & 0x7ffn)
  const fraction = bits & 0xf_ffff_ffff_ffffn
  const scaled = (exponent === 0 ? fraction : fraction | (1n << 52n)) * 10n ** BigInt(precision)
  const shift = Math.max(exponent, 1) - 1075
  const digits = String(shift >= 0 ? scaled << BigInt(shift) : roundShift(scaled, BigInt(-shift))).padStart(
    precision + 1,
    '0',
  )
  const sign = bits >> 63n === 1n ? '-' : ''
  return sign + (precision === 0 ? digits : `${digits.slice(0, -precision)}.${digits.slice(-precision)}`)
}

function roundShift(value: bigint, shift: bigint): bigint {
  const whole = value >> shift
  const rest = value - (whole << shift)
  const half = 1n << (shift - 1n)
  return rest > half || (rest === half && (whole & 1n) === 1n) ? whole + 1n : whole
}

const superscripts = '⁰¹²³⁴⁵⁶⁷⁸⁹'

// What is written as a precision is a width: cel-go has it so.
function scientific(number: number, width: number): string {
  const [mantissa = '', exponent = '0'] = number.toExponential(defaultPrecision).split('e')
  const digits = String(Math.abs(Number(exponent))).padStart(2, '0')
  const raised = Array.from(digits, (digit) => superscripts[Number(digit)] ?? '').join('')
  return `${mantissa}×10${Number(exponent) < 0 ? '⁻' : ''}${raised}`.padStart(width)
}

function formatAsText(value: Value): string {
  if (value === null) return 'null'
  if (value instanceof CelList) return formatList(value)
  if (value instanceof CelMap) return formatMap(value)
  const isKnown = typeof value !== 'object' || value instanceof Uint8Array || isClassOf(value)
  const text = isKnown ? toText(value) : undefined
  if (text instanceof CelError) throw new FormatError(`error during formatting: could not convert argument to string`)
  if (typeof text !== 'string') throw mismatch('s', typeNameOf(value))
  return text
}

const isClassOf = (value: Value): boolean =>
  value instanceof CelDouble ||
  value instanceof CelUint ||
  value instanceof CelTimestamp ||
  value instanceof CelDuration ||
  value instanceof CelTypeValue

function formatList(list: CelList): string {
  return printParts('[', itemsOf(list).map(formatElement), ']')
}

function formatElement(value: Value): string {
  lookAtPrinted(typeof value === 'string' || value instanceof Uint8Array ? value.length : 0)
  if (typeof value === 'string') return goQuote(value)
  if (value instanceof Uint8Array) return `b${goQuote(formatAsText(value))}`
  if (value instanceof CelDouble) {
    if (Number.isFinite(value.value)) return exactFixed(value.value, defaultPrecision)
    return goQuote(Number.isNaN(value.value) ? 'NaN' : value.value > 0 ? '+Inf' : '-Inf')
  }
  if (value instanceof CelTimestamp) return `timestamp(${goQuote(formatAsText(value))})`
  if (value instanceof CelDuration) return `duration(${goQuote(formatAsText(value))})`
  if (
    typeof value === 'object' &&
    value !== null &&
    !isClassOf(value) &&
    !(value instanceof CelList || value instanceof CelMap)
  )
    throw new FormatError(`error during formatting: no formatting function for ${typeNameOf(value)}`)
  return formatAsText(value)
}

function formatMap(map: CelMap): string {
  const pairs = map.keys().map((key): [string, string] => {
    const isKey = typeof key === 'string' || typeof key === 'boolean' || isInt(key) || key instanceof CelUint
    if (!isKey)
      throw new FormatError(`error during formatting: no formatting function for map key of type ${typeNameOf(key)}`)
    return [formatElement(key), formatElement(map.find(key) ?? null)]
  })
  pairs.sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  return printParts(
    '{',
    pairs.map(([key, value]) => `${key}:${value}`),
    '}',
  )
}

/** What is wrong with a constant format string and its list of arguments, and at which node. */
export function checkFormat(node: Call, checked: CheckedExpression): { id: number; message: string } | undefined {
  const { target, args } = node
  const [list] = args
  if (target?.kind !== 'literal' || typeof target.value !== 'string' || list?.kind !== 'list') return undefined
  let requested = 0
  try {
    readFormat(
      target.value,
      list.elements.length,
      () => undefined,
      ({ letter, index }) => {
        requested += 1
        const argument = list.elements[index]
        if (argument !== undefined) checkArgument(letter, argument, checked)
      },
    )
  } catch (error) {
    if (error instanceof FormatError) return { id: error.node?.id ?? node.id, message: error.message }
    throw error
  }
  if (list.elements.length <= requested) return undefined
  const counts = `(expected ${String(requested)}, got ${String(list.elements.length)})`
  return { id: node.id, message: `too many arguments supplied to string.format ${counts}` }
}

const accepted: Readonly<Record<string, readonly string[]>> = {
  s: 'list map int uint double bool string timestamp bytes duration type null'.split(' '),
  d: ['int', 'uint'],
  f: ['double', 'string'],
  e: ['double', 'string'],
  b: ['int', 'uint', 'bool'],
  x: ['int', 'uint', 'string', 'bytes'],
  X: ['int', 'uint', 'string', 'bytes'],
  o: ['int', 'uint'],
}

function checkArgument(letter: string, node: Expression, checked: CheckedExpression): void {
  const type = checked.typeOf(node)
  if (type.kind !== 'dyn' && !(accepted[letter] ?? []).includes(type.kind)) throw mismatch(letter, type.name, node)
  if (letter !== 's') return
  if (node.kind === 'list') for (const element of node.elements) checkArgument(letter, element, checked)
  if (node.kind !== 'map') return
  for (const { key, value } of node.entries) {
    checkArgument(letter, key, checked)
    checkArgument(letter, value, checked)
  }
}
