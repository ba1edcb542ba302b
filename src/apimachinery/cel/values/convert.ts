// Conversions between types: int(), string(), duration() and their like.
import { checkedInt, checkedUint, intOverflow } from './integers.ts'
import { printDouble } from './print.ts'
import { parseDuration, parseTimestamp, printDuration, printTimestamp, timestampOfSeconds } from './times.ts'
import {
  CelDouble,
  CelDuration,
  CelError,
  CelTimestamp,
  CelTypeValue,
  CelUint,
  isInt,
  typeNameOf,
  type Value,
} from './value.ts'

const failed = (value: Value, target: string): CelError =>
  new CelError(`type conversion error from '${typeNameOf(value)}' to '${target}'`)

export function toInt(value: Value): Value {
  if (isInt(value)) return value
  if (value instanceof CelUint) return checkedInt(value.value)
  if (value instanceof CelDouble) {
    const { value: number } = value
    // The ends are left out, because a double cannot tell them from what lies beyond.
    if (!(number > -(2 ** 63) && number < 2 ** 63)) return intOverflow
    return checkedInt(BigInt(Math.trunc(number)))
  }
  if (value instanceof CelTimestamp) return value.seconds
  if (value instanceof CelDuration) return checkedInt(value.nanos)
  if (typeof value === 'string' && /^[+-]?\d+$/.test(value)) {
    const parsed = checkedInt(BigInt(value.replace(/^\+/, '')))
    if (!(parsed instanceof CelError)) return parsed
  }
  return failed(value, 'int')
}

export function toUint(value: Value): Value {
  if (value instanceof CelUint) return value
  if (isInt(value)) return checkedUint(BigInt(value))
  if (value instanceof CelDouble) {
    if (!(value.value >= 0 && value.value < 2 ** 64)) return checkedUint(-1n)
    return checkedUint(BigInt(Math.trunc(value.value)))
  }
  if (typeof value === 'string' && /^\d+$/.test(value)) {
    const parsed = checkedUint(BigInt(value))
    if (!(parsed instanceof CelError)) return parsed
  }
  return failed(value, 'uint')
}

const doubleText = /^[+-]?(?:\d+(?:_?\d)*\.?(?:\d*)|\.\d+)(?:[eE][+-]?\d+)?$/
const infinity = /^([+-]?)inf(?:inity)?$/i

export function toDouble(value: Value): Value {
  if (value instanceof CelDouble) return value
  if (isInt(value)) return new CelDouble(Number(value))
  if (value instanceof CelUint) return new CelDouble(Number(value.value))
  if (typeof value === 'string') {
    const parsed = parseDouble(value)
    if (parsed !== undefined) return new CelDouble(parsed)
  }
  return failed(value, 'double')
}

function parseDouble(text: string): number | undefined {
  if (/^nan$/i.test(text)) return NaN
  const infinite = infinity.exec(text)
  if (infinite !== null) return infinite[1] === '-' ? -Infinity : Infinity
  const hexadecimal = parseHexDouble(text)
  if (hexadecimal !== undefined) return hexadecimal
  if (!doubleText.test(text) || text.includes('_')) return undefined
  const number = Number(text)
  return Number.isFinite(number) ? number : undefined
}

function parseHexDouble(text: string): number | undefined {
  const match = /^([+-]?)0[xX]([0-9a-fA-F]*)\.?([0-9a-fA-F]*)[pP]([+-]?\d+)$/.exec(text)
  if (match === null) return undefined
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  if (whole + fraction === '') return undefined
  const number = parseInt(whole + fraction, 16) * 2 ** (Number(exponent) - 4 * fraction.length)
  return sign === '-' ? -number : number
}

const trueTexts: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True'])
const falseTexts: ReadonlySet<string> = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False'])

export function toBool(value: Value): Value {
  if (typeof value === 'boolean') return value
  if (typeof value === 'string' && trueTexts.has(value)) return true
  if (typeof value === 'string' && falseTexts.has(value)) return false
  return failed(value, 'bool')
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function toText(value: Value): Value {
  switch (typeof value) {
    case 'string':
      return value
    case 'number':
    case 'bigint':
    case 'boolean':
      return String(value)
    default:
  }
  if (value instanceof CelUint) return String(value.value)
  if (value instanceof CelDouble) return printDouble(value.value)
  if (value instanceof CelTimestamp) return printTimestamp(value)
  if (value instanceof CelDuration) return printDuration(value)
  if (value instanceof CelTypeValue) return value.name
  if (value === null) return 'null'
  if (!(value instanceof Uint8Array)) return failed(value, 'string')
  try {
    return strictUtf8.decode(value)
  } catch {
    return new CelError('invalid UTF-8 in bytes, cannot convert to string')
  }
}

export function toBytes(value: Value): Value {
  if (value instanceof Uint8Array) return value
  return typeof value === 'string' ? Buffer.from(value) : failed(value, 'bytes')
}

export function toDuration(value: Value): Value {
  if (value instanceof CelDuration) return value
  const parsed = typeof value === 'string' ? parseDuration(value) : undefined
  return parsed ?? failed(value, 'google.protobuf.Duration')
}

export function toTimestamp(value: Value): Value {
  if (value instanceof CelTimestamp) return value
  if (isInt(value)) return timestampOfSeconds(value)
  const parsed = typeof value === 'string' ? parseTimestamp(value) : undefined
  return parsed ?? failed(value, 'google.protobuf.Timestamp')
}
