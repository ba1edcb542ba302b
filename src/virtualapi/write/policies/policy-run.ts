// Runs the expressions of one admission policy for one object and one set of parameters, within kube-apiserver's
// budgets.
import { type Activation, CelError, CelMap, dynamicValue, Program, type Value } from '#apimachinery/cel/index.ts'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { aggregateText } from '#apimachinery/field/index.ts'
import type { Expression, PolicyBase } from './compile-base.ts'
import type { Spent } from './expression-costs.ts'

/** The budget of the match conditions, in cost units. */
const conditionBudget = 2_500_000

/** The input of a policy. */
export interface PolicyValues {
  readonly shared: ReadonlyMap<string, Value>
  readonly params: JsonObject | undefined
  readonly spent: Spent
  /** Awaited between expressions, so that other requests are served; undefined: no need to wait. */
  readonly turn?: (() => Promise<void> | undefined) | undefined
}

/** The whole policy cannot be evaluated. */
export class EvaluationFailure extends Error {}

const outOfBudget = 'validation failed due to running out of cost budget, no further validation rules will be run'

export interface Result {
  readonly value?: Value
  readonly error?: string
}

export interface Results {
  /** The result of each expression, by index; undefined where there is no expression. */
  readonly results: readonly (Result | undefined)[]
  /** The remaining budget. */
  readonly left: number
}

export class PolicyRun {
  readonly #policy: PolicyBase
  readonly #shared: ReadonlyMap<string, Value>
  readonly #spent: Spent
  readonly #turn: PolicyValues['turn']

  constructor(policy: PolicyBase, { shared, params, spent, turn }: PolicyValues) {
    this.#policy = policy
    this.#spent = spent
    this.#turn = turn
    this.#shared = new Map([...shared, ['params', params === undefined ? null : dynamicValue(params)]])
  }

  /**
   * Resolves with true if all match conditions are true. Rejects with EvaluationFailure if a condition fails and the
   * policy fails closed.
   */
  async conditionsHold(): Promise<boolean> {
    const { conditions, failsOpen } = this.#policy
    if (conditions.length === 0) return true
    // As upstream, `namespaceObject` is null in conditions.
    const { results } = await this.run(conditions, conditionBudget, new Map([['namespaceObject', null]]))
    if (results.some((result) => result?.value === false)) return false
    const errors = results.flatMap((result) => result?.error ?? [])
    if (errors.length === 0) return true
    if (failsOpen) return false
    throw new EvaluationFailure(aggregateText(errors))
  }

  /**
   * Runs expressions that share a budget and the values of variables. `instead`: values that replace shared ones.
   * Rejects with EvaluationFailure once the expressions cost too much.
   */
  async run(
    expressions: readonly (Expression | undefined)[],
    budget: number,
    instead: ReadonlyMap<string, Value> = new Map(),
  ): Promise<Results> {
    const base = new Map([...this.#shared, ...instead])
    const spent = this.#spent
    const variables = new LazyVariables(this.#policy.variables, {
      activation: (values) => new Map([...base, ['variables', values]]),
      spent,
    })
    const activation = new Map([...base, ['variables', variables]])
    let left = budget
    const results: (Result | undefined)[] = []
    for (const expression of expressions) {
      const outcome = expression && outcomeOf(expression, activation, spent)
      left -= (outcome?.cost ?? 0) + variables.takeCost()
      if (left < 0) throw new EvaluationFailure(outOfBudget)
      results.push(outcome?.result)
      const turn = expression && this.#turn?.()
      if (turn !== undefined) await turn
    }
    return { results, left }
  }
}

function outcomeOf(
  { text, compiled }: Expression,
  activation: Activation,
  spent: Spent,
): { result: Result; cost: number } {
  if (!(compiled instanceof Program)) return { result: { error: `compilation error: ${compiled.message}` }, cost: 0 }
  const { value, error, cost } = compiled.run(activation, { spent })
  if (error !== undefined) return { result: { error: `expression '${text}' resulted in error: ${error}` }, cost }
  return { result: value === undefined ? {} : { value }, cost }
}

/** The value of `variables`. Each variable is computed when an expression first reads it. */
class LazyVariables extends CelMap {
  readonly #expressions: ReadonlyMap<string, Expression>
  readonly #activation: Activation
  readonly #spent: Spent
  readonly #values = new Map<string, Value>()
  #cost = 0

  constructor(
    expressions: ReadonlyMap<string, Expression>,
    { activation, spent }: { activation: (variables: LazyVariables) => Activation; spent: Spent },
  ) {
    super()
    this.#expressions = expressions
    this.#activation = activation(this)
    this.#spent = spent
  }

  override get size(): number {
    return this.#expressions.size
  }

  override keys(): readonly Value[] {
    return [...this.#expressions.keys()]
  }

  override find(key: Value): Value | undefined {
    const expression = typeof key === 'string' ? this.#expressions.get(key) : undefined
    if (expression === undefined || typeof key !== 'string') return undefined
    let value = this.#values.get(key)
    if (value === undefined) {
      value = this.#compute(key, expression)
      this.#values.set(key, value)
    }
    return value
  }

  /** The cost of variables since the last call, in cost units. */
  takeCost(): number {
    const cost = this.#cost
    this.#cost = 0
    return cost
  }

  #compute(name: string, { compiled }: Expression): Value {
    if (!(compiled instanceof Program))
      return new CelError(`composited variable "${name}" fails to compile: ${compiled.message}`)
    const { value, error, cost } = compiled.run(this.#activation, { spent: this.#spent })
    this.#cost += cost
    return value ?? new CelError(`composited variable "${name}" fails to evaluate: ${error ?? ''}`)
  }
}
