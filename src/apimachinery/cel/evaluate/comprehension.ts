// Runs loops over lists and maps.
import { EntryMap, GrowingList } from '#apimachinery/cel/values/collections.ts'
import {
  CelError,
  CelList,
  CelMap,
  CelOptional,
  CelTypeValue,
  typeNameOf,
  type Value,
} from '#apimachinery/cel/values/value.ts'
import type { Evaluate, Evaluation } from './evaluation.ts'

export interface Loop {
  readonly range: Evaluate
  readonly condition: Evaluate
  readonly step: Evaluate
  readonly result: Evaluate
  /** Places of the accumulator and of the loop variables among the local variables of the run. */
  readonly accumulator: number
  readonly first: number
  readonly second: number | undefined
}

/** What reads an accumulator: its first reading computes its initial value. */
export function readAccumulator(slot: number, initial: Evaluate): Evaluate {
  return (run) => {
    const known = run.locals[slot]
    if (known !== undefined) return known
    let value = initial(run)
    // An empty list or map grows in place: what was built so far is never copied.
    if (value instanceof CelList && value.size === 0) value = new GrowingList()
    else if (value instanceof CelMap && value.size === 0) value = new EntryMap()
    run.locals[slot] = value
    return value
  }
}

/** A loop as an expression. */
export function evaluateLoop(loop: Loop): Evaluate {
  const { range, result, accumulator, second } = loop
  return (run) => {
    const over = range(run)
    if (over instanceof CelError) return over
    run.locals[accumulator] = undefined
    if (over instanceof CelList) iterateList(run, loop, over)
    else if (over instanceof CelMap) iterateMap(run, loop, over)
    else return notIterable(over, second !== undefined)
    const value = result(run)
    run.locals[accumulator] = undefined
    return value instanceof GrowingList ? value.freeze() : value
  }
}

function iterateList(run: Evaluation, { condition, step, accumulator, first, second }: Loop, list: CelList): void {
  const { size } = list
  for (let i = 0; i < size; i++) {
    if (second === undefined) run.locals[first] = list.at(i)
    else {
      run.locals[first] = i
      run.locals[second] = list.at(i)
    }
    if (isOver(condition(run))) return
    run.locals[accumulator] = step(run)
    run.iterate()
  }
}

function iterateMap(run: Evaluation, { condition, step, accumulator, first, second }: Loop, map: CelMap): void {
  for (const key of map.keys()) {
    run.locals[first] = key
    if (second !== undefined) run.locals[second] = map.find(key) ?? null
    if (isOver(condition(run))) return
    run.locals[accumulator] = step(run)
    run.iterate()
  }
}

// Only false ends a loop: a condition that failed lets it go on.
const isOver = (condition: Value): boolean => condition === false

// The names by which Go knows the values.
function goTypeOf(value: Value): string {
  if (value instanceof CelOptional) return '*types.Optional'
  if (value instanceof CelTypeValue) return '*types.Type'
  const name = typeNameOf(value).replace('google.protobuf.', '').replace('null_type', 'null')
  return `types.${name.slice(0, 1).toUpperCase()}${name.slice(1)}`
}

function notIterable(value: Value, two: boolean): Value {
  const type = goTypeOf(value)
  return new CelError(two ? `unsupported comprehension range type: ${type}` : `got '${type}', expected iterable type`)
}
