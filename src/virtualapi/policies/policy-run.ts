// Runs the expressions of one admission policy for one object and one set of parameters, within kube-apiserver's budgets.
import { CelError, CelMap, dynamicValue, Program, type Value } from '../../apimachinery/cel/index.ts'
import type { JsonObject } from '../../apimachinery/meta/index.ts'
import { aggregateText } from '../../apimachinery/field/index.ts'
import type { Expression, PolicyBase } from './compile-base.ts'

/** In cost units: of the match conditions. */
const conditionBudget = 2_500_000

/** What a policy is evaluated with. */
export interface PolicyValues {
  readonly shared: ReadonlyMap<string, Value>
  readonly params: JsonObject | undefined
  /** Told what each expression cost, in cost units. Throws where the request has had enough. */
  readonly charge: (cost: number) => void
}

/** The whole policy cannot be evaluated. */
export class EvaluationFailure extends Error {}

const outOfBudget = 'validation failed due to running out of cost budget, no further validation rules will be run'

export interface Result {
  readonly value?: Value
  readonly error?: string
}

export interface Results {
  /** Of each expression; undefined where there is none. */
  readonly results: readonly (Result | undefined)[]
  /** What is left of the budget. */
  readonly left: number
}

export class PolicyRun {
  readonly #policy: PolicyBase
  readonly #shared: ReadonlyMap<string, Value>
  readonly #charge: PolicyValues['charge']

  constructor(policy: PolicyBase, { shared, params, charge }: PolicyValues) {
    this.#policy = policy
    this.#charge = charge
    this.#shared = new Map([...shared, ['params', params === undefined ? null : dynamicValue(params)]])
  }

  /** Whether all match conditions are true. Throws EvaluationFailure where one fails and the policy fails closed. */
  conditionsHold(): boolean {
    const { conditions, failsOpen } = this.#policy
    if (conditions.length === 0) return true
    // As upstream, conditions do not see the namespace.
    const { results } = this.run(conditions, conditionBudget, new Map([['namespaceObject', null]]))
    if (results.some((result) => result?.value === false)) return false
    const errors = results.flatMap((result) => result?.error ?? [])
    if (errors.length === 0) return true
    if (failsOpen) return false
    throw new EvaluationFailure(aggregateText(errors))
  }

  /** Runs expressions that share a budget and the values of variables. Throws EvaluationFailure once they cost too much. */
  run(
    expressions: readonly (Expression | undefined)[],
    budget: number,
    instead: ReadonlyMap<string, Value> = new Map(),
  ): Results {
    const base = new Map([...this.#shared, ...instead])
    const variables = new LazyVariables(this.#policy.variables, (values) => new Map([...base, ['variables', values]]))
    const activation = new Map([...base, ['variables', variables]])
    let left = budget
    const results = expressions.map((expression): Result | undefined => {
      if (expression === undefined) return undefined
      const { text, compiled } = expression
      if (!(compiled instanceof Program)) return { error: `compilation error: ${compiled.message}` }
      const { value, error, cost } = compiled.run(activation)
      const all = cost + variables.takeCost()
      this.#charge(all)
      left -= all
      if (left < 0) throw new EvaluationFailure(outOfBudget)
      if (error !== undefined) return { error: `expression '${text}' resulted in error: ${error}` }
      return value === undefined ? {} : { value }
    })
    return { results, left }
  }
}

/** `variables`: each is computed where an expression first reads it. */
class LazyVariables extends CelMap {
  readonly #expressions: ReadonlyMap<string, Expression>
  readonly #activation: ReadonlyMap<string, Value>
  readonly #values = new Map<string, Value>()
  #cost = 0

  constructor(
    expressions: ReadonlyMap<string, Expression>,
    activation: (variables: LazyVariables) => ReadonlyMap<string, Value>,
  ) {
    super()
    this.#expressions = expressions
    this.#activation = activation(this)
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

  /** What variables cost since the last call, in cost units. */
  takeCost(): number {
    const cost = this.#cost
    this.#cost = 0
    return cost
  }

  #compute(name: string, { compiled }: Expression): Value {
    if (!(compiled instanceof Program))
      return new CelError(`composited variable "${name}" fails to compile: ${compiled.message}`)
    const { value, error, cost } = compiled.run(this.#activation)
    this.#cost += cost
    return value ?? new CelError(`composited variable "${name}" fails to evaluate: ${error ?? ''}`)
  }
}
