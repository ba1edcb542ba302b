// The functions of the language: sizes, conversions, strings, times.
import {
  type FunctionDeclaration,
  type Implementation,
  member,
  overload,
} from '#apimachinery/cel/declarations/declarations.ts'
import { codePointCount } from '#apimachinery/cel/syntax/source.ts'
import {
  boolType,
  bytesType,
  type CelType,
  doubleType,
  durationType,
  dynType,
  intType,
  listOf,
  mapOf,
  nullType,
  stringType,
  timestampType,
  typeOf,
  typeParam,
  typeType,
  uintType,
} from '#apimachinery/cel/types/cel-type.ts'
import {
  toBool,
  toBytes,
  toDouble,
  toDuration,
  toInt,
  toText,
  toTimestamp,
  toUint,
} from '#apimachinery/cel/values/convert.ts'
import { timePart, type TimePart } from '#apimachinery/cel/values/times.ts'
import {
  CelDuration,
  CelError,
  CelList,
  CelMap,
  CelTimestamp,
  CelTypeValue,
  intValue,
  noSuchOverload,
  typeNameOf,
  type Value,
} from '#apimachinery/cel/values/value.ts'
import { lookAtText } from '#apimachinery/cel/values/work.ts'
import { operators } from './operators.ts'
import { matchesPattern } from './patterns.ts'

const paramA = typeParam('A')
const paramB = typeParam('B')

/** The number that size() gives; undefined for values without one. */
export function sizeOf(value: Value): number | undefined {
  if (typeof value === 'string') return sizeOfText(value)
  if (value instanceof CelList || value instanceof CelMap) return value.size
  return value instanceof Uint8Array ? value.length : undefined
}

/** The long text that was counted last: loops ask for the size of the same one again and again. */
let counted = { text: '', size: 0 }
const longText = 1024

function sizeOfText(text: string): number {
  if (text.length < longText) return codePointCount(text)
  if (counted.text === text) return counted.size
  lookAtText(text.length)
  counted = { text, size: codePointCount(text) }
  return counted.size
}

const size: FunctionDeclaration = {
  name: 'size',
  overloads: (
    [
      ['bytes', bytesType],
      ['list', listOf(paramA)],
      ['map', mapOf(paramA, paramB)],
      ['string', stringType],
    ] as const
  ).flatMap(([name, type]) => [
    overload(`size_${name}`, [type], intType, () => noSuchOverload),
    member(`${name}_size`, [type], intType, () => noSuchOverload),
  ]),
  all: (value = null) => sizeOf(value) ?? new CelError('no such overload: size'),
}

type Convert = (value: Value) => Value

function conversion(
  name: string,
  result: CelType,
  convert: Convert,
  from: Record<string, CelType>,
): FunctionDeclaration {
  const run: Implementation = (value) => convert(value ?? null)
  return { name, overloads: Object.entries(from).map(([id, type]) => overload(id, [type], result, run)) }
}

const conversions: readonly FunctionDeclaration[] = [
  {
    name: 'type',
    overloads: [overload('type', [paramA], typeOf(paramA), () => noSuchOverload)],
    all: (value = null) => new CelTypeValue(typeNameOf(value)),
  },
  {
    name: 'dyn',
    overloads: [overload('to_dyn', [paramA], dynType, () => noSuchOverload)],
    all: (value = null) => value,
  },
  conversion('bool', boolType, toBool, { bool_to_bool: boolType, string_to_bool: stringType }),
  conversion('bytes', bytesType, toBytes, { bytes_to_bytes: bytesType, string_to_bytes: stringType }),
  conversion('double', doubleType, toDouble, {
    double_to_double: doubleType,
    int64_to_double: intType,
    string_to_double: stringType,
    uint64_to_double: uintType,
  }),
  conversion('duration', durationType, toDuration, {
    duration_to_duration: durationType,
    int64_to_duration: intType,
    string_to_duration: stringType,
  }),
  conversion('int', intType, toInt, {
    int64_to_int64: intType,
    double_to_int64: doubleType,
    duration_to_int64: durationType,
    string_to_int64: stringType,
    timestamp_to_int64: timestampType,
    uint64_to_int64: uintType,
  }),
  conversion('string', stringType, toText, {
    string_to_string: stringType,
    bool_to_string: boolType,
    bytes_to_string: bytesType,
    double_to_string: doubleType,
    duration_to_string: durationType,
    int64_to_string: intType,
    timestamp_to_string: timestampType,
    uint64_to_string: uintType,
  }),
  conversion('timestamp', timestampType, toTimestamp, {
    timestamp_to_timestamp: timestampType,
    int64_to_timestamp: intType,
    string_to_timestamp: stringType,
  }),
  conversion('uint', uintType, toUint, {
    uint64_to_uint64: uintType,
    double_to_uint64: doubleType,
    int64_to_uint64: intType,
    string_to_uint64: stringType,
  }),
]

function stringTest(name: string, id: string, holds: (text: string, part: string) => boolean): FunctionDeclaration {
  const run: Implementation = (text, part) =>
    typeof text === 'string' && typeof part === 'string' ? holds(text, part) : noSuchOverload
  return { name, overloads: [member(id, [stringType, stringType], boolType, run, { guarded: false })] }
}

const strings: readonly FunctionDeclaration[] = [
  stringTest('contains', 'contains_string', (text, part) => text.includes(part)),
  stringTest('endsWith', 'ends_with_string', (text, part) => text.endsWith(part)),
  stringTest('startsWith', 'starts_with_string', (text, part) => text.startsWith(part)),
  {
    name: 'matches',
    overloads: [
      overload('matches', [stringType, stringType], boolType, () => noSuchOverload),
      member('matches_string', [stringType, stringType], boolType, () => noSuchOverload),
    ],
    all: matchesPattern,
  },
]

function timeFunction(
  name: TimePart,
  id: string,
  idWithZone: string,
  ofDuration?: [id: string, nanos: bigint],
): FunctionDeclaration {
  const part: Implementation = (time, zone) =>
    time instanceof CelTimestamp ? timePart(name, time, typeof zone === 'string' ? zone : undefined) : noSuchOverload
  const overloads = [
    member(id, [timestampType], intType, part),
    member(idWithZone, [timestampType, stringType], intType, part),
  ]
  if (ofDuration !== undefined) {
    const [durationId, nanos] = ofDuration
    overloads.push(
      member(durationId, [durationType], intType, (value) =>
        value instanceof CelDuration ? intValue(value.nanos / nanos) : noSuchOverload,
      ),
    )
  }
  return { name, overloads }
}

const times: readonly FunctionDeclaration[] = [
  timeFunction('getFullYear', 'timestamp_to_year', 'timestamp_to_year_with_tz'),
  timeFunction('getMonth', 'timestamp_to_month', 'timestamp_to_month_with_tz'),
  timeFunction('getDayOfYear', 'timestamp_to_day_of_year', 'timestamp_to_day_of_year_with_tz'),
  timeFunction('getDayOfMonth', 'timestamp_to_day_of_month', 'timestamp_to_day_of_month_with_tz'),
  timeFunction('getDate', 'timestamp_to_day_of_month_1_based', 'timestamp_to_day_of_month_1_based_with_tz'),
  timeFunction('getDayOfWeek', 'timestamp_to_day_of_week', 'timestamp_to_day_of_week_with_tz'),
  timeFunction('getHours', 'timestamp_to_hours', 'timestamp_to_hours_with_tz', [
    'duration_to_hours',
    3_600_000_000_000n,
  ]),
  timeFunction('getMinutes', 'timestamp_to_minutes', 'timestamp_to_minutes_with_tz', [
    'duration_to_minutes',
    60_000_000_000n,
  ]),
  timeFunction('getSeconds', 'timestamp_to_seconds', 'timestamp_to_seconds_tz', [
    'duration_to_seconds',
    1_000_000_000n,
  ]),
  timeFunction('getMilliseconds', 'timestamp_to_milliseconds', 'timestamp_to_milliseconds_with_tz', [
    'duration_to_milliseconds',
    1_000_000n,
  ]),
]

/** All functions that every expression may use. */
export const standardFunctions: readonly FunctionDeclaration[] = [
  ...operators,
  size,
  ...conversions,
  ...strings,
  ...times,
]

/** The types that every expression may name. */
export const standardTypes: readonly CelType[] = [
  boolType,
  bytesType,
  doubleType,
  durationType,
  intType,
  listOf(paramA),
  mapOf(paramA, paramB),
  nullType,
  stringType,
  timestampType,
  typeType,
  uintType,
]
