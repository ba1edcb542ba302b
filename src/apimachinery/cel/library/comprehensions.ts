// Comprehensions with two variables, and cel.bind().
import { type FunctionDeclaration, overload } from '#apimachinery/cel/declarations/declarations.ts'
import type { Expression } from '#apimachinery/cel/syntax/expression.ts'
import { argument, type Macro, type MacroCall, MacroError, targetOf } from '#apimachinery/cel/syntax/macro.ts'
import { hidesAccumulator } from '#apimachinery/cel/syntax/node-factory.ts'
import { type Fold, foldAll, foldExists, foldExistsOne, foldList } from '#apimachinery/cel/syntax/standard-macros.ts'
import { mapOf, typeParam } from '#apimachinery/cel/types/cel-type.ts'
import { insertEntry } from '#apimachinery/cel/values/collections.ts'
import { CelError, CelMap, noSuchOverload, type Value } from '#apimachinery/cel/values/value.ts'

const insert = 'cel.@mapInsert'
const key = typeParam('K')
const value = typeParam('V')
const map = mapOf(key, value)

function simpleName(node: Expression): string {
  if (node.kind !== 'identifier') throw new MacroError(node, 'argument must be a simple name')
  return node.name
}

function loopVariables(call: MacroCall): { iterVar: string; iterVar2: string } {
  const [first, second] = [argument(call, 0), argument(call, 1)]
  const [iterVar, iterVar2] = [simpleName(first), simpleName(second)]
  if (iterVar === iterVar2) throw new MacroError(second, `duplicate variable name: ${iterVar}`)
  for (const [node, name] of [
    [first, iterVar],
    [second, iterVar2],
  ] as const)
    if (hidesAccumulator(name)) throw new MacroError(node, 'iteration variable overwrites accumulator variable')
  return { iterVar, iterVar2 }
}

function loop(name: string, argCount: number, fold: (call: MacroCall) => ReturnType<Fold>): Macro {
  return {
    name,
    receiver: true,
    argCount,
    expand: (call) => {
      const variables = loopVariables(call)
      return call.make.loop(call.at, { range: targetOf(call), ...variables, ...fold(call) })
    },
  }
}

const quantifier = (name: string, fold: Fold): Macro => loop(name, 3, (call) => fold(call, argument(call, 2)))

function transform(
  name: string,
  fold: (call: MacroCall, result: Expression, filter?: Expression) => ReturnType<Fold>,
): Macro[] {
  return [
    loop(name, 3, (call) => fold(call, argument(call, 2))),
    loop(name, 4, (call) => fold(call, argument(call, 3), argument(call, 2))),
  ]
}

function foldMap({ make, at }: MacroCall, inserted: Expression[], filter?: Expression): ReturnType<Fold> {
  const step = make.call(at, insert, make.accumulator(at), ...inserted)
  return {
    accuInit: make.map(at, []),
    condition: make.literal(at, true),
    step: filter === undefined ? step : make.call(at, '_?_:_', filter, step, make.accumulator(at)),
    result: make.accumulator(at),
  }
}

export const twoVariableMacros: readonly Macro[] = [
  quantifier('all', foldAll),
  quantifier('exists', foldExists),
  quantifier('existsOne', foldExistsOne),
  quantifier('exists_one', foldExistsOne),
  ...transform('transformList', foldList),
  ...transform('transformMap', (call, result, filter) =>
    foldMap(call, [call.make.identifier(call.at, simpleName(argument(call, 0))), result], filter),
  ),
  ...transform('transformMapEntry', (call, result, filter) => foldMap(call, [result], filter)),
]

function insertAll(target: Value | undefined, entries: Value | undefined): Value {
  if (!(target instanceof CelMap) || !(entries instanceof CelMap)) return noSuchOverload
  let grown: CelMap = target
  for (const name of entries.keys()) {
    const next = insertEntry(grown, name, entries.find(name) ?? null)
    if (next instanceof CelError) return next
    grown = next
  }
  return grown
}

export const twoVariableFunctions: readonly FunctionDeclaration[] = [
  {
    name: insert,
    overloads: [
      overload('@mapInsert_map_key_value', [map, key, value], map, (target, name = null, item = null) =>
        target instanceof CelMap ? insertEntry(target, name, item) : noSuchOverload,
      ),
      overload('@mapInsert_map_map', [map, map], map, insertAll),
    ],
  },
]

/** `cel.bind(name, value, expression)`: not part of Kubernetes' environments. */
export const bindMacro: Macro = {
  name: 'bind',
  receiver: true,
  argCount: 3,
  expand: (call) => {
    const target = targetOf(call)
    if (target.kind !== 'identifier' || target.name !== 'cel') return undefined
    const variable = argument(call, 0)
    if (variable.kind !== 'identifier')
      throw new MacroError(variable, 'cel.bind() variable names must be simple identifiers')
    return call.make.bind(call.at, variable.name, argument(call, 1), argument(call, 2))
  },
}
