// Evaluates a ValidatingAdmissionPolicy for one object and one set of parameters, with the words and the budgets of
// kube-apiserver.
import { CelError, CelMap, dynamicValue, Program, type Value } from '../../apimachinery/cel/index.ts'
import type { JsonObject } from '../../apimachinery/meta/index.ts'
import { aggregateText } from '../../apimachinery/field/index.ts'
import type { CompiledPolicy, Expression } from './compile-policy.ts'

/** In cost units: of the validations of one object, and of its match conditions. */
const validationBudget = 10_000_000
const conditionBudget = 2_500_000
const maxMessageBytes = 5 * 1024

export interface Denial {
  readonly message: string
  readonly reason: string
  /** The number of the validation. */
  readonly index: number
}

/** What a policy is evaluated with. */
export interface PolicyValues {
  readonly shared: ReadonlyMap<string, Value>
  readonly params: JsonObject | undefined
  /** Told what each expression cost, in cost units. Throws where the request has had enough. */
  readonly charge: (cost: number) => void
}

/** Why the object is refused; empty if it is not. */
export function evaluatePolicy(policy: CompiledPolicy, values: PolicyValues): readonly Denial[] {
  const run = new PolicyRun(policy, values)
  try {
    return run.conditionsHold() ? run.denials() : []
  } catch (error) {
    if (!(error instanceof EvaluationFailure)) throw error
    return policy.failsOpen ? [] : [{ message: error.message, reason: 'Invalid', index: 0 }]
  }
}

/** The whole policy cannot be evaluated. */
class EvaluationFailure extends Error {}

const outOfBudget = 'validation failed due to running out of cost budget, no further validation rules will be run'

interface Result {
  readonly value?: Value
  readonly error?: string
}

class PolicyRun {
  readonly #policy: CompiledPolicy
  readonly #shared: ReadonlyMap<string, Value>
  readonly #charge: PolicyValues['charge']

  constructor(policy: CompiledPolicy, { shared, params, charge }: PolicyValues) {
    this.#policy = policy
    this.#charge = charge
    this.#shared = new Map([...shared, ['params', params === undefined ? null : dynamicValue(params)]])
  }

  conditionsHold(): boolean {
    const { conditions, failsOpen } = this.#policy
    if (conditions.length === 0) return true
    const results = this.#group(conditions, conditionBudget).results
    if (results.some((result) => result?.value === false)) return false
    const errors = results.flatMap((result) => result?.error ?? [])
    if (errors.length === 0) return true
    if (failsOpen) return false
    throw new EvaluationFailure(aggregateText(errors))
  }

  denials(): Denial[] {
    const { validations, messages, annotations, failsOpen } = this.#policy
    const { results, left } = this.#group(validations, validationBudget)
    const texts = this.#messages(messages, left)
    const denials: Denial[] = []
    for (const [index, result] of results.entries()) {
      if (result?.error !== undefined || texts.failure !== undefined) {
        const message = result?.error ?? `failed messageExpression: ${texts.failure ?? ''}`
        if (!failsOpen) denials.push({ message, reason: 'Invalid', index })
      } else if (result?.value !== true) denials.push(this.#denial(index, texts.results[index]))
    }
    const wrong = this.#group(annotations, validationBudget).results.flatMap((result) => result?.error ?? [])
    if (!failsOpen) denials.push(...wrong.map((message) => ({ message, reason: 'Invalid', index: 0 })))
    return denials
  }

  #denial(index: number, computed: Result | undefined): Denial {
    const { message = '', expression = '', reason = 'Invalid' } = this.#policy.spec.validations?.[index] ?? {}
    const text = typeof computed?.value === 'string' ? computed.value.trim() : ''
    const isUsable = text !== '' && !text.includes('\n') && Buffer.byteLength(text) <= maxMessageBytes
    const standard = message === '' ? `failed expression: ${expression.trim()}` : message.trim()
    return { message: isUsable ? text : standard, reason, index }
  }

  #messages(messages: CompiledPolicy['messages'], budget: number): { results: Group['results']; failure?: string } {
    try {
      return this.#group(messages, budget)
    } catch (error) {
      if (error instanceof EvaluationFailure) return { results: [], failure: error.message }
      throw error
    }
  }

  /** Runs expressions that share a budget and the values of variables. */
  #group(expressions: readonly (Expression | undefined)[], budget: number): Group {
    const variables = new LazyVariables(this.#policy.variables, (values) => this.#with(values))
    const activation = this.#with(variables)
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

  #with(variables: LazyVariables): ReadonlyMap<string, Value> {
    return new Map([...this.#shared, ['variables', variables]])
  }
}

interface Group {
  readonly results: readonly (Result | undefined)[]
  /** What is left of the budget. */
  readonly left: number
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
