// Quantities such as `1.5Gi` and `100m`, as resource.Quantity reads and compares them.
import { binarySuffixes, decimalExponents } from '../../quantity/index.ts'
import { CelError, CelObject, type CelInt, noSuchOverload, type Value } from '../values/value.ts'
import { checkedInt, maxInt64 } from '../values/integers.ts'

type Format = 'decimalSI' | 'binarySI' | 'decimalExponent'

// Decimal places. More precise values are rounded away from zero.
const scale = 9
const unit = 10n ** 9n

/** A quantity in whole billionths. */
export class QuantityValue extends CelObject {
  readonly typeName = 'kubernetes.Quantity'
  readonly nanos: bigint
  readonly #format: Format

  constructor(nanos: bigint, format: Format) {
    super()
    this.nanos = nanos
    this.#format = format
  }

  override equalTo(other: Value): boolean | CelError {
    return other instanceof QuantityValue ? this.nanos === other.nanos : noSuchOverload
  }

  /** The sum with another amount, in this quantity's format. */
  plus(nanos: bigint): QuantityValue {
    return new QuantityValue(this.nanos + nanos, this.#format)
  }

  /** The quantity as an integer; undefined if it is not a whole number of at most 64 bits. */
  asInt(): CelInt | undefined {
    if (this.nanos % unit !== 0n) return undefined
    const value = checkedInt(this.nanos / unit)
    return value instanceof CelError ? undefined : value
  }

  asDouble(): number {
    return Number(this.nanos / unit) + Number(this.nanos % unit) / Number(unit)
  }

  /** The canonical text. */
  get text(): string {
    if (this.nanos === 0n) return '0'
    const sign = this.nanos < 0n ? '-' : ''
    const size = this.nanos < 0n ? -this.nanos : this.nanos
    if (this.#format === 'binarySI' && size >= 1024n * unit && size % unit === 0n) return sign + binaryText(size / unit)
    return sign + decimalText(size, this.#format === 'decimalExponent')
  }
}

function binaryText(whole: bigint): string {
  let rest = whole
  let power = 0
  while (rest % 1024n === 0n && power < binarySuffixes.length - 1) {
    rest /= 1024n
    power += 1
  }
  return `${String(rest)}${binarySuffixes[power] ?? ''}`
}

function decimalText(size: bigint, exponentForm: boolean): string {
  let mantissa = size
  let exponent = -scale
  while (mantissa % 1000n === 0n && exponent < 18) {
    mantissa /= 1000n
    exponent += 3
  }
  if (exponent === 0) return String(mantissa)
  const suffix = Object.entries(decimalExponents).find(([, power]) => power === exponent)?.[0] ?? ''
  return `${String(mantissa)}${exponentForm ? `e${String(exponent)}` : suffix}`
}

const wrongFormat = new CelError(
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
)
const wrongNumeric = new CelError('unable to parse numeric part of quantity')
const wrongSuffix = new CelError("unable to parse quantity's suffix")
const maxDigits = 1000

/** Reads a quantity. Errors have the text of those of resource.ParseQuantity. */
export function parseQuantity(text: string): QuantityValue | CelError {
  if (text === '') return wrongFormat
  const match = /^([+-]?)(\d*)(?:\.(\d*))?(.*)$/su.exec(text)
  const [, sign = '', whole = '', fraction = '', suffix = ''] = match ?? []
  if (!/^[eEinumkKMGTP]*[-+]?\d*$/.test(suffix)) return wrongFormat
  if (whole.length + fraction.length > maxDigits) return wrongNumeric
  const scaled = suffixOf(suffix)
  if (scaled === undefined) return wrongSuffix
  return scaledQuantity(sign, whole, fraction, scaled)
}

interface Suffix {
  readonly format: Format
  readonly binary: number
  readonly decimal: number
}

function suffixOf(suffix: string): Suffix | undefined {
  const binary = suffix === '' ? -1 : binarySuffixes.indexOf(suffix)
  if (binary > 0) return { format: 'binarySI', binary, decimal: 0 }
  const decimal = Object.hasOwn(decimalExponents, suffix) ? decimalExponents[suffix] : undefined
  if (decimal !== undefined) return { format: 'decimalSI', binary: 0, decimal }
  const exponent = /^[eE]([+-]?\d+)$/.exec(suffix)?.[1]
  if (exponent === undefined || Math.abs(Number(exponent)) > 2 ** 31) return undefined
  return { format: 'decimalExponent', binary: 0, decimal: Number(exponent) }
}

function scaledQuantity(
  sign: string,
  whole: string,
  fraction: string,
  { format, binary, decimal }: Suffix,
): QuantityValue {
  const digits = BigInt(`${whole}${fraction}` === '' ? '0' : `${whole}${fraction}`) * 1024n ** BigInt(binary)
  const power = decimal - fraction.length + scale
  // As upstream, larger amounts become 2^63-1.
  const limit = maxInt64 * unit
  let nanos = power > 40 && digits > 0n ? limit : shifted(digits, power)
  if (nanos > limit) nanos = limit
  return new QuantityValue(sign === '-' ? -nanos : nanos, format)
}

function shifted(digits: bigint, power: number): bigint {
  if (power >= 0) return digits * 10n ** BigInt(power)
  if (digits === 0n) return 0n
  if (-power > maxDigits + 50) return 1n
  const divisor = 10n ** BigInt(-power)
  return digits / divisor + (digits % divisor === 0n ? 0n : 1n)
}

/** A whole number as a quantity. */
export function quantityOfInt(value: CelInt): QuantityValue {
  return new QuantityValue(BigInt(value) * unit, 'decimalExponent')
}
