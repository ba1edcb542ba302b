// Turns a checked expression into closures. Constants are folded and costs are counted as cel-go does with the options
// of kube-apiserver.
import type { CheckedExpression, FunctionReference } from '#apimachinery/cel/declarations/checked-expression.ts'
import type { Implementation, StructProvider } from '#apimachinery/cel/declarations/declarations.ts'
import type {
  Call,
  Comprehension,
  Expression,
  ListLiteral,
  MapLiteral,
  StructLiteral,
} from '#apimachinery/cel/syntax/expression.ts'
import { ArrayList, EntryMap, isKey } from '#apimachinery/cel/values/collections.ts'
import { equal } from '#apimachinery/cel/values/compare.ts'
import { printValue } from '#apimachinery/cel/values/print.ts'
import {
  CelError,
  CelOptional,
  CelTypeValue,
  noSuchOverload,
  typeNameOf,
  type Value,
} from '#apimachinery/cel/values/value.ts'
import { Attribute } from './attribute.ts'
import { evaluateLoop, readAccumulator } from './comprehension.ts'
import type { Evaluate } from './evaluation.ts'
import { isSetOfConstants } from './constant-set.ts'
import { notStrictlyFalse } from '#apimachinery/cel/values/not-strictly-false.ts'
import { implementationOf } from './overload-dispatch.ts'

/** What a call costs besides its arguments. */
export type CallCost = (args: readonly Value[], result: Value) => number

export interface PlanOptions {
  readonly struct: StructProvider
  /** The cost of calls of a function; `overloadId` is empty where more than one overload fits. */
  readonly callCost: (name: string, overloadId: string) => CallCost | 1
  /** An implementation that has the constant second argument worked in, or what is wrong with that. */
  readonly withConstantPattern: (name: string, pattern: string) => Implementation | CelError | undefined
}

/** A program that cannot be made of an expression, although its types are right. */
export class ProgramError extends Error {}

type Plan =
  | { readonly kind: 'constant'; readonly value: Value }
  | { readonly kind: 'attribute'; readonly attribute: Attribute }
  | { readonly kind: 'computed'; readonly evaluate: Evaluate }

const conversions: ReadonlySet<string> = new Set(
  'bool bytes double duration dyn int string timestamp type uint'.split(' '),
)

/** Plans an expression. Throws ProgramError. */
export function plan(checked: CheckedExpression, options: PlanOptions): Evaluate {
  const planner = new Planner(checked, options)
  return evaluated(planner.plan(checked.root))
}

function evaluated(planned: Plan): Evaluate {
  switch (planned.kind) {
    case 'constant': {
      const { value } = planned
      return () => value
    }
    case 'attribute':
      return planned.attribute.evaluate()
    case 'computed':
      return planned.evaluate
  }
}

const computed = (evaluate: Evaluate): Plan => ({ kind: 'computed', evaluate })
const constant = (value: Value): Plan => ({ kind: 'constant', value })

class Planner {
  readonly #checked: CheckedExpression
  readonly #options: PlanOptions
  // Local variables by name, the innermost last.
  readonly #locals: (readonly [name: string, read: Evaluate])[] = []
  #slots = 0

  constructor(checked: CheckedExpression, options: PlanOptions) {
    this.#checked = checked
    this.#options = options
  }

  plan(written: Expression): Plan {
    const node = this.#checked.meant(written)
    switch (node.kind) {
      case 'literal':
        return constant(node.value)
      case 'identifier':
        return this.#identifier(node.id, node.name)
      case 'select': {
        const attribute = this.#attribute(node.operand)
        attribute.add({ key: node.field, optional: false, testOnly: node.testOnly })
        return { kind: 'attribute', attribute }
      }
      case 'call':
        return this.#call(node)
      case 'list':
        return this.#list(node)
      case 'map':
        return this.#map(node)
      case 'struct':
        return this.#struct(node)
      case 'comprehension':
        return computed(this.#comprehension(node))
    }
  }

  #evaluate(node: Expression): Evaluate {
    return evaluated(this.plan(node))
  }

  #attribute(node: Expression): Attribute {
    return asAttribute(this.plan(node))
  }

  #identifier(id: number, name: string): Plan {
    const type = this.#checked.typeNames[id]
    // Only the types of the language and of libraries are values too.
    if (type?.kind === 'struct') throw new ProgramError(`reference to undefined type: ${name}`)
    if (type !== undefined) return constant(new CelTypeValue(type.name))
    const local = this.#locals.findLast(([known]) => known === name)
    if (local !== undefined) return { kind: 'attribute', attribute: Attribute.of(local[1]) }
    const missing = new CelError(`no such attribute(s): ${name}`)
    return {
      kind: 'attribute',
      attribute: Attribute.of((run) => run.variables.get(name) ?? nullOr(run.variables.has(name), missing)),
    }
  }

  #call(node: Call): Plan {
    const { args } = node
    const [first, second, third] = args
    if (first !== undefined && second !== undefined) {
      switch (node.name) {
        case '_&&_':
          return computed(logical(this.#evaluate(first), this.#evaluate(second), false))
        case '_||_':
          return computed(logical(this.#evaluate(first), this.#evaluate(second), true))
        case '_?_:_':
          if (third !== undefined) return this.#conditional(first, second, third)
          break
        case '_==_':
        case '_!=_':
          return this.#equality(node.name, first, second)
        case '_[_]':
        case '_?._':
        case '_[?_]':
          return this.#index(first, second, node.name !== '_[_]')
        default:
      }
    }
    return this.#function(node)
  }

  #conditional(condition: Expression, yes: Expression, no: Expression): Plan {
    const attribute = Attribute.conditional(this.#evaluate(condition), this.#attribute(yes), this.#attribute(no))
    return { kind: 'attribute', attribute }
  }

  #equality(name: '_==_' | '_!=_', left: Expression, right: Expression): Plan {
    const [a, b] = [this.#evaluate(left), this.#evaluate(right)]
    const cost = this.#options.callCost(name, name === '_==_' ? 'equals' : 'not_equals')
    const compare = name === '_==_' ? equal : (x: Value, y: Value): Value => equal(x, y) !== true
    return computed((run) => {
      const x = a(run)
      const y = b(run)
      const result = x instanceof CelError ? x : y instanceof CelError ? y : compare(x, y)
      run.charge(cost === 1 ? 1 : cost([x, y], result))
      return result
    })
  }

  #index(operand: Expression, index: Expression, optional: boolean): Plan {
    const attribute = this.#attribute(operand)
    const key = this.plan(index)
    if (key.kind === 'constant') attribute.add({ key: key.value, optional, testOnly: false })
    else {
      const computeKey = key.kind === 'attribute' ? key.attribute.resolve() : key.evaluate
      attribute.add({ key: null, computeKey, optional, testOnly: false })
    }
    return { kind: 'attribute', attribute }
  }

  #function(node: Call): Plan {
    const reference = this.#checked.functions[node.id]
    if (reference === undefined) throw new ProgramError(`no such overload: ${node.name}`)
    const all = node.target === undefined ? node.args : [node.target, ...node.args]
    const args = all.map((arg) => this.plan(arg))
    const overloadId = reference.overloadIds.length === 1 ? (reference.overloadIds[0] ?? '') : ''
    if (node.target !== undefined) {
      const chosen = optionalChoice(node.name, overloadId, args)
      if (chosen !== undefined) return chosen
    }
    const [only] = args
    if (conversions.has(node.name) && args.length === 1 && only?.kind === 'constant')
      return this.#folded(reference, only.value)
    if (overloadId === 'in_list') {
      const found = isSetOfConstants(args[1]?.kind === 'constant' ? args[1].value : undefined)
      if (found !== undefined && only !== undefined)
        return found === false ? constant(false) : computed(strict(evaluated(only), found))
    }
    const [, pattern] = args
    const prepared =
      pattern?.kind === 'constant' && typeof pattern.value === 'string'
        ? this.#options.withConstantPattern(node.name, pattern.value)
        : undefined
    const cost = this.#options.callCost(node.name, overloadId)
    if (prepared instanceof CelError) throw new ProgramError(prepared.message)
    if (prepared !== undefined) return computed(invokeAll(prepared, args.map(evaluated), cost))
    return computed(invoke(implementationOf(reference, args.length), args.map(evaluated), cost))
  }

  #folded(reference: FunctionReference, value: Value): Plan {
    const result = implementationOf(reference, 1)(value)
    if (result instanceof CelError) throw new ProgramError(result.message)
    return constant(result)
  }

  #list({ elements, optional }: ListLiteral): Plan {
    const plans = elements.map((element) => this.plan(element))
    const values = constantsOf(plans)
    if (values !== undefined && optional.size === 0) return constant(new ArrayList(values))
    const items = plans.map(evaluated)
    return computed((run) => {
      const list: Value[] = []
      let failed: CelError | undefined
      for (const [i, item] of items.entries()) {
        const value = item(run)
        if (value instanceof CelError) failed = value
        else if (!optional.has(i)) list.push(value)
        else if (!(value instanceof CelOptional))
          failed = new CelError(`cannot initialize optional list element from non-optional value ${printValue(value)}`)
        else if (value.value !== undefined) list.push(value.value)
        if (failed !== undefined) break
      }
      run.charge(10)
      return failed ?? new ArrayList(list)
    })
  }

  #map({ entries }: MapLiteral): Plan {
    const plans = entries.map(({ key, value, optional }) => ({
      key: this.plan(key),
      value: this.plan(value),
      optional,
    }))
    const isConstant = plans.every(
      ({ key, value, optional }) =>
        key.kind === 'constant' && isKey(key.value) && value.kind === 'constant' && !optional,
    )
    const build = buildMap(
      plans.map(({ key, value, optional }) => ({ key: evaluated(key), value: evaluated(value), optional })),
    )
    if (!isConstant) return computed(build)
    const folded = new EntryMap()
    for (const { key, value } of plans)
      if (key.kind === 'constant' && value.kind === 'constant') folded.set(key.value, value.value)
    return constant(folded)
  }

  #struct({ typeName, fields }: StructLiteral): Plan {
    const make = this.#options.struct(typeName)?.make
    if (make === undefined) throw new ProgramError(`unknown type: ${typeName}`)
    const plans = fields.map(({ name, value, optional }) => ({ name, value: this.#evaluate(value), optional }))
    return computed((run) => {
      const values = new Map<string, Value>()
      let failed: CelError | undefined
      for (const { name, value: evaluate, optional } of plans) {
        const value = evaluate(run)
        if (value instanceof CelError) failed = value
        else if (!optional) values.set(name, value)
        else if (!(value instanceof CelOptional)) failed = notOptional(name, value)
        else if (value.value === undefined) values.delete(name)
        else values.set(name, value.value)
        if (failed !== undefined) break
      }
      const result = failed ?? make(values)
      run.charge(40)
      return result
    })
  }

  #comprehension(node: Comprehension): Evaluate {
    const initial = this.#evaluate(node.accuInit)
    const range = this.#evaluate(node.range)
    const accumulator = this.#slots++
    const first = this.#slots++
    const second = node.iterVar2 === '' ? undefined : this.#slots++
    this.#locals.push([node.accuVar, readAccumulator(accumulator, initial)], [node.iterVar, readSlot(first)])
    if (second !== undefined) this.#locals.push([node.iterVar2, readSlot(second)])
    const condition = this.#evaluate(node.condition)
    const step = this.#evaluate(node.step)
    this.#locals.length -= second === undefined ? 1 : 2
    const result = this.#evaluate(node.result)
    this.#locals.pop()
    return evaluateLoop({ range, condition, step, result, accumulator, first, second })
  }
}

const readSlot =
  (slot: number): Evaluate =>
  (run) =>
    run.locals[slot] ?? null

const nullOr = (known: boolean, error: CelError): Value => (known ? null : error)

function asAttribute(planned: Plan): Attribute {
  return planned.kind === 'attribute' ? planned.attribute : Attribute.of(evaluated(planned))
}

// && where `decisive` is false, || where it is true: the other side may decide where one side failed.
function logical(left: Evaluate, right: Evaluate, decisive: boolean): Evaluate {
  return (run) => {
    const a = left(run)
    if (a === decisive) return decisive
    const b = right(run)
    if (b === decisive) return decisive
    if (a !== !decisive) return a instanceof CelError ? a : noSuchOverload
    if (b !== !decisive) return b instanceof CelError ? b : noSuchOverload
    return !decisive
  }
}

function optionalChoice(name: string, overloadId: string, args: readonly Plan[]): Plan | undefined {
  const [left, right] = args
  if (left === undefined || right === undefined || args.length !== 2) return undefined
  const isOr = name === 'or' && (overloadId === '' || overloadId === 'optional_or_optional')
  const isOrValue = name === 'orValue' && (overloadId === '' || overloadId === 'optional_orValue_value')
  if (!isOr && !isOrValue) return undefined
  const [a, b] = [evaluated(left), evaluated(right)]
  return computed((run) => {
    const value = a(run)
    if (!(value instanceof CelOptional)) return value
    if (value.value === undefined) return b(run)
    return isOr ? value : value.value
  })
}

function strict(argument: Evaluate, apply: (value: Value) => Value): Evaluate {
  return (run) => {
    const value = argument(run)
    return value instanceof CelError ? value : apply(value)
  }
}

function invoke(run: (...args: Value[]) => Value, args: readonly Evaluate[], cost: CallCost | 1): Evaluate {
  const [first, second] = args
  if (args.length === 1 && first !== undefined) return invokeUnary(run, first, cost)
  if (args.length === 2 && first !== undefined && second !== undefined) return invokeBinary(run, first, second, cost)
  return invokeAll(run, args, cost)
}

// Any number of arguments: where one but the last failed, the call costs nothing.
function invokeAll(run: (...args: Value[]) => Value, args: readonly Evaluate[], cost: CallCost | 1): Evaluate {
  return (evaluation) => {
    const values: Value[] = []
    let failed: CelError | undefined
    for (const arg of args) {
      const value = arg(evaluation)
      values.push(value)
      if (!(value instanceof CelError)) continue
      if (values.length < args.length) return value
      failed = value
    }
    const result = failed ?? run(...values)
    evaluation.charge(cost === 1 ? 1 : cost(values, result))
    return result
  }
}

function invokeUnary(run: (...args: Value[]) => Value, argument: Evaluate, cost: CallCost | 1): Evaluate {
  // The one function that takes a failed argument: it keeps loops of all() and exists() going.
  return (evaluation) => {
    const value = argument(evaluation)
    const result = value instanceof CelError && run !== notStrictlyFalse ? value : run(value)
    evaluation.charge(cost === 1 ? 1 : cost([value], result))
    return result
  }
}

function invokeBinary(run: (...args: Value[]) => Value, left: Evaluate, right: Evaluate, cost: CallCost | 1): Evaluate {
  return (evaluation) => {
    const a = left(evaluation)
    const b = right(evaluation)
    const result = a instanceof CelError ? a : b instanceof CelError ? b : run(a, b)
    evaluation.charge(cost === 1 ? 1 : cost([a, b], result))
    return result
  }
}

interface EntryPlan {
  readonly key: Evaluate
  readonly value: Evaluate
  readonly optional: boolean
}

function buildMap(entries: readonly EntryPlan[]): Evaluate {
  return (run) => {
    const map = new EntryMap()
    let failed: CelError | undefined
    for (const { key: evaluateKey, value: evaluateValue, optional } of entries) {
      const key = evaluateKey(run)
      const value = key instanceof CelError ? key : evaluateValue(run)
      if (key instanceof CelError) failed = key
      else if (value instanceof CelError) failed = value
      else if (!isKey(key)) failed = new CelError(`unsupported key type: ${typeNameOf(key)}`)
      else if (!optional) map.set(key, value)
      else if (!(value instanceof CelOptional)) failed = notOptional(printValue(key), value)
      else if (value.value === undefined) map.delete(key)
      else map.set(key, value.value)
      if (failed !== undefined) break
    }
    run.charge(30)
    return failed ?? map
  }
}

function notOptional(name: string, value: Value): CelError {
  return new CelError(`cannot initialize optional entry '${name}' from non-optional value ${printValue(value)}`)
}

function constantsOf(plans: readonly Plan[]): Value[] | undefined {
  const values: Value[] = []
  for (const planned of plans) {
    if (planned.kind !== 'constant') return undefined
    values.push(planned.value)
  }
  return values
}
