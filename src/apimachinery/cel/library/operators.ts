// Arithmetic, comparison and logical operators, by the types that their operands have at run time.
import {
  type FunctionDeclaration,
  type Implementation,
  overload,
  type Overload,
} from '#apimachinery/cel/declarations/declarations.ts'
import { notStrictlyFalse } from '#apimachinery/cel/values/not-strictly-false.ts'
import {
  boolType,
  bytesType,
  type CelType,
  doubleType,
  durationType,
  intType,
  listOf,
  mapOf,
  stringType,
  timestampType,
  typeParam,
  uintType,
} from '#apimachinery/cel/types/cel-type.ts'
import { concatenate, contains } from '#apimachinery/cel/values/collections.ts'
import { compare, isComparable } from '#apimachinery/cel/values/compare.ts'
import {
  addInts,
  addUints,
  divideInts,
  divideUints,
  moduloInts,
  moduloUints,
  multiplyInts,
  multiplyUints,
  negateInt,
  subtractInts,
  subtractUints,
} from '#apimachinery/cel/values/integers.ts'
import {
  addDurations,
  addToTimestamp,
  negateDuration,
  subtractDurations,
  subtractFromTimestamp,
  subtractTimestamps,
} from '#apimachinery/cel/values/times.ts'
import {
  CelDouble,
  CelDuration,
  CelError,
  CelList,
  CelMap,
  CelTimestamp,
  CelUint,
  isInt,
  noSuchOverload,
  type Value,
} from '#apimachinery/cel/values/value.ts'
import { lookAt, maxTextLength, textTooLong } from '#apimachinery/cel/values/work.ts'

type Binary = (a: Value, b: Value) => Value

const paramA = typeParam('A')
const paramB = typeParam('B')
const unreachable: Implementation = () => noSuchOverload

// What an operand answers that has no such operator: values with methods of their own do not name it.
function without(operator: string, value: Value): CelError {
  const named = !(typeof value === 'string' || value instanceof CelTimestamp || value instanceof CelDuration)
  return named ? new CelError(`no such overload: ${operator}`) : noSuchOverload
}

/** Bytes and UTF-16 units of new texts in one step: what a run makes is in memory at once. */
const madeInOneStep = 8

function addTexts(a: string, b: string): Value {
  const length = a.length + b.length
  if (length > maxTextLength) return textTooLong
  lookAt(Math.ceil(length / madeInOneStep))
  return a + b
}

function addBytes(a: Uint8Array, b: Uint8Array): Value {
  const length = a.length + b.length
  if (length > maxTextLength) return textTooLong
  lookAt(Math.ceil(length / madeInOneStep))
  return Buffer.concat([a, b])
}

const add: Binary = (a, b) => {
  if (isInt(a)) return isInt(b) ? addInts(a, b) : noSuchOverload
  if (typeof a === 'string') return typeof b === 'string' ? addTexts(a, b) : noSuchOverload
  if (a instanceof CelList) return b instanceof CelList ? concatenate(a, b) : noSuchOverload
  if (a instanceof CelDouble) return b instanceof CelDouble ? new CelDouble(a.value + b.value) : noSuchOverload
  if (a instanceof CelUint) return b instanceof CelUint ? addUints(a, b) : noSuchOverload
  if (a instanceof Uint8Array) return b instanceof Uint8Array ? addBytes(a, b) : noSuchOverload
  if (a instanceof CelTimestamp) return b instanceof CelDuration ? addToTimestamp(a, b) : noSuchOverload
  if (!(a instanceof CelDuration)) return without('_+_', a)
  if (b instanceof CelTimestamp) return addToTimestamp(b, a)
  return b instanceof CelDuration ? addDurations(a, b) : noSuchOverload
}

const subtract: Binary = (a, b) => {
  if (isInt(a)) return isInt(b) ? subtractInts(a, b) : noSuchOverload
  if (a instanceof CelDouble) return b instanceof CelDouble ? new CelDouble(a.value - b.value) : noSuchOverload
  if (a instanceof CelUint) return b instanceof CelUint ? subtractUints(a, b) : noSuchOverload
  if (a instanceof CelDuration) return b instanceof CelDuration ? subtractDurations(a, b) : noSuchOverload
  if (!(a instanceof CelTimestamp)) return without('_-_', a)
  if (b instanceof CelTimestamp) return subtractTimestamps(a, b)
  return b instanceof CelDuration ? subtractFromTimestamp(a, b) : noSuchOverload
}

const multiply: Binary = (a, b) => {
  if (isInt(a)) return isInt(b) ? multiplyInts(a, b) : noSuchOverload
  if (a instanceof CelDouble) return b instanceof CelDouble ? new CelDouble(a.value * b.value) : noSuchOverload
  if (a instanceof CelUint) return b instanceof CelUint ? multiplyUints(a, b) : noSuchOverload
  return without('_*_', a)
}

const divide: Binary = (a, b) => {
  if (isInt(a)) return isInt(b) ? divideInts(a, b) : noSuchOverload
  if (a instanceof CelDouble) return b instanceof CelDouble ? new CelDouble(a.value / b.value) : noSuchOverload
  if (a instanceof CelUint) return b instanceof CelUint ? divideUints(a, b) : noSuchOverload
  return without('_/_', a)
}

const modulo: Binary = (a, b) => {
  if (isInt(a)) return isInt(b) ? moduloInts(a, b) : noSuchOverload
  if (a instanceof CelUint) return b instanceof CelUint ? moduloUints(a, b) : noSuchOverload
  return without('_%_', a)
}

function negate(value: Value): Value {
  if (isInt(value)) return negateInt(value)
  if (value instanceof CelDouble) return new CelDouble(-value.value)
  if (value instanceof CelDuration) return negateDuration(value)
  return typeof value === 'boolean' ? noSuchOverload : without('-_', value)
}

function ordered(operator: string, holds: (order: number) => boolean): Binary {
  return (a, b) => {
    if (!isComparable(a)) return without(operator, a)
    const order = compare(a, b)
    return order instanceof CelError ? order : holds(order)
  }
}

const within: Binary = (value, container) => {
  if (container instanceof CelList) return contains(container, value)
  if (!(container instanceof CelMap)) return noSuchOverload
  const found = container.find(value)
  return found instanceof CelError ? found : found !== undefined
}

const binary =
  (run: Binary): Implementation =>
  (a, b) =>
    run(a ?? null, b ?? null)

const same = (id: string, type: CelType, result = type): Overload => overload(id, [type, type], result, unreachable)

function comparison(name: string, prefix: string, holds: (order: number) => boolean): FunctionDeclaration {
  const numbers = [
    ['int64', intType],
    ['uint64', uintType],
    ['double', doubleType],
  ] as const
  const others = [
    ['string', stringType],
    ['bytes', bytesType],
    ['timestamp', timestampType],
    ['duration', durationType],
  ] as const
  const mixed = numbers.flatMap(([left, a]) =>
    numbers.map(([right, b]) =>
      overload(left === right ? `${prefix}_${left}` : `${prefix}_${left}_${right}`, [a, b], boolType, unreachable),
    ),
  )
  const rest = others.map(([type, celType]) => same(`${prefix}_${type}`, celType, boolType))
  const overloads = [same(`${prefix}_bool`, boolType, boolType), ...mixed, ...rest]
  return { name, overloads, all: binary(ordered(name, holds)) }
}

/** The operators of the language. */
export const operators: readonly FunctionDeclaration[] = [
  {
    name: '_?_:_',
    overloads: [overload('conditional', [boolType, paramA, paramA], paramA, unreachable)],
    all: unreachable,
  },
  { name: '_&&_', overloads: [same('logical_and', boolType)], all: unreachable },
  { name: '_||_', overloads: [same('logical_or', boolType)], all: unreachable },
  {
    name: '!_',
    overloads: [overload('logical_not', [boolType], boolType, unreachable)],
    all: (value) => (typeof value === 'boolean' ? !value : noSuchOverload),
  },
  {
    name: '@not_strictly_false',
    overloads: [overload('not_strictly_false', [boolType], boolType, unreachable)],
    all: notStrictlyFalse,
  },
  { name: '_==_', overloads: [same('equals', paramA, boolType)], all: unreachable },
  { name: '_!=_', overloads: [same('not_equals', paramA, boolType)], all: unreachable },
  {
    name: '_+_',
    overloads: [
      same('add_bytes', bytesType),
      same('add_double', doubleType),
      same('add_duration_duration', durationType),
      overload('add_duration_timestamp', [durationType, timestampType], timestampType, unreachable),
      overload('add_timestamp_duration', [timestampType, durationType], timestampType, unreachable),
      same('add_int64', intType),
      same('add_list', listOf(paramA)),
      same('add_string', stringType),
      same('add_uint64', uintType),
    ],
    all: binary(add),
  },
  {
    name: '_-_',
    overloads: [
      same('subtract_double', doubleType),
      same('subtract_duration_duration', durationType),
      same('subtract_int64', intType),
      overload('subtract_timestamp_duration', [timestampType, durationType], timestampType, unreachable),
      same('subtract_timestamp_timestamp', timestampType, durationType),
      same('subtract_uint64', uintType),
    ],
    all: binary(subtract),
  },
  {
    name: '_*_',
    overloads: [
      same('multiply_double', doubleType),
      same('multiply_int64', intType),
      same('multiply_uint64', uintType),
    ],
    all: binary(multiply),
  },
  {
    name: '_/_',
    overloads: [same('divide_double', doubleType), same('divide_int64', intType), same('divide_uint64', uintType)],
    all: binary(divide),
  },
  { name: '_%_', overloads: [same('modulo_int64', intType), same('modulo_uint64', uintType)], all: binary(modulo) },
  {
    name: '-_',
    overloads: [
      overload('negate_double', [doubleType], doubleType, unreachable),
      overload('negate_int64', [intType], intType, unreachable),
    ],
    all: (value) => negate(value ?? null),
  },
  comparison('_<_', 'less', (order) => order < 0),
  comparison('_<=_', 'less_equals', (order) => order <= 0),
  comparison('_>_', 'greater', (order) => order > 0),
  comparison('_>=_', 'greater_equals', (order) => order >= 0),
  {
    name: '_[_]',
    overloads: [
      overload('index_list', [listOf(paramA), intType], paramA, unreachable),
      overload('index_map', [mapOf(paramA, paramB), paramA], paramB, unreachable),
    ],
    all: unreachable,
  },
  {
    name: '@in',
    overloads: [
      overload('in_list', [paramA, listOf(paramA)], boolType, unreachable),
      overload('in_map', [paramA, mapOf(paramA, paramB)], boolType, unreachable),
    ],
    all: binary(within),
  },
]
