// Values of CEL as this program holds them. An int is a number, or a bigint where a number would not be exact; strings,
// booleans and null are themselves; everything else has a class.

export type CelInt = number | bigint

/** A failed computation: it travels as a value, because && and || may swallow it. */
export class CelError {
  readonly message: string

  constructor(message: string) {
    this.message = message
  }
}

export class CelDouble {
  readonly value: number

  constructor(value: number) {
    this.value = value
  }
}

export class CelUint {
  readonly value: bigint

  constructor(value: bigint) {
    this.value = value
  }
}

/** A point in time: seconds since 1970 in UTC, and nanoseconds from 0 to 999,999,999. */
export class CelTimestamp {
  readonly seconds: number
  readonly nanos: number

  constructor(seconds: number, nanos: number) {
    this.seconds = seconds
    this.nanos = nanos
  }
}

export class CelDuration {
  readonly nanos: bigint

  constructor(nanos: bigint) {
    this.nanos = nanos
  }
}

/** A type as a value: what type() gives. */
export class CelTypeValue {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

export class CelOptional {
  static readonly none = new CelOptional(undefined)
  readonly value: Value | undefined

  constructor(value: Value | undefined) {
    this.value = value
  }
}

export abstract class CelList {
  abstract readonly size: number
  /** Through how many other lists an element is looked up. */
  readonly depth: number = 0
  /** The element at an index within the list. */
  abstract at(index: number): Value
  /** Whether another list is the same, where the list has a rule of its own. */
  equalTo?(other: Value): boolean | CelError
  /** The list with another appended, where the list has a rule of its own. */
  append?(other: CelList): CelList
}

export abstract class CelMap {
  abstract readonly size: number
  /** The value of a key; undefined where there is none; an error where the key can be none. */
  abstract find(key: Value): Value | undefined
  abstract keys(): readonly Value[]
  equalTo?(other: Value): boolean | CelError
}

/** A value of a type that a library brings along. */
export abstract class CelObject {
  abstract readonly typeName: string
  abstract equalTo(other: Value): boolean | CelError
  /** The size that costs count with, where the type has one. */
  get size(): number | undefined {
    return undefined
  }
  /** The value of a field; undefined where fields cannot be read. */
  get(_field: string): Value | undefined {
    return undefined
  }
  /** Whether a field is set; undefined where fields cannot be read. */
  has(_field: string): boolean | undefined {
    return undefined
  }
  /** Whether the value counts as empty for optional.ofNonZeroValue(). */
  get isZero(): boolean {
    return false
  }
}

export type Value =
  | null
  | boolean
  | CelInt
  | string
  | Uint8Array
  | CelDouble
  | CelUint
  | CelTimestamp
  | CelDuration
  | CelTypeValue
  | CelOptional
  | CelList
  | CelMap
  | CelObject
  | CelError

export const noSuchOverload = new CelError('no such overload')

/** The int of a bigint that is known to fit 64 bits. */
export function intValue(value: bigint): CelInt {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

export const isInt = (value: Value): value is CelInt => typeof value === 'number' || typeof value === 'bigint'

/** The name of the type that a value has while a program runs. */
export function typeNameOf(value: Value): string {
  switch (typeof value) {
    case 'string':
      return 'string'
    case 'number':
    case 'bigint':
      return 'int'
    case 'boolean':
      return 'bool'
    default:
  }
  if (value === null) return 'null_type'
  if (value instanceof CelMap) return 'map'
  if (value instanceof CelList) return 'list'
  if (value instanceof CelDouble) return 'double'
  if (value instanceof CelUint) return 'uint'
  if (value instanceof CelObject) return value.typeName
  if (value instanceof CelOptional) return 'optional_type'
  if (value instanceof CelTimestamp) return 'google.protobuf.Timestamp'
  if (value instanceof CelDuration) return 'google.protobuf.Duration'
  if (value instanceof CelTypeValue) return 'type'
  if (value instanceof Uint8Array) return 'bytes'
  return 'error'
}
