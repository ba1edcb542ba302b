// Paths from a variable or another value: `self.spec.replicas`, `f(x)[0]`, `(a ? b : c).d`. Their steps cost as in
// cel-go, where a path costs 1 as a whole and 1 for each step that was taken.
import { CelError, CelOptional, noSuchOverload, type Value } from '#apimachinery/cel/values/value.ts'
import type { Evaluate, Evaluation } from './evaluation.ts'
import { find, isPresent, lookUp } from './lookup.ts'

export interface Step {
  /** What to look up, where it is constant. */
  readonly key: Value
  /** Gives what to look up, where it is not. */
  readonly computeKey?: Evaluate
  /** Written with `?`: gives an optional, none where nothing is there. */
  readonly optional: boolean
  /** Only asks whether something is there. */
  readonly testOnly: boolean
}

type Base =
  | { readonly kind: 'value'; readonly read: Evaluate }
  | { readonly kind: 'conditional'; readonly condition: Evaluate; readonly yes: Attribute; readonly no: Attribute }

/** A path while a program is being planned: selections that follow extend it. */
export class Attribute {
  readonly #base: Base
  readonly #steps: Step[] = []
  #testOnly = false

  private constructor(base: Base) {
    this.#base = base
  }

  static of(read: Evaluate): Attribute {
    return new Attribute({ kind: 'value', read })
  }

  static conditional(condition: Evaluate, yes: Attribute, no: Attribute): Attribute {
    return new Attribute({ kind: 'conditional', condition, yes, no })
  }

  add(step: Step): void {
    this.#testOnly ||= step.testOnly
    if (this.#base.kind === 'value') this.#steps.push(step)
    else for (const branch of [this.#base.yes, this.#base.no]) branch.add(step)
  }

  /** Follows the path; costs what its steps cost. */
  resolve(): Evaluate {
    if (this.#base.kind === 'value') return follow(this.#base.read, this.#steps)
    const { condition, yes, no } = this.#base
    const [ifTrue, ifFalse] = [yes.resolve(), no.resolve()]
    return (run) => {
      const chosen = condition(run)
      if (chosen === true) return ifTrue(run)
      if (chosen === false) return ifFalse(run)
      return chosen instanceof CelError ? chosen : noSuchOverload
    }
  }

  /** Follows the path as an expression of its own. */
  evaluate(): Evaluate {
    const resolve = this.resolve()
    // A presence test is free but for its steps; of a conditional it costs even one less, as in cel-go.
    const extra = (this.#base.kind === 'value' ? 1 : 0) - (this.#testOnly ? 1 : 0)
    const charged: Evaluate = (run) => {
      const value = resolve(run)
      run.charge(extra)
      return value
    }
    const counted = extra === 0 ? resolve : charged
    if (!this.#testOnly) return counted
    return (run) => {
      const value = counted(run)
      return value instanceof CelOptional ? value.value !== undefined : value
    }
  }
}

function follow(read: Evaluate, steps: readonly Step[]): Evaluate {
  if (steps.length === 0) return read
  const names = steps.map(({ key, computeKey, optional, testOnly }) =>
    optional || testOnly || computeKey !== undefined || typeof key !== 'string' ? '' : key,
  )
  if (names.every((name) => name !== '')) return followNames(read, names)
  return (run) => {
    const start = read(run)
    if (start instanceof CelError) return start
    if (start instanceof CelOptional)
      return start.value === undefined ? start : followSteps(run, start.value, steps, true)
    return followSteps(run, start, steps, false)
  }
}

// The common case: fields by name, nothing optional.
function followNames(read: Evaluate, names: readonly string[]): Evaluate {
  const steps = names.map((key): Step => ({ key, optional: false, testOnly: false }))
  return (run) => {
    let value = read(run)
    if (value instanceof CelOptional)
      return value.value === undefined ? value : followSteps(run, value.value, steps, true)
    for (const name of names) {
      if (value instanceof CelError) return value
      value = lookUp(value, name)
      run.charge(1)
    }
    return value
  }
}

function followSteps(run: Evaluation, start: Value, steps: readonly Step[], startsOptional: boolean): Value {
  let value = start
  let optional = startsOptional
  for (const { key: constant, computeKey, optional: isOptional, testOnly } of steps) {
    optional ||= isOptional
    const key = computeKey === undefined ? constant : computeKey(run)
    if (optional) {
      const found = key instanceof CelError ? key : find(value, key)
      if (found instanceof CelError) return found
      if (found === undefined) return CelOptional.none
      value = found
      run.charge(1)
      continue
    }
    value = key instanceof CelError ? key : testOnly ? isPresent(value, key) : lookUp(value, key)
    run.charge(1)
    if (value instanceof CelError) return value
  }
  return optional ? new CelOptional(value) : value
}
