// Optional values: `a.?b`, optional.of(), optMap() and what belongs to them.
import { type FunctionDeclaration, member, overload } from '#apimachinery/cel/declarations/declarations.ts'
import type { Expression } from '#apimachinery/cel/syntax/expression.ts'
import { argument, type Macro, type MacroCall, MacroError, targetOf } from '#apimachinery/cel/syntax/macro.ts'
import {
  boolType,
  type CelType,
  dynType,
  intType,
  listOf,
  mapOf,
  opaqueType,
  optionalOf,
  stringType,
  typeParam,
} from '#apimachinery/cel/types/cel-type.ts'
import { ArrayList } from '#apimachinery/cel/values/collections.ts'
import { printValue } from '#apimachinery/cel/values/print.ts'
import {
  CelDouble,
  CelDuration,
  CelError,
  CelList,
  CelMap,
  CelObject,
  CelOptional,
  CelTimestamp,
  CelUint,
  noSuchOverload,
  type Value,
} from '#apimachinery/cel/values/value.ts'

const value = typeParam('V')
const key = typeParam('K')
const optional = optionalOf(value)
const list = listOf(value)
const map = mapOf(key, value)

/** `optional_type` as a name in expressions. */
export const optionalTypeName: CelType = opaqueType('optional_type')

function isZero(of: Value): boolean {
  if (of === null || of === false || of === '' || of === 0) return true
  if (of instanceof CelList || of instanceof CelMap) return of.size === 0
  if (of instanceof Uint8Array) return of.length === 0
  if (of instanceof CelUint) return of.value === 0n
  if (of instanceof CelDouble) return of.value === 0
  if (of instanceof CelDuration) return of.nanos === 0n
  if (of instanceof CelTimestamp) return of.seconds === -62_135_596_800 && of.nanos === 0
  return of instanceof CelObject && of.isZero
}

function unwrap(of?: Value): Value {
  if (!(of instanceof CelList)) return noSuchOverload
  const found: Value[] = []
  for (let i = 0; i < of.size; i++) {
    const item = of.at(i)
    if (!(item instanceof CelOptional)) return new CelError(`value ${printValue(item)} is not optional`)
    if (item.value !== undefined) found.push(item.value)
  }
  return new ArrayList(found)
}

function end(of: Value | undefined, last: boolean): Value {
  if (!(of instanceof CelList)) return noSuchOverload
  return of.size === 0 ? CelOptional.none : new CelOptional(of.at(last ? of.size - 1 : 0))
}

const planned = (): Value => noSuchOverload

export const optionalFunctions: readonly FunctionDeclaration[] = [
  { name: 'optional.of', overloads: [overload('optional_of', [value], optional, (of = null) => new CelOptional(of))] },
  {
    name: 'optional.ofNonZeroValue',
    overloads: [
      overload('optional_ofNonZeroValue', [value], optional, (of = null) =>
        isZero(of) ? CelOptional.none : new CelOptional(of),
      ),
    ],
  },
  { name: 'optional.none', overloads: [overload('optional_none', [], optional, () => CelOptional.none)] },
  {
    name: 'value',
    overloads: [
      member('optional_value', [optional], value, (of) =>
        of instanceof CelOptional ? (of.value ?? new CelError('optional.none() dereference')) : noSuchOverload,
      ),
    ],
  },
  {
    name: 'hasValue',
    overloads: [
      member('optional_hasValue', [optional], boolType, (of) => of instanceof CelOptional && of.value !== undefined),
    ],
  },
  { name: 'or', overloads: [member('optional_or_optional', [optional, optional], optional, planned)] },
  { name: 'orValue', overloads: [member('optional_orValue_value', [optional, value], value, planned)] },
  { name: '_?._', overloads: [overload('select_optional_field', [dynType, stringType], optional, planned)] },
  {
    name: '_[?_]',
    overloads: [
      overload('list_optindex_optional_int', [list, intType], optional, planned),
      overload('optional_list_optindex_optional_int', [optionalOf(list), intType], optional, planned),
      overload('map_optindex_optional_value', [map, key], optional, planned),
      overload('optional_map_optindex_optional_value', [optionalOf(map), key], optional, planned),
    ],
  },
  {
    name: '_[_]',
    overloads: [
      overload('optional_list_index_int', [optionalOf(list), intType], optional, planned),
      overload('optional_map_index_value', [optionalOf(map), key], optional, planned),
    ],
  },
  { name: 'last', overloads: [member('list_last', [list], optional, (of) => end(of, true))] },
  { name: 'first', overloads: [member('list_first', [list], optional, (of) => end(of, false))] },
  { name: 'optional.unwrap', overloads: [overload('optional_unwrap', [listOf(optional)], list, unwrap)] },
  { name: 'unwrapOpt', overloads: [member('optional_unwrapOpt', [listOf(optional)], list, unwrap)] },
]

function expandMap(call: MacroCall, name: string, wrap: (mapped: Expression) => Expression): Expression {
  const { make, at } = call
  const variable = argument(call, 0)
  if (variable.kind !== 'identifier')
    throw new MacroError(variable, `${name}() variable name must be a simple identifier`)
  const target = targetOf(call)
  const hasValue = make.memberCall(at, target, 'hasValue')
  const bound = make.bind(at, variable.name, make.memberCall(at, make.copy(target), 'value'), argument(call, 1))
  return make.call(at, '_?_:_', hasValue, wrap(bound), make.call(at, 'optional.none'))
}

export const optionalMacros: readonly Macro[] = [
  {
    name: 'optMap',
    receiver: true,
    argCount: 2,
    expand: (call) => expandMap(call, 'optMap', (mapped) => call.make.call(call.at, 'optional.of', mapped)),
  },
  {
    name: 'optFlatMap',
    receiver: true,
    argCount: 2,
    expand: (call) => expandMap(call, 'optFlatMap', (mapped) => mapped),
  },
]
