// Values as Go prints them in messages and conversions.
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
import { lookAt } from './work.ts'

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

/** A value by Go's %v, as runtime errors show it. */
export function printValue(value: Value): string {
  if (value === null) return 'null'
  if (value instanceof Uint8Array) return `[${Array.from(value).join(' ')}]`
  if (value instanceof CelUint) return String(value.value)
  if (value instanceof CelDouble) return printDouble(value.value)
  if (value instanceof CelTimestamp) return printTimestamp(value)
  if (value instanceof CelDuration) return printDuration(value)
  if (value instanceof CelTypeValue) return value.name
  if (value instanceof CelOptional)
    return value.value === undefined ? 'optional.none()' : `optional(${printValue(value.value)})`
  if (value instanceof CelError) return value.message
  if (value instanceof CelList || value instanceof CelMap) lookAt(value.size)
  if (value instanceof CelList)
    return `[${Array.from({ length: value.size }, (_, i) => printValue(value.at(i))).join(', ')}]`
  if (value instanceof CelMap)
    return `{${value
      .keys()
      .map((key) => `${printValue(key)}: ${printValue(value.find(key) ?? null)}`)
      .join(', ')}}`
  if (value instanceof CelObject) return value.typeName
  return String(value)
}
