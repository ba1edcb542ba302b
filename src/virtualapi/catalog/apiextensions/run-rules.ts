// Runs validation rules on objects, with the words and the budgets of kube-apiserver.
import {
  type Activation,
  CelOptional,
  type Outcome,
  type Program,
  typedValue,
  type Value,
} from '#apimachinery/cel/index.ts'
import {
  causeText,
  childPath,
  fieldDuplicate,
  fieldForbidden,
  fieldInvalid,
  fieldRequired,
  indexPath,
  keyPath,
} from '#apimachinery/field/index.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { CompiledRule } from './compile-rules.ts'
import { itemIndex, Ratchet } from './ratchet.ts'
import type { RuleTree } from './rule-tree.ts'
import { ruleName, type ValidationRule } from './validation-rule.ts'

/** Maximum cost of the rules for one object, in cost units. */
const objectBudget = 10_000_000
/** The most additional steps of the rules for one object, for values that contain one another: some 0.2 s. */
const objectSteps = 10_000_000
const maxMessageBytes = 5 * 1024
/** The most failures that are reported, because the response must not be much larger than the request. */
const maxCauses = 500
const outOfBudget = 'validation failed due to running out of cost budget, no further validation rules will be run'

export interface RuleOptions {
  /** The path of the value within its object. */
  readonly path?: string
  /** The old value, which the value replaces. */
  readonly old?: JsonValue | undefined
  /** The list to which failures in unchanged parts are added as warnings. Without it, they are failures, too. */
  readonly warnings?: string[]
  readonly budget?: RuleBudget
}

/** The remaining budget for the rules of one object; below zero once the budget is spent. */
export interface RuleBudget {
  left: number
  steps: number
}

export const ruleBudget = (): RuleBudget => ({ left: objectBudget, steps: objectSteps })

/** The failures of rules in a value. Never throws: a rule that cannot be run is a failure. */
export function runRules(value: JsonValue, tree: RuleTree, options: RuleOptions = {}): StatusCause[] {
  const { path = '', old, warnings, budget = ruleBudget() } = options
  const run = new RuleRun(warnings ?? [], budget)
  const ratchet = warnings === undefined ? Ratchet.none : Ratchet.root(value, old, tree.schema)
  run.check(tree, path, { value, old, ratchet })
  return run.causes
}

interface Visit {
  readonly value: JsonValue
  readonly old: JsonValue | undefined
  readonly ratchet: Ratchet
}

class RuleRun {
  readonly causes: StatusCause[] = []
  readonly warnings: string[]
  readonly budget: RuleBudget

  constructor(warnings: string[], budget: RuleBudget) {
    this.warnings = warnings
    this.budget = budget
  }

  get #ended(): boolean {
    return this.budget.left < 0 || this.causes.length >= maxCauses
  }

  check(tree: RuleTree, path: string, visit: Visit): void {
    const { value } = visit
    if (value === null || this.#ended) return
    this.#rules(tree, path, visit)
    for (const one of tree.allOf) this.check(one, path, { ...visit, ratchet: visit.ratchet.uncorrelated() })
    if (Array.isArray(value)) this.#items(tree, path, visit, value)
    else if (isJsonObject(value)) this.#fields(tree, path, visit, value)
  }

  #items({ items, schema }: RuleTree, path: string, { old, ratchet }: Visit, list: JsonValue[]): void {
    if (items === undefined) return
    const before = itemIndex(old, schema)
    for (const [i, value] of list.entries()) {
      if (this.#ended) return
      this.check(items, indexPath(path, i), { value, old: before(value), ratchet: ratchet.item(i) })
    }
  }

  #fields({ values, properties }: RuleTree, path: string, { old, ratchet }: Visit, object: JsonObject): void {
    if (values === undefined && properties.size === 0) return
    for (const [key, value] of Object.entries(object)) {
      if (this.#ended) return
      const before = isJsonObject(old) && Object.hasOwn(old, key) ? old[key] : undefined
      const tree = properties.get(key)
      const below = { value, old: before, ratchet: ratchet.field(key) }
      if (values !== undefined) this.check(values, keyPath(path, key), below)
      if (tree !== undefined) this.check(tree, childPath(path, key), below)
    }
  }

  #rules(tree: RuleTree, path: string, visit: Visit): void {
    const type = tree.schema.type ?? ''
    if (tree.untyped) {
      const why = 'failed to convert to declType for CEL validation rules'
      this.causes.push(fieldInvalid(path, type, `rule compiler initialization error: ${why}`))
    }
    if (tree.rules.length === 0) return
    if (this.budget.left <= 0) {
      this.#stop(fieldInvalid(path, type, outOfBudget))
      return
    }
    const activation = activations(tree, visit)
    for (const rule of tree.rules) {
      if (this.#ended) return
      this.#rule(rule, { path, type, visit, activation })
    }
  }

  #rule(compiled: CompiledRule, place: Place): void {
    const { rule, condition, usesOldSelf } = compiled
    const { path, type, visit, activation } = place
    if (condition === undefined) return
    if (condition.program === undefined) {
      this.causes.push(fieldInvalid(path, type, `rule compile error: ${condition.failure ?? ''}`))
      return
    }
    const optional = rule.optionalOldSelf === true
    if (usesOldSelf && (visit.old ?? null) === null && !optional) return
    const variables = activation(optional)
    const outcome = this.#run(condition.program, variables)
    if (outcome === undefined) this.#stop(fieldInvalid(path, type, outOfBudget))
    else if (outcome.error !== undefined) this.#failed(outcome, rule, place)
    else if (outcome.value !== true) this.#refused(compiled, place, variables)
  }

  /** Runs a program. Returns undefined if it cost more than the remaining budget. */
  #run(program: Program, variables: Activation): Outcome | undefined {
    const spent = (_cost: number, steps: number): void => void (this.budget.steps -= steps)
    const outcome = program.run(variables, { spent })
    if (outcome.cost > this.budget.left || this.budget.steps < 0) return undefined
    this.budget.left -= outcome.cost
    return outcome
  }

  #stop(cause: StatusCause): void {
    this.causes.push(cause)
    this.budget.left = -1
  }

  #failed({ error = '' }: Outcome, rule: ValidationRule, { path, type }: Place): void {
    const name = ruleName(rule)
    if (error.startsWith('no such overload')) {
      const why = 'call arguments did not match a supported operator, function or macro signature for rule'
      this.causes.push(fieldInvalid(path, type, `'${error}': ${why}: ${name}`))
    } else if (error.startsWith('operation cancelled: actual cost limit exceeded')) {
      const why = 'no further validation rules will be run due to call cost exceeds limit for rule'
      this.#stop(fieldInvalid(path, type, `'${error}': ${why}: ${name}`))
    } else this.causes.push(fieldInvalid(path, type, `${error} evaluating rule: ${name}`))
  }

  #refused(
    { rule, fieldPath, messageExpression, usesOldSelf }: CompiledRule,
    place: Place,
    variables: Activation,
  ): void {
    const path = fieldPath === '' ? place.path : childPath(place.path, fieldPath)
    const add = (cause: StatusCause): void => {
      if (!usesOldSelf && place.visit.ratchet.isUnchanged()) this.warnings.push(causeText(cause))
      else this.causes.push(cause)
    }
    const standard = rule.message === '' ? `failed rule: ${ruleName(rule)}` : rule.message.trim()
    const program = messageExpression?.program
    const found = program === undefined ? undefined : this.#message(program, rule, variables)
    if (found?.fatal !== undefined) {
      add(fieldInvalid(path, place.type, found.fatal))
      this.budget.left = -1
    } else add(causeFor(rule.reason, path, place.type, found?.text ?? standard))
  }

  /** Runs a messageExpression. `text`: the message, if the result is usable. `fatal`: an error that ends the run. */
  #message(program: Program, rule: ValidationRule, variables: Activation): { text?: string; fatal?: string } {
    const outcome = this.#run(program, variables)
    if (outcome === undefined) {
      const why = 'messageExpression evaluation failed due to running out of cost budget'
      return { fatal: `${why}, no further validation rules will be run` }
    }
    if (outcome.error?.startsWith('operation cancelled: actual cost limit exceeded') === true) {
      const why = 'no further validation rules will be run due to call cost exceeds limit for messageExpression'
      return { fatal: `${why}: ${goQuote(rule.messageExpression)}` }
    }
    const text = typeof outcome.value === 'string' ? outcome.value.trim() : ''
    return text === '' || text.includes('\n') || Buffer.byteLength(text) > maxMessageBytes ? {} : { text }
  }
}

interface Place {
  readonly path: string
  readonly type: string
  readonly visit: Visit
  readonly activation: (optional: boolean) => Activation
}

/**
 * The variables of rules at one value, created when a rule first needs them. `optional`: oldSelf is an optional value.
 */
function activations({ valueSchema }: RuleTree, { value, old }: Visit): (optional: boolean) => Activation {
  const made: (Activation | undefined)[] = []
  const self = typedValue(value, valueSchema)
  const before = (old ?? null) === null ? undefined : typedValue(old ?? null, valueSchema)
  return (optional) => {
    const oldSelf = optional ? (before === undefined ? CelOptional.none : new CelOptional(before)) : before
    const pairs: [string, Value][] = [
      ['self', self],
      ...(oldSelf === undefined ? [] : [['oldSelf', oldSelf] satisfies [string, Value]]),
    ]
    return (made[Number(optional)] ??= new Map(pairs))
  }
}

function causeFor(reason: string | undefined, path: string, type: string, detail: string): StatusCause {
  switch (reason) {
    case 'FieldValueForbidden':
      return fieldForbidden(path, detail)
    case 'FieldValueRequired':
      return fieldRequired(path, detail)
    case 'FieldValueDuplicate':
      return fieldDuplicate(path, type)
    default:
      return fieldInvalid(path, type, detail)
  }
}
