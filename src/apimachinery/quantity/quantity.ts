// resource.Quantity: numbers with a suffix, printed in upstream's canonical form.
import { remember } from '#apimachinery/memo/index.ts'
import { nanosOf, parseAmount, type QuantityFormat } from './parse-amount.ts'
import { binarySuffixes, decimalExponents } from './suffixes.ts'

/** A parsed quantity and the format in which it is printed. */
export interface Quantity {
  /** The amount in billionths, the finest unit of a quantity. */
  readonly nanos: bigint
  readonly format: QuantityFormat
}

const nano = 1_000_000_000n
const decimalSuffixes = new Map(Object.entries(decimalExponents).map(([suffix, exponent]) => [exponent, suffix]))
/**
 * Quantities of recent short texts: a write parses each quantity of a workload several times, and most workloads use
 * the same few.
 */
const parsed = new Map<string, Quantity>()
/** Maximum number of kept quantities, and maximum length of their texts in characters. */
const [maxParsed, maxParsedText] = [1000, 16]

/** Parses a quantity; undefined if the text is not one. Rounds away from zero to billionths. */
export function tryQuantity(text: string): Quantity | undefined {
  const known = parsed.get(text)
  if (known !== undefined) return known
  const amount = parseAmount(text)
  if (typeof amount === 'string') return undefined
  const quantity = { nanos: nanosOf(amount), format: amount.format }
  return text.length > maxParsedText ? quantity : remember(parsed, text, quantity, { max: maxParsed })
}

/**
 * The text that Go prints for a quantity that it parsed from `text`: the same text if Go takes it for canonical,
 * although it may have a sign, a final dot or another form of its exponent; else the canonical text.
 */
export function printedQuantity(text: string, quantity: Quantity): string {
  const amount = parseAmount(text)
  return typeof amount !== 'string' && amount.isCanonical ? text : quantityText(quantity)
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

/**
 * The canonical text of a quantity: the largest suffix that needs no fraction. Binary suffixes are for whole numbers
 * from 1024 on: `1.1Gi` is printed as `1181116006400m`. As upstream, an amount without a fitting suffix is printed
 * without a suffix.
 */
export function quantityText({ nanos, format }: Quantity): string {
  if (nanos === 0n) return '0'
  const isLarge = nanos >= 1024n * nano || nanos <= -1024n * nano
  if (format === 'BinarySI' && isLarge && nanos % nano === 0n) return binaryText(nanos / nano)
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
  return `${amount}${decimalSuffixes.get(exponent) ?? ''}`
}

function binaryText(whole: bigint): string {
  let amount = whole
  let power = 0
  while (amount % 1024n === 0n) {
    amount /= 1024n
    power++
  }
  return `${amount}${binarySuffixes[power] ?? ''}`
}
