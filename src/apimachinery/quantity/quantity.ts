// resource.Quantity: numbers with a suffix, printed in upstream's canonical form.
import { remember } from '../memo/index.ts'
import { binarySuffixes, decimalExponents } from './suffixes.ts'

/** A parsed quantity and the format in which it is printed. */
export interface Quantity {
  /** In billionths: the finest unit of a quantity. */
  readonly nanos: bigint
  readonly format: 'DecimalSI' | 'DecimalExponent' | 'BinarySI'
}

const nano = 1_000_000_000n
const pattern = /^([+-]?)(\d+(?:\.\d*)?|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?$/
const decimalSuffixes = new Map(Object.entries(decimalExponents).map(([suffix, exponent]) => [exponent, suffix]))
const largest = (2n ** 63n - 1n) * nano
const maxExponent = 60
const maxDigits = 1000
/** Digits that Go keeps in an integer of 64 bits. */
const maxReusedDigits = 18

/** Quantities of the last short texts: each of a workload is parsed several times in a write, and most are a few. */
const parsed = new Map<string, Quantity>()
/** How many, and the length of their texts in characters. */
const [maxParsed, maxParsedText] = [1000, 16]

/** Parses a quantity; undefined if the text is not one. Rounds away from zero to billionths. */
export function tryQuantity(text: string): Quantity | undefined {
  const known = parsed.get(text)
  if (known !== undefined) return known
  const quantity = parse(text)
  if (quantity === undefined || text.length > maxParsedText) return quantity
  return remember(parsed, text, quantity, { max: maxParsed })
}

function parse(text: string): Quantity | undefined {
  const match = pattern.exec(text)
  if (match === null) return undefined
  const [, sign = '', digits = '', suffix = ''] = match
  if (digits.length > maxDigits) return undefined
  const [whole = '', fraction = ''] = digits.split('.')
  const mantissa = BigInt(`${whole}${fraction}` || '0')
  const binary = binarySuffixes.indexOf(suffix)
  const exponential = /^[eE][+-]?\d/.test(suffix)
  const exponent = exponential ? Number(suffix.slice(1)) : (decimalExponents[suffix] ?? 0)
  if (Math.abs(exponent) > maxExponent) return undefined
  const nanos =
    binary > 0
      ? scaled(mantissa * 1024n ** BigInt(binary), 9 - fraction.length)
      : scaled(mantissa, exponent + 9 - fraction.length)
  const bounded = nanos > largest && binary > 0 ? largest : nanos
  const format = binary > 0 ? 'BinarySI' : exponential ? 'DecimalExponent' : 'DecimalSI'
  return { nanos: sign === '-' ? -bounded : bounded, format }
}

/**
 * The text that Go prints for a quantity that it parsed from `text`: the same text where Go takes it for canonical, although it
 * may have a sign, a final dot or another form of its exponent, and else the canonical one.
 */
export function printedQuantity(text: string, quantity: Quantity): string {
  return isReused(text) ? text : quantityText(quantity)
}

/** The test of resource.ParseQuantity. */
function isReused(text: string): boolean {
  const [, , digits = '', suffix = ''] = pattern.exec(text) ?? []
  const [whole = '', fraction = ''] = digits.replace(/^0+/, '').split('.')
  const shifted = `${whole === '' ? '0' : whole}${fraction}`
  const binary = binarySuffixes.indexOf(suffix)
  if (binary > 0) {
    const fits = 14 - whole.length - binary * 3 >= 0
    return fits && fraction === '' && whole !== '' && (Number(whole) & 7) !== 0
  }
  const exponent = /^[eE][+-]?\d/.test(suffix) ? Number(suffix.slice(1)) : (decimalExponents[suffix] ?? 0)
  const scale = exponent - fraction.length
  const fits = shifted.length <= maxReusedDigits && scale >= -9
  return fits && scale % 3 === 0 && !shifted.endsWith('000') && !shifted.startsWith('0')
}

/** Parses the quantity in decoded text, which is valid. */
export function quantityOf(text: string): Quantity {
  return tryQuantity(text) ?? { nanos: 0n, format: 'DecimalSI' }
}

/** Rounds away from zero to thousandths, as Go does in a ResourceList. */
export function roundUpToMilli({ nanos, format }: Quantity): Quantity {
  const milli = nano / 1000n
  const rest = nanos % milli
  if (rest === 0n) return { nanos, format }
  return { nanos: nanos - rest + (nanos > 0n ? milli : -milli), format }
}

/** The canonical text of a quantity: the largest suffix that needs no fraction. */
export function quantityText({ nanos, format }: Quantity): string {
  if (nanos === 0n) return '0'
  if (format === 'BinarySI' && (nanos >= 1024n * nano || nanos <= -1024n * nano)) return binaryText(nanos)
  let amount = nanos
  let exponent = -9
  while (amount % 10n === 0n) {
    amount /= 10n
    exponent++
  }
  while (exponent % 3 !== 0) {
    amount *= 10n
    exponent--
  }
  if (format === 'DecimalExponent') return exponent === 0 ? String(amount) : `${amount}e${exponent}`
  for (; exponent > 18; exponent -= 3) amount *= 1000n
  return `${amount}${decimalSuffixes.get(exponent) ?? ''}`
}

function binaryText(nanos: bigint): string {
  let amount = nanos / nano
  if (nanos % nano !== 0n) amount += nanos > 0n ? 1n : -1n
  let power = 0
  while (amount % 1024n === 0n && power < binarySuffixes.length - 1) {
    amount /= 1024n
    power++
  }
  return `${amount}${binarySuffixes[power] ?? ''}`
}

function scaled(value: bigint, exponent: number): bigint {
  if (exponent >= 0) return value * 10n ** BigInt(exponent)
  const divisor = 10n ** BigInt(-exponent)
  return value / divisor + (value % divisor === 0n ? 0n : 1n)
}
