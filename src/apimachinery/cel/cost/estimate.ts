// The cost of an expression before it ever runs: the range that its runs may cost, by the sizes that a schema allows.
import type { CheckedExpression } from '#apimachinery/cel/declarations/checked-expression.ts'
import type {
  Call,
  Comprehension,
  Expression,
  ListLiteral,
  MapLiteral,
  Select,
} from '#apimachinery/cel/syntax/expression.ts'
import { type CelType, paramOf } from '#apimachinery/cel/types/cel-type.ts'
import { CelError, CelList, CelMap } from '#apimachinery/cel/values/value.ts'
import { sizeOf as sizeOfValue } from '#apimachinery/cel/library/standard.ts'
import {
  type CallEstimate,
  estimateLibraryCall,
  estimateStandardCall,
  type SizedNode,
  type SizeOfPath,
} from './estimate-call.ts'
import { SharedPath } from './shared-path.ts'
import { fixed, nothing, one, plus, type Range, sum, times, union, unknownSize } from './range.ts'

/** The sizes of the keys and values that a list or map holds. */
interface Entries {
  readonly container: 'list' | 'map'
  readonly key: Range
  readonly value: Range
}

interface Local {
  readonly path: SharedPath
  readonly size: Range | undefined
  readonly entries: Entries | undefined
}

/** Estimates what the runs of an expression cost. */
export function estimateCost(checked: CheckedExpression, sizeOfPath: SizeOfPath = () => undefined): Range {
  return new Estimator(checked, sizeOfPath).cost(checked.root)
}

class Estimator {
  readonly #checked: CheckedExpression
  readonly #sizeOfPath: SizeOfPath
  readonly #locals = new Map<string, Local[]>()
  readonly #paths = new Map<number, SharedPath>()
  readonly #sizes = new Map<number, Range>()
  readonly #entries = new Map<number, Entries>()

  constructor(checked: CheckedExpression, sizeOfPath: SizeOfPath) {
    this.#checked = checked
    this.#sizeOfPath = sizeOfPath
  }

  cost(written: Expression): Range {
    const node = this.#checked.meant(written)
    switch (node.kind) {
      case 'literal':
        return nothing
      case 'identifier':
        this.#paths.set(node.id, this.#local(node.name)?.path ?? SharedPath.of(node.name))
        return one
      case 'select':
        return this.#select(node)
      case 'call':
        return this.#call(node)
      case 'list':
        return this.#list(node)
      case 'map':
        return this.#map(node)
      case 'struct':
        return plus(sum(node.fields.map(({ value }) => this.cost(value))), fixed(40))
      case 'comprehension':
        return isBind(node) ? this.#bind(node) : this.#loop(node)
    }
  }

  #local(name: string): Local | undefined {
    return this.#locals.get(name)?.at(-1)
  }

  #push(name: string, local: Local): void {
    const stack = this.#locals.get(name)
    if (stack === undefined) this.#locals.set(name, [local])
    else stack.push(local)
  }

  #pop(name: string): void {
    this.#locals.get(name)?.pop()
  }

  #pathOf(written: Expression): SharedPath {
    const node = this.#checked.meant(written)
    const local = node.kind === 'identifier' ? this.#local(node.name) : undefined
    return local?.path ?? this.#paths.get(node.id) ?? SharedPath.none
  }

  #sizeOf(written: Expression): Range | undefined {
    const node = this.#checked.meant(written)
    const known = this.#sizes.get(node.id) ?? literalSize(node)
    if (known !== undefined) return known
    const path = this.#pathOf(node)
    const bySchema = path.length === 0 ? undefined : this.#sizeOfPath(path.names())
    if (bySchema !== undefined) {
      this.#sizes.set(node.id, bySchema)
      return bySchema
    }
    if (isScalar(this.#checked.typeOf(node))) return one
    return node.kind === 'identifier' ? this.#local(node.name)?.size : undefined
  }

  #sizeOrUnknown(node: Expression): Range {
    return this.#sizeOf(node) ?? unknownSize
  }

  #entriesOf(written: Expression): Entries | undefined {
    const node = this.#checked.meant(written)
    const known = this.#entries.get(node.id)
    return known ?? (node.kind === 'identifier' ? this.#local(node.name)?.entries : undefined)
  }

  #select({ id, operand, field, testOnly }: Select): Range {
    const below = this.cost(operand)
    // A presence test costs nothing of its own.
    if (testOnly) return below
    this.#paths.set(id, this.#pathOf(operand).to(field))
    const { kind } = this.#checked.typeOf(operand)
    return kind === 'map' || kind === 'struct' || kind === 'param' ? plus(below, one) : below
  }

  #list({ id, elements }: ListLiteral): Range {
    let value: Range | undefined
    const cost = sum(
      elements.map((element) => {
        const elementCost = this.cost(element)
        const size = this.#sizeOrUnknown(element)
        value = value === undefined ? size : union(value, size)
        return elementCost
      }),
    )
    this.#entries.set(id, { container: 'list', key: one, value: value ?? nothing })
    return plus(cost, fixed(10))
  }

  #map({ id, entries }: MapLiteral): Range {
    let cost = nothing
    let keys: Range | undefined
    let values: Range | undefined
    for (const { key, value } of entries) {
      cost = plus(cost, plus(this.cost(key), this.cost(value)))
      const [keySize, valueSize] = [this.#sizeOrUnknown(key), this.#sizeOrUnknown(value)]
      keys = keys === undefined ? keySize : union(keys, keySize)
      values = values === undefined ? valueSize : union(values, valueSize)
    }
    this.#entries.set(id, { container: 'map', key: keys ?? nothing, value: values ?? nothing })
    return plus(cost, fixed(30))
  }

  #node(written: Expression): SizedNode {
    const expression = this.#checked.meant(written)
    const path = this.#pathOf(expression)
    const [variable] = path.names()
    const isAccumulator = variable === '@result' || variable === '__result__'
    return {
      path: isAccumulator ? SharedPath.none : path,
      type: this.#checked.typeOf(expression),
      expression,
      size: this.#sizeOf(expression),
    }
  }

  #call(node: Call): Range {
    const [first] = node.args
    if (node.name === 'dyn' && first !== undefined) {
      const cost = plus(one, this.cost(first))
      this.#copySizes(node, first)
      return cost
    }
    const argCosts: Range[] = []
    const args = node.args.map((arg) => {
      argCosts.push(this.cost(arg))
      return this.#node(arg)
    })
    const overloadIds = this.#checked.overloadsOf(node)
    if (overloadIds.length === 0) return nothing
    const targetCost = node.target === undefined ? nothing : this.cost(node.target)
    const target = node.target === undefined ? undefined : this.#node(node.target)
    let cost: Range = { min: unknownSize.max, max: 0n }
    let resultSize: Range | undefined
    for (const overloadId of overloadIds) {
      const estimate = this.#overload(node, overloadId, { target, args, argCosts })
      cost = union(cost, estimate.cost)
      if (estimate.resultSize !== undefined)
        resultSize = resultSize === undefined ? estimate.resultSize : union(resultSize, estimate.resultSize)
      if ((overloadId === 'index_list' || overloadId === 'index_map') && first !== undefined) {
        resultSize = this.#entriesOf(first)?.value
        this.#paths.set(node.id, this.#pathOf(first).to(overloadId === 'index_list' ? '@items' : '@values'))
      }
      resultSize ??= this.#sizeOf(node)
    }
    if (resultSize !== undefined) this.#sizes.set(node.id, resultSize)
    return plus(targetCost, cost)
  }

  #overload(
    node: Call,
    overloadId: string,
    {
      target,
      args,
      argCosts,
    }: { target: SizedNode | undefined; args: readonly SizedNode[]; argCosts: readonly Range[] },
  ): CallEstimate {
    const call = { name: node.name, overloadId, target, args, sizeOfPath: this.#sizeOfPath }
    const library = estimateLibraryCall(call)
    if (library !== undefined) return { ...library, cost: plus(library.cost, sum(argCosts)) }
    const [first = nothing, second = nothing, third = nothing] = argCosts
    const [a, b, c] = node.args
    if (overloadId === 'logical_or' || overloadId === 'logical_and')
      return { cost: { min: first.min, max: plus(first, second).max } }
    if (overloadId === 'conditional' && a !== undefined && b !== undefined && c !== undefined) {
      this.#joinEntries(node, b, c)
      const resultSize = union(args[1]?.size ?? unknownSize, args[2]?.size ?? unknownSize)
      return { cost: plus(first, union(second, third)), resultSize }
    }
    if (/^add_(?:string|bytes|list)$/.test(overloadId) && a !== undefined && b !== undefined)
      this.#joinEntries(node, a, b)
    const standard = estimateStandardCall(call)
    return { ...standard, cost: plus(standard.cost, sum(argCosts)) }
  }

  #joinEntries(node: Expression, a: Expression, b: Expression): void {
    const [left, right] = [this.#entriesOf(a), this.#entriesOf(b)]
    if (left === undefined || right === undefined) return
    const joined = { container: left.container, key: union(left.key, right.key), value: union(left.value, right.value) }
    this.#entries.set(node.id, joined)
  }

  #copySizes(to: Expression, from: Expression): void {
    const [size, entries] = [this.#sizeOf(from), this.#entriesOf(from)]
    if (size !== undefined) this.#sizes.set(to.id, size)
    if (entries !== undefined) this.#entries.set(to.id, entries)
  }

  #pushAccumulator({ accuVar, accuInit }: Comprehension): void {
    const path = this.#pathOf(accuInit)
    this.#push(accuVar, { path, size: this.#sizeOf(accuInit), entries: this.#entriesOf(accuInit) })
  }

  #bind(node: Comprehension): Range {
    const cost = plus(this.cost(node.range), this.cost(node.accuInit))
    this.#pushAccumulator(node)
    const result = this.cost(node.result)
    this.#pop(node.accuVar)
    this.#copySizes(node, node.result)
    return plus(cost, result)
  }

  #loop(node: Comprehension): Range {
    const cost = plus(this.cost(node.range), this.cost(node.accuInit))
    this.#pushAccumulator(node)
    this.#pushLoopVariables(node)
    const perItem = plus(this.cost(node.condition), this.cost(node.step))
    this.#pop(node.iterVar)
    if (node.iterVar2 !== '') this.#pop(node.iterVar2)
    const result = this.cost(node.result)
    this.#pop(node.accuVar)
    const count = this.#sizeOrUnknown(node.range)
    this.#keepSize(node, count)
    return plus(plus(cost, result), times(count, perItem))
  }

  #pushLoopVariables({ range, iterVar, iterVar2 }: Comprehension): void {
    const entries = this.#entriesOf(range)
    const isList = (entries?.container ?? this.#checked.typeOf(range).kind) === 'list'
    const path = this.#pathOf(range)
    const key = (name: string): Local => ({ path: path.to(name), size: entries?.key, entries: undefined })
    const value = (name: string): Local => ({ path: path.to(name), size: entries?.value, entries: undefined })
    if (iterVar2 !== '') {
      this.#push(iterVar, key(isList ? '@indices' : '@keys'))
      this.#push(iterVar2, value(isList ? '@items' : '@values'))
      return
    }
    this.#push(iterVar, isList ? value('@items') : key('@keys'))
  }

  #keepSize(node: Comprehension, count: Range): void {
    const { kind } = node.accuInit
    if (kind === 'literal') {
      const size = this.#sizeOf(node.accuInit)
      if (size !== undefined) this.#sizes.set(node.id, size)
      return
    }
    if (kind !== 'list' && kind !== 'map') return
    this.#sizes.set(node.id, count)
    const entries = this.#entriesOf(node.step)
    if (entries !== undefined) this.#entries.set(node.id, entries)
  }
}

function isBind({ range, condition, accuVar }: Comprehension): boolean {
  if (range.kind !== 'list' || range.elements.length > 0 || accuVar === '__result__') return false
  return condition.kind === 'literal' && condition.value === false
}

function literalSize(node: Expression): Range | undefined {
  if (node.kind === 'list') return fixed(node.elements.length)
  if (node.kind === 'map') return fixed(node.entries.length)
  if (node.kind !== 'literal') return undefined
  const { value } = node
  if (value instanceof CelError || value instanceof CelList || value instanceof CelMap) return undefined
  return fixed(sizeOfValue(value) ?? 1)
}

function isScalar(type: CelType): boolean {
  switch (type.kind) {
    case 'bool':
    case 'double':
    case 'duration':
    case 'int':
    case 'timestamp':
    case 'uint':
      return true
    case 'opaque':
      return type.name === 'optional_type' && isScalar(paramOf(type, 0))
    default:
      return false
  }
}
