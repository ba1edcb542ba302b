// Quantities such as `1.5Gi` and `100m`, as resource.Quantity reads, adds and compares them.
import {
  maxInt64,
  nanosOf,
  parseAmount,
  quantityError,
  quantityText,
  type Amount,
} from '#apimachinery/quantity/index.ts'
import { CelError, CelObject, type CelInt, noSuchOverload, type Value } from '#apimachinery/cel/values/value.ts'
import { checkedInt } from '#apimachinery/cel/values/integers.ts'

type Form = Pick<Amount, 'value' | 'scale' | 'format' | 'isInt64'>

/** A quantity in the form that Go holds it in: whether it is an integer depends on that, not on its amount. */
export class QuantityValue extends CelObject {
  readonly typeName = 'kubernetes.Quantity'
  /** In billionths. */
  readonly nanos: bigint
  readonly #form: Form

  constructor(form: Form) {
    super()
    this.#form = form
    this.nanos = nanosOf({ ...form, isCanonical: false })
  }

  override equalTo(other: Value): boolean | CelError {
    return other instanceof QuantityValue ? this.nanos === other.nanos : noSuchOverload
  }

  /** The sum with another quantity, or the difference (`sign` -1). Zero takes the format of the other. */
  plus(other: QuantityValue, sign: 1n | -1n): QuantityValue {
    const [a, b] = [this.#form, { ...other.#form, value: sign * other.#form.value }]
    const format = a.value === 0n ? b.format : a.format
    const sum = a.isInt64 && b.isInt64 ? sumInInt64(a, b) : undefined
    return new QuantityValue({ ...(sum ?? sumInDecimal(a, b)), format })
  }

  /**
   * The quantity as an integer; undefined if Go does not hold it as a whole number of 64 bits: `1000m` and `1Ei` are
   * none.
   */
  asInt(): CelInt | undefined {
    const { value, scale, isInt64 } = this.#form
    if (!isInt64 || scale < 0) return undefined
    const whole = checkedInt(value * 10n ** BigInt(scale))
    return whole instanceof CelError ? undefined : whole
  }

  asDouble(): number {
    const { value, scale } = this.#form
    return Number(value) * powerOfTen(scale)
  }

  /** The canonical text. */
  get text(): string {
    return quantityText({ nanos: this.nanos, format: this.#form.format })
  }
}

const isInt64 = (value: bigint): boolean => value <= maxInt64 && value >= -maxInt64 - 1n

/** Undefined if a number on the way does not fit. */
function sumInInt64(a: Form, b: Form): Omit<Form, 'format'> | undefined {
  if (b.value === 0n) return a
  if (a.value === 0n) return b
  const scale = Math.min(a.scale, b.scale)
  const [x, y] = [a, b].map((one) => one.value * 10n ** BigInt(one.scale - scale)) as [bigint, bigint]
  return [x, y, x + y].every(isInt64) ? { value: x + y, scale, isInt64: true } : undefined
}

function sumInDecimal(a: Form, b: Form): Omit<Form, 'format'> {
  const scale = Math.min(a.scale, b.scale)
  const value = a.value * 10n ** BigInt(a.scale - scale) + b.value * 10n ** BigInt(b.scale - scale)
  return { value, scale, isInt64: false }
}

/** As Go's math.Pow10, which multiplies two table entries. */
function powerOfTen(exponent: number): number {
  const size = Math.abs(exponent)
  if (size > 323) return exponent > 0 ? Infinity : 0
  const [large, small] = [Number(`1e${32 * Math.floor(size / 32)}`), Number(`1e${size % 32}`)]
  if (exponent >= 0) return size > 308 ? Infinity : large * small
  return Number(`1e-${32 * Math.floor(size / 32)}`) / small
}

/** Reads a quantity. Errors have the text of those of resource.ParseQuantity. */
export function parseQuantity(text: string): QuantityValue | CelError {
  const amount = parseAmount(text)
  return typeof amount === 'string' ? new CelError(quantityError(text)) : new QuantityValue(amount)
}

/** A whole number as a quantity. */
export function quantityOfInt(value: CelInt): QuantityValue {
  return new QuantityValue({ value: BigInt(value), scale: 0, format: 'DecimalExponent', isInt64: true })
}
