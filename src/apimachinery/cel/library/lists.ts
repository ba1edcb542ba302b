// List functions: Kubernetes' own, the sets of cel-go, and cel-go's lists in version 3.
import {
  type FunctionDeclaration,
  type Implementation,
  member,
  overload,
} from '#apimachinery/cel/declarations/declarations.ts'
import type { Macro } from '#apimachinery/cel/syntax/macro.ts'
import { argument, MacroError, targetOf } from '#apimachinery/cel/syntax/macro.ts'
import { expandMap } from '#apimachinery/cel/syntax/standard-macros.ts'
import {
  boolType,
  bytesType,
  type CelType,
  doubleType,
  durationType,
  dynType,
  intType,
  listOf,
  stringType,
  timestampType,
  typeParam,
  uintType,
} from '#apimachinery/cel/types/cel-type.ts'
import { ArrayList, contains, itemsOf } from '#apimachinery/cel/values/collections.ts'
import { compare, equal, isComparable } from '#apimachinery/cel/values/compare.ts'
import {
  CelDouble,
  CelDuration,
  CelError,
  CelList,
  CelUint,
  noSuchOverload,
  typeNameOf,
  type Value,
} from '#apimachinery/cel/values/value.ts'
import { lookAt } from '#apimachinery/cel/values/work.ts'
import { operators } from './operators.ts'

const summable: readonly (readonly [string, CelType, Value])[] = [
  ['int', intType, 0],
  ['uint', uintType, new CelUint(0n)],
  ['double', doubleType, new CelDouble(0)],
  ['duration', durationType, new CelDuration(0n)],
]
const comparable: readonly (readonly [string, CelType])[] = [
  ['int', intType],
  ['uint', uintType],
  ['double', doubleType],
  ['bool', boolType],
  ['duration', durationType],
  ['timestamp', timestampType],
  ['string', stringType],
  ['bytes', bytesType],
]

const ofList =
  (run: (list: CelList) => Value): Implementation =>
  (list) =>
    list instanceof CelList ? run(list) : noSuchOverload

const isSorted = ofList((list) => {
  for (let i = 0; i < list.size; i++) {
    const item = list.at(i)
    if (!isComparable(item)) return item instanceof CelError ? item : noSuchOverload
    if (i > 0 && compare(list.at(i - 1), item) === 1) return false
  }
  return true
})

const plus = operators.find(({ name }) => name === '_+_')?.all ?? (() => noSuchOverload)

const sumFrom = (zero: Value): Implementation =>
  ofList((list) => {
    let total = zero
    for (let i = 0; i < list.size && !(total instanceof CelError); i++) total = plus(total, list.at(i))
    return total
  })

const extreme = (name: string, replacedAt: number): Implementation =>
  ofList((list) => {
    if (list.size === 0) return new CelError(`${name} called on empty list`)
    let found = list.at(0)
    for (let i = 0; i < list.size; i++) {
      const item = list.at(i)
      if (!isComparable(item)) return item instanceof CelError ? item : noSuchOverload
      if (compare(found, item) === replacedAt) found = item
    }
    return found
  })

function search(last: boolean): Implementation {
  return (list, item = null) => {
    if (!(list instanceof CelList)) return noSuchOverload
    lookAt(list.size * (1 + list.depth))
    for (let n = 0; n < list.size; n++) {
      const i = last ? list.size - 1 - n : n
      if (equal(list.at(i), item) === true) return i
    }
    return -1
  }
}

const paramA = typeParam('A')

/** isSorted, sum, min, max, indexOf and lastIndexOf. */
export const kubernetesListFunctions: readonly FunctionDeclaration[] = [
  {
    name: 'isSorted',
    overloads: comparable.map(([name, type]) =>
      member(`list_${name}_is_sorted_bool`, [listOf(type)], boolType, isSorted),
    ),
  },
  {
    name: 'sum',
    overloads: summable.map(([name, type, zero]) =>
      member(`list_${name}_sum_${name}`, [listOf(type)], type, sumFrom(zero)),
    ),
  },
  ...(['max', 'min'] as const).map((fn) => ({
    name: fn,
    overloads: comparable.map(([name, type]) =>
      member(`list_${name}_${fn}_${name}`, [listOf(type)], type, extreme(fn, fn === 'max' ? -1 : 1)),
    ),
  })),
  {
    name: 'indexOf',
    overloads: [member('list_a_index_of_int', [listOf(paramA), paramA], intType, search(false))],
  },
  {
    name: 'lastIndexOf',
    overloads: [member('list_a_last_index_of_int', [listOf(paramA), paramA], intType, search(true))],
  },
]

const listT = listOf(typeParam('T'))

const containsAll = (list: CelList, part: CelList): boolean => itemsOf(part).every((item) => contains(list, item))

function setFunction(name: string, holds: (a: CelList, b: CelList) => boolean): FunctionDeclaration {
  const run: Implementation = (a, b) => (a instanceof CelList && b instanceof CelList ? holds(a, b) : noSuchOverload)
  return { name: `sets.${name}`, overloads: [overload(`list_sets_${name}_list`, [listT, listT], boolType, run)] }
}

export const setFunctions: readonly FunctionDeclaration[] = [
  setFunction('contains', containsAll),
  setFunction('equivalent', (a, b) => containsAll(a, b) && containsAll(b, a)),
  setFunction('intersects', (a, b) => itemsOf(a).some((item) => contains(b, item))),
]

const slice: Implementation = (list, from, to) => {
  if (!(list instanceof CelList)) return noSuchOverload
  const [start, end] = [Number(from), Number(to)]
  const shown = `cannot slice(${String(start)}, ${String(end)})`
  if (start < 0 || end < 0) return new CelError(`${shown}, negative indexes not supported`)
  if (start > end) return new CelError(`${shown}, start index must be less than or equal to end index`)
  if (list.size < end) return new CelError(`${shown}, list is length ${String(list.size)}`)
  return new ArrayList(itemsOf(list).slice(start, end))
}

function flattenInto(out: Value[], list: CelList, depth: number): Value[] {
  lookAt(list.size)
  for (const item of itemsOf(list)) {
    if (item instanceof CelList && depth > 0) flattenInto(out, item, depth - 1)
    else out.push(item)
  }
  return out
}

const flatten: Implementation = (list, depth = 1) => {
  if (!(list instanceof CelList)) return noSuchOverload
  return Number(depth) < 0
    ? new CelError('level must be non-negative')
    : new ArrayList(flattenInto([], list, Number(depth)))
}

const sortBy: Implementation = (list, keys) => {
  if (!(list instanceof CelList) || !(keys instanceof CelList)) return noSuchOverload
  if (list.size !== keys.size)
    return new CelError(
      '@sortByAssociatedKeys() expected a list of the same size as the associated keys list, ' +
        `but got ${String(list.size)} and ${String(keys.size)} elements respectively`,
    )
  if (list.size === 0) return list
  const first = keys.at(0)
  if (!isComparable(first)) return new CelError('list elements must be comparable')
  const pairs = itemsOf(list).map((item, i) => ({ item, key: keys.at(i) }))
  if (pairs.some(({ key }) => typeNameOf(key) !== typeNameOf(first)))
    return new CelError('list elements must have the same type')
  pairs.sort((a, b) => {
    const order = compare(a.key, b.key)
    return order instanceof CelError ? 0 : order
  })
  return new ArrayList(pairs.map(({ item }) => item))
}

// Each element is compared with those that were kept: the cost of a call covers that.
const distinct = ofList((list) => {
  const kept: Value[] = []
  for (const item of itemsOf(list)) {
    lookAt(kept.length)
    if (!kept.some((other) => equal(item, other) === true)) kept.push(item)
  }
  return new ArrayList(kept)
})

// The largest list that a range may make: its cost is known only once it is there.
const maxRange = 1_000_000

function range(length?: Value): Value {
  const count = Math.max(0, Number(length))
  if (count > maxRange) return new CelError(`lists.range(${String(count)}) is larger than ${String(maxRange)}`)
  return new ArrayList(Array.from({ length: count }, (_, i) => i))
}

/** slice, flatten, sort, distinct, reverse and lists.range. */
export const listFunctions: readonly FunctionDeclaration[] = [
  { name: 'slice', overloads: [member('list_slice', [listT, intType, intType], listT, slice)] },
  {
    name: 'flatten',
    overloads: [
      member('list_flatten', [listOf(listT)], listT, flatten, { guarded: false }),
      member('list_flatten_int', [listOf(dynType), intType], listOf(dynType), flatten, { guarded: false }),
    ],
  },
  {
    name: 'sort',
    overloads: comparable.map(([, type]) =>
      member(`list_${type.name}_sort`, [listOf(type)], listOf(type), () => noSuchOverload),
    ),
    all: (list) => sortBy(list ?? null, list ?? null),
  },
  {
    name: '@sortByAssociatedKeys',
    overloads: comparable.map(([, type]) =>
      member(`list_${type.name}_sortByAssociatedKeys`, [listT, listOf(type)], listT, () => noSuchOverload),
    ),
    all: sortBy,
  },
  { name: 'lists.range', overloads: [overload('lists_range', [intType], listOf(intType), range)] },
  {
    name: 'reverse',
    overloads: [
      member(
        'list_reverse',
        [listT],
        listT,
        ofList((list) => new ArrayList(itemsOf(list).toReversed())),
      ),
    ],
  },
  { name: 'distinct', overloads: [member('list_distinct', [listT], listT, distinct)] },
]

const sortByInput = '@__sortBy_input__'

export const sortByMacro: Macro = {
  name: 'sortBy',
  receiver: true,
  argCount: 2,
  expand: (call) => {
    const { make, at } = call
    const target = targetOf(call)
    argument(call, 1)
    if (target.kind === 'literal' || target.kind === 'map' || target.kind === 'struct')
      throw new MacroError(
        target,
        'sortBy can only be applied to a list, identifier, comprehension, call or select expression',
      )
    const keys = expandMap(call, make.identifier(at, sortByInput))
    const sorted = make.memberCall(at, make.identifier(at, sortByInput), '@sortByAssociatedKeys', keys)
    return make.bind(at, sortByInput, target, sorted)
  },
}
