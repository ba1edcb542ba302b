// Reads the text of a quantity as resource.ParseQuantity does, with the form in which Go holds it: some functions, such
// as isInteger() of expressions, depend on that form and not only on the amount.
import { binarySuffixes, decimalExponents } from './suffixes.ts'

/** How a quantity is printed: `12M`, `12e6` or `12Mi`. */
export type QuantityFormat = 'DecimalSI' | 'DecimalExponent' | 'BinarySI'

/** `value` times ten to the power of `scale`. */
export interface Amount {
  readonly value: bigint
  readonly scale: number
  readonly format: QuantityFormat
  /** Whether Go holds the value in an integer of 64 bits, not in a decimal of any size. */
  readonly isInt64: boolean
  /** Whether Go prints the text unchanged. */
  readonly isCanonical: boolean
}

/** The fault of a text: its form, its number or its suffix. */
export type AmountFault = 'format' | 'number' | 'suffix'

/**
 * More digits, or exponents of a larger magnitude, are refused: Go accepts any number of digits, and such computations
 * take forever.
 */
const [maxDigits, maxExponent] = [1000, 1000]
/** Digits that always fit into an integer of 64 bits. */
const int64Digits = 18
const finest = -9
export const maxInt64 = 2n ** 63n - 1n

/** Reads a quantity. Rounds away from zero to billionths. */
export function parseAmount(text: string): Amount | AmountFault {
  if (text === '') return 'format'
  // A sign, digits, a fraction: each may be absent. Sticky, because a long text must not be read twice.
  const number = /([+-]?)(\d*)(?:(\.)(\d*))?/y.exec(text)
  const [all = '', sign = '', digits = '', dot = '', fraction = ''] = number ?? []
  const rest = text.slice(all.length)
  if (all.length > maxDigits || rest.length > maxDigits) return 'format'
  if (rest !== '' && !/^[eEinumkKMGTP]*[+-]?\d*$/.test(rest)) return 'format'
  const suffix = suffixOf(rest)
  if (suffix === undefined) return 'suffix'
  const isNegative = sign === '-'
  // Go stops reading here if there are only zeros.
  if (digits.replace(/^0+/, '') === '' && dot === '' && rest === '') return zero
  return (
    inInt64(digits, fraction, { ...suffix, isNegative }) ??
    inDecimal(digits, fraction, { ...suffix, isNegative, isNumber: digits !== '' || fraction !== '' })
  )
}

const zero: Amount = { value: 0n, scale: 0, format: 'DecimalSI', isInt64: true, isCanonical: false }

interface Suffix {
  readonly format: QuantityFormat
  /** The exponent of 10, or of 1024 in the binary format. */
  readonly exponent: number
}

function suffixOf(text: string): Suffix | undefined {
  const decimal = Object.hasOwn(decimalExponents, text) ? decimalExponents[text] : undefined
  if (decimal !== undefined) return { format: 'DecimalSI', exponent: decimal }
  const binary = binarySuffixes.indexOf(text)
  if (binary > 0) return { format: 'BinarySI', exponent: binary }
  if (!/^[eE][+-]?\d+$/.test(text)) return undefined
  const exponent = Number(text.slice(1))
  return Math.abs(exponent) > maxExponent ? undefined : { format: 'DecimalExponent', exponent }
}

/** The amount as an integer of 64 bits; undefined if Go does not choose this form. */
function inInt64(
  digits: string,
  fraction: string,
  { format, exponent, isNegative }: Suffix & { readonly isNegative: boolean },
): Amount | undefined {
  const whole = digits.replace(/^0+/, '') || '0'
  const shifted = whole + fraction
  if (format === 'BinarySI') {
    if (fraction !== '' || 14 - whole.length - exponent * 3 < 0) return undefined
    const given = BigInt(whole)
    const value = given * 1024n ** BigInt(exponent)
    if (value > maxInt64) return undefined
    return { value: isNegative ? -value : value, scale: 0, format, isInt64: true, isCanonical: (given & 7n) !== 0n }
  }
  const scale = exponent - fraction.length
  if (shifted.length > int64Digits || scale < finest) return undefined
  const value = BigInt(shifted)
  const isCanonical = scale % 3 === 0 && !shifted.endsWith('000') && !shifted.startsWith('0')
  return { value: isNegative ? -value : value, scale, format, isInt64: true, isCanonical }
}

function inDecimal(
  digits: string,
  fraction: string,
  { format, exponent, isNegative, isNumber }: Suffix & { readonly isNegative: boolean; readonly isNumber: boolean },
): Amount | AmountFault {
  if (!isNumber) return 'number'
  const isBinary = format === 'BinarySI'
  const mantissa = BigInt(`${digits}${fraction}`) * (isBinary ? 1024n ** BigInt(exponent) : 1n)
  const scale = (isBinary ? 0 : exponent) - fraction.length
  const form = { isInt64: false, isCanonical: false }
  if (mantissa === 0n) return { value: 0n, scale, format, ...form }
  // In billionths, rounded up, so that a small request does not become zero.
  const nanos = scaled(mantissa, scale - finest)
  const isCapped = isBinary && nanos > maxInt64 * 10n ** 9n
  const value = isCapped ? maxInt64 : nanos
  const printed = isBinary && nanos < 10n ** 9n ? 'DecimalSI' : format
  return { value: isNegative ? -value : value, scale: isCapped ? 0 : finest, format: printed, ...form }
}

/** The value times a power of ten, rounded up. */
function scaled(value: bigint, power: number): bigint {
  if (power >= 0) return value * 10n ** BigInt(power)
  const divisor = 10n ** BigInt(-power)
  return value / divisor + (value % divisor === 0n ? 0n : 1n)
}

/** The amount in billionths. */
export function nanosOf({ value, scale }: Amount): bigint {
  return value === 0n ? 0n : scale >= finest ? value * 10n ** BigInt(scale - finest) : scaled(value, scale - finest)
}

const faults: Readonly<Record<AmountFault, string>> = {
  format: "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  number: 'unable to parse numeric part of quantity',
  suffix: "unable to parse quantity's suffix",
}

/** Go's error for a text that is not a quantity. */
export function quantityError(text: string): string {
  const amount = parseAmount(text)
  return faults[typeof amount === 'string' ? amount : 'format']
}
