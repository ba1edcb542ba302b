// Order and equality of values, across numeric types too.
import {
  CelDouble,
  CelDuration,
  CelError,
  type CelInt,
  CelList,
  CelMap,
  CelObject,
  CelOptional,
  CelTimestamp,
  CelTypeValue,
  CelUint,
  isInt,
  noSuchOverload,
  type Value,
} from './value.ts'
import { lookAt, lookAtText, stepsOfEntry } from './work.ts'

const notOrdered = new CelError('NaN values cannot be ordered')

const sign = <T>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0)

/** -1, 0 or 1; an error where the values have no order. */
export function compare(a: Value, b: Value): number | CelError {
  if (typeof a === 'number' && typeof b === 'number') return a < b ? -1 : a > b ? 1 : 0
  if (typeof a === 'string') return typeof b === 'string' ? compareStrings(a, b) : errorOr(b)
  if (typeof a === 'boolean') return typeof b === 'boolean' ? sign(a, b) : errorOr(b)
  if (isInt(a) || a instanceof CelUint || a instanceof CelDouble) {
    if (isInt(b) || b instanceof CelUint || b instanceof CelDouble) return compareNumbers(a, b)
    return a instanceof CelDouble && Number.isNaN(a.value) ? notOrdered : errorOr(b)
  }
  if (a instanceof CelTimestamp && b instanceof CelTimestamp)
    return sign(a.seconds, b.seconds) || sign(a.nanos, b.nanos)
  if (a instanceof CelDuration && b instanceof CelDuration) return sign(a.nanos, b.nanos)
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b)
  return errorOr(b)
}

const errorOr = (value: Value): CelError => (value instanceof CelError ? value : noSuchOverload)

/** True for the values that < and its like accept on their left. */
export function isComparable(value: Value): boolean {
  return (
    typeof value === 'string' ||
    typeof value === 'boolean' ||
    isInt(value) ||
    value instanceof CelUint ||
    value instanceof CelDouble ||
    value instanceof CelTimestamp ||
    value instanceof CelDuration ||
    value instanceof Uint8Array
  )
}

type CelNumber = CelInt | CelUint | CelDouble

function compareNumbers(a: CelNumber, b: CelNumber): number | CelError {
  if (a instanceof CelDouble || b instanceof CelDouble) {
    if ((a instanceof CelDouble && Number.isNaN(a.value)) || (b instanceof CelDouble && Number.isNaN(b.value)))
      return notOrdered
    return a instanceof CelDouble ? compareDouble(a.value, b) : -compareDouble((b as CelDouble).value, a) + 0
  }
  const [left, right] = [a instanceof CelUint ? a.value : a, b instanceof CelUint ? b.value : b]
  return left < right ? -1 : left > right ? 1 : 0
}

// As in cel-go: beyond 64 bits a double decides, within them both are compared as doubles.
function compareDouble(a: number, b: CelNumber): number {
  if (b instanceof CelDouble) return sign(a, b.value)
  if (b instanceof CelUint) return a < 0 ? -1 : a > 2 ** 64 ? 1 : sign(a, Number(b.value))
  return a < -(2 ** 63) ? -1 : a > 2 ** 63 ? 1 : sign(a, Number(b))
}

// Order of UTF-8 bytes is order of code points, which UTF-16 units only give up to the surrogates.
function compareStrings(a: string, b: string): number {
  if (a === b) return 0
  lookAt(1)
  const end = Math.min(a.length, b.length)
  for (let i = 0; i < end; i++) {
    const [left, right] = [a.charCodeAt(i), b.charCodeAt(i)]
    if (left !== right)
      return isSurrogate(left) !== isSurrogate(right) ? (isSurrogate(left) ? 1 : -1) : sign(left, right)
  }
  return sign(a.length, b.length)
}

const isSurrogate = (unit: number): boolean => (unit & 0xf800) === 0xd800

/** Whether two values are the same. An error where a typed list or map does not know how to tell. */
export function equal(a: Value, b: Value): boolean | CelError {
  if (typeof a === 'string') return equalTexts(a, b)
  if (a === b) return true
  if (a === null || b === null) return false
  return equalBeside(a, b)
}

/** Equality where null is a value like any other, as the elements of typed lists are compared. */
export function equalBeside(a: Value, b: Value): boolean | CelError {
  if (typeof a === 'string') return equalTexts(a, b)
  if (a === b) return true
  if (a instanceof CelError) return a
  switch (typeof a) {
    case 'boolean':
      return false
    case 'number':
    case 'bigint':
      return isNumeric(b) && compareNumbers(a, b) === 0
    default:
  }
  if (a === null) return false
  if (a instanceof CelUint || a instanceof CelDouble) return isNumeric(b) && compareNumbers(a, b) === 0
  if (a instanceof CelList) lookAt(a.size)
  else if (a instanceof CelMap) lookAt(a.size * stepsOfEntry)
  if (a instanceof CelList) return a.equalTo === undefined ? equalLists(a, b) : a.equalTo(b)
  if (a instanceof CelMap) return a.equalTo === undefined ? equalMaps(a, b) : a.equalTo(b)
  if (a instanceof CelObject) return a.equalTo(b)
  if (a instanceof CelOptional) return equalOptionals(a, b)
  if (a instanceof CelTypeValue) return b instanceof CelTypeValue && a.name === b.name
  if (a instanceof Uint8Array) return b instanceof Uint8Array && equalBytes(a, b)
  if (a instanceof CelDuration) return b instanceof CelDuration && a.nanos === b.nanos
  return b instanceof CelTimestamp && a.seconds === b.seconds && a.nanos === b.nanos
}

function equalTexts(a: string, b: Value): boolean {
  if (typeof b !== 'string' || a.length !== b.length) return false
  lookAtText(a.length)
  return a === b
}

function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  lookAtText(a.length)
  return Buffer.compare(a, b) === 0
}

const isNumeric = (value: Value): value is CelNumber =>
  isInt(value) || value instanceof CelUint || value instanceof CelDouble

function equalLists(a: CelList, b: Value): boolean {
  if (!(b instanceof CelList) || a.size !== b.size) return false
  lookAt(a.size * (a.depth + b.depth))
  for (let i = 0; i < a.size; i++) if (equal(a.at(i), b.at(i)) === false) return false
  return true
}

/** Equality of lists with a schema: other values are no lists to compare with, and null is a value like any other. */
export function equalTypedLists(a: CelList, b: Value): boolean | CelError {
  if (!(b instanceof CelList)) return noSuchOverload
  if (a.size !== b.size) return false
  for (let i = 0; i < a.size; i++) {
    const same = equalBeside(a.at(i), b.at(i))
    if (same !== true) return same
  }
  return true
}

function equalMaps(a: CelMap, b: Value): boolean {
  if (!(b instanceof CelMap) || a.size !== b.size) return false
  for (const key of a.keys()) {
    const other = b.find(key)
    if (other === undefined || equal(a.find(key) ?? null, other) === false) return false
  }
  return true
}

function equalOptionals(a: CelOptional, b: Value): boolean | CelError {
  if (!(b instanceof CelOptional)) return false
  if (a.value === undefined || b.value === undefined) return a.value === b.value
  return equalBeside(a.value, b.value)
}
