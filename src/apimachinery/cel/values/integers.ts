// Arithmetic of 64-bit integers: numbers while they are exact, bigints beyond, errors where 64 bits do not hold the
// result.
import { CelError, type CelInt, CelUint, intValue } from './value.ts'

export const intOverflow = new CelError('integer overflow')
const uintOverflow = new CelError('unsigned integer overflow')
const divisionByZero = new CelError('division by zero')
const modulusByZero = new CelError('modulus by zero')

export const maxInt64 = 0x7fff_ffff_ffff_ffffn
export const minInt64 = -0x8000_0000_0000_0000n
export const maxUint64 = 0xffff_ffff_ffff_ffffn

/** The int of any integer, or an overflow. */
export function checkedInt(value: bigint): CelInt | CelError {
  return value < minInt64 || value > maxInt64 ? intOverflow : intValue(value)
}

/** The uint of any integer, or an overflow. */
export function checkedUint(value: bigint): CelUint | CelError {
  return value < 0n || value > maxUint64 ? uintOverflow : new CelUint(value)
}

export function addInts(a: CelInt, b: CelInt): CelInt | CelError {
  if (typeof a === 'number' && typeof b === 'number') {
    const sum = a + b
    if (Number.isSafeInteger(sum)) return sum
  }
  return checkedInt(BigInt(a) + BigInt(b))
}

export function subtractInts(a: CelInt, b: CelInt): CelInt | CelError {
  if (typeof a === 'number' && typeof b === 'number') {
    const difference = a - b
    if (Number.isSafeInteger(difference)) return difference
  }
  return checkedInt(BigInt(a) - BigInt(b))
}

export function multiplyInts(a: CelInt, b: CelInt): CelInt | CelError {
  if (typeof a === 'number' && typeof b === 'number') {
    const product = a * b
    // -0 is no int.
    if (Number.isSafeInteger(product)) return product + 0
  }
  return checkedInt(BigInt(a) * BigInt(b))
}

export function divideInts(a: CelInt, b: CelInt): CelInt | CelError {
  if (b === 0) return divisionByZero
  if (typeof a === 'number' && typeof b === 'number') return Math.trunc(a / b) + 0
  return checkedInt(BigInt(a) / BigInt(b))
}

export function moduloInts(a: CelInt, b: CelInt): CelInt | CelError {
  if (b === 0) return modulusByZero
  if (typeof a === 'number' && typeof b === 'number') return (a % b) + 0
  const [dividend, divisor] = [BigInt(a), BigInt(b)]
  if (dividend === minInt64 && divisor === -1n) return intOverflow
  return intValue(dividend % divisor)
}

export function negateInt(value: CelInt): CelInt | CelError {
  return typeof value === 'number' ? 0 - value : checkedInt(-value)
}

export function addUints(a: CelUint, b: CelUint): CelUint | CelError {
  return checkedUint(a.value + b.value)
}

export function subtractUints(a: CelUint, b: CelUint): CelUint | CelError {
  return checkedUint(a.value - b.value)
}

export function multiplyUints(a: CelUint, b: CelUint): CelUint | CelError {
  return checkedUint(a.value * b.value)
}

export function divideUints(a: CelUint, b: CelUint): CelUint | CelError {
  return b.value === 0n ? divisionByZero : new CelUint(a.value / b.value)
}

export function moduloUints(a: CelUint, b: CelUint): CelUint | CelError {
  return b.value === 0n ? modulusByZero : new CelUint(a.value % b.value)
}
