// Values as Go prints them in messages and conversions.
import { itemsOf } from './collections.ts'
import { plainNumber, printDuration, printTimestamp } from './times.ts'
import {
  CelDouble,
  CelDuration,
  CelError,
  CelList,
  CelMap,
  CelObject,
  CelOptional,
  CelTimestamp,
  CelTypeValue,
  CelUint,
  type Value,
} from './value.ts'
import { lookAtPrinted, lookAtText } from './work.ts'

/** A double by Go's %g: shortest digits, an exponent below 1e-4 and from 1e6. */
export function printDouble(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  if (value === 0) return Object.is(value, -0) ? '-0' : '0'
  const [mantissa = '', exponentText = '0'] = value.toExponential().split('e')
  const exponent = Number(exponentText)
  if (exponent >= -4 && exponent < 6) return plainNumber(value)
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`
}

/** The parts of a list or a map with what surrounds them. Counts the text that this copies. */
export function printParts(open: string, parts: readonly string[], close: string): string {
  lookAtPrinted(parts.reduce((sum, part) => sum + part.length, 0))
  return open + parts.join(', ') + close
}

/** A value by Go's %v, as runtime errors show it. */
export function printValue(value: Value): string {
  if (value === null) return 'null'
  if (typeof value === 'string') {
    lookAtText(value.length)
    return value
  }
  if (value instanceof Uint8Array) {
    lookAtPrinted(value.length * 4)
    return `[${Array.from(value).join(' ')}]`
  }
  if (value instanceof CelUint) return String(value.value)
  if (value instanceof CelDouble) return printDouble(value.value)
  if (value instanceof CelTimestamp) return printTimestamp(value)
  if (value instanceof CelDuration) return printDuration(value)
  if (value instanceof CelTypeValue) return value.name
  if (value instanceof CelOptional)
    return value.value === undefined ? 'optional.none()' : `optional(${printValue(value.value)})`
  if (value instanceof CelError) return value.message
  if (value instanceof CelList) return printParts('[', itemsOf(value).map(printElement), ']')
  if (value instanceof CelMap)
    return printParts(
      '{',
      value.keys().map((key) => `${printElement(key)}: ${printElement(value.find(key) ?? null)}`),
      '}',
    )
  if (value instanceof CelObject) return value.typeName
  return String(value)
}

function printElement(value: Value): string {
  lookAtPrinted(0)
  return printValue(value)
}
