// The macros of the language: has, and comprehensions with one variable.
import type { Expression } from './expression.ts'
import { argument, type Macro, type MacroCall, MacroError, targetOf } from './macro.ts'
import { hidesAccumulator } from './node-factory.ts'

/** The loop variable that an argument of a macro names. Throws MacroError with `message` where it is no simple name. */
export function loopVariable(node: Expression, message: string): string {
  if (node.kind !== 'identifier') throw new MacroError(node, message)
  if (hidesAccumulator(node.name)) throw new MacroError(node, 'iteration variable overwrites accumulator variable')
  return node.name
}

const has: Macro = {
  name: 'has',
  receiver: false,
  argCount: 1,
  expand: (call) => {
    const arg = argument(call, 0)
    if (arg.kind !== 'select') throw new MacroError(arg, 'invalid argument to has() macro')
    return call.make.select(call.at, arg.operand, arg.field, { testOnly: true })
  },
}

/** How a quantifier folds: used for one and for two loop variables. */
export type Fold = (
  call: MacroCall,
  predicate: Expression,
) => Record<'accuInit' | 'condition' | 'step' | 'result', Expression>

export const foldAll: Fold = ({ make, at }, predicate) => ({
  accuInit: make.literal(at, true),
  condition: make.call(at, '@not_strictly_false', make.accumulator(at)),
  step: make.call(at, '_&&_', make.accumulator(at), predicate),
  result: make.accumulator(at),
})

export const foldExists: Fold = ({ make, at }, predicate) => ({
  accuInit: make.literal(at, false),
  condition: make.call(at, '@not_strictly_false', make.call(at, '!_', make.accumulator(at))),
  step: make.call(at, '_||_', make.accumulator(at), predicate),
  result: make.accumulator(at),
})

export const foldExistsOne: Fold = ({ make, at }, predicate) => ({
  accuInit: make.literal(at, 0),
  condition: make.literal(at, true),
  step: make.call(
    at,
    '_?_:_',
    predicate,
    make.call(at, '_+_', make.accumulator(at), make.literal(at, 1)),
    make.accumulator(at),
  ),
  result: make.call(at, '_==_', make.accumulator(at), make.literal(at, 1)),
})

/** Appends to a list, where a filter allows it. */
export function foldList({ make, at }: MacroCall, element: Expression, filter?: Expression): ReturnType<Fold> {
  const append = make.call(at, '_+_', make.accumulator(at), make.list(at, [element]))
  return {
    accuInit: make.list(at, []),
    condition: make.literal(at, true),
    step: filter === undefined ? append : make.call(at, '_?_:_', filter, append, make.accumulator(at)),
    result: make.accumulator(at),
  }
}

const quantifier = (name: string, fold: Fold): Macro => ({
  name,
  receiver: true,
  argCount: 2,
  expand: (call) => {
    const iterVar = loopVariable(argument(call, 0), 'argument must be a simple name')
    return call.make.loop(call.at, { range: targetOf(call), iterVar, ...fold(call, argument(call, 1)) })
  },
})

/** Expands `range.map(variable, transform)` or `range.map(variable, predicate, transform)`. */
export function expandMap(call: MacroCall, range: Expression): Expression {
  const iterVar = loopVariable(argument(call, 0), 'argument is not an identifier')
  const filter = call.args.length === 3 ? argument(call, 1) : undefined
  const transform = argument(call, call.args.length - 1)
  return call.make.loop(call.at, { range, iterVar, ...foldList(call, transform, filter) })
}

const map = (argCount: number): Macro => ({
  name: 'map',
  receiver: true,
  argCount,
  expand: (call) => expandMap(call, targetOf(call)),
})

const filter: Macro = {
  name: 'filter',
  receiver: true,
  argCount: 2,
  expand: (call) => {
    const variable = argument(call, 0)
    const iterVar = loopVariable(variable, 'argument is not an identifier')
    const fold = foldList(call, variable, argument(call, 1))
    return call.make.loop(call.at, { range: targetOf(call), iterVar, ...fold })
  },
}

export const standardMacros: readonly Macro[] = [
  has,
  quantifier('all', foldAll),
  quantifier('exists', foldExists),
  quantifier('exists_one', foldExistsOne),
  map(2),
  map(3),
  filter,
]
