// Compiles expressions and runs them.
import type { CheckedExpression } from '#apimachinery/cel/declarations/checked-expression.ts'
import { check } from '#apimachinery/cel/check/checker.ts'
import { literalErrors } from './literal-rules.ts'
import { callCost } from '#apimachinery/cel/cost/call-cost.ts'
import { estimateCost } from '#apimachinery/cel/cost/estimate.ts'
import type { SizeOfPath } from '#apimachinery/cel/cost/estimate-call.ts'
import type { Range } from '#apimachinery/cel/cost/range.ts'
import {
  type Activation,
  CostLimitExceeded,
  type Evaluate,
  Evaluation,
  EvaluationInterrupted,
  type EvaluationLimits,
} from '#apimachinery/cel/evaluate/evaluation.ts'
import { plan, ProgramError } from '#apimachinery/cel/evaluate/plan.ts'
import { withConstantPattern } from '#apimachinery/cel/library/patterns.ts'
import { parse } from '#apimachinery/cel/syntax/parse.ts'
import { SourceErrors } from '#apimachinery/cel/syntax/source.ts'
import type { CelType } from '#apimachinery/cel/types/cel-type.ts'
import { type DeclaredType, typeAtPath } from '#apimachinery/cel/types/declared-type.ts'
import { CelError, type Value } from '#apimachinery/cel/values/value.ts'
import { countWork, TooMuchWork } from '#apimachinery/cel/values/work.ts'
import type { Environment } from './environment.ts'

/** The most that one run may cost, as kube-apiserver has it. */
export const perCallLimit = 1_000_000

/** Why an expression is no program, in the words of kube-apiserver. */
export interface CompileFailure {
  /** `compile`: its text or types are wrong; `program`: a constant part of it can only fail. */
  readonly stage: 'compile' | 'program'
  readonly message: string
  /** What it would give, if its text and types are right. */
  readonly outputType?: CelType
}

export interface Outcome {
  /** What the expression gives; absent where it failed. */
  readonly value?: Value
  /** Why it failed. */
  readonly error?: string
  /** True where it failed because it cost too much or nobody waited any longer: a later run may succeed. */
  readonly cancelled: boolean
  /** In cost units. */
  readonly cost: number
}

/** Longer errors are cut: they become parts of answers. */
const maxErrorLength = 10_000

export interface RunOptions extends EvaluationLimits {
  /**
   * Told at the end of the run, however it ends, what it cost in cost units, and how many steps beside these it took to
   * look at values that hold one another. A run within another one is counted with that one.
   */
  readonly spent?: (cost: number, steps: number) => void
}

/** A compiled expression. It never changes: any number of callers may share it. */
export class Program {
  readonly #checked: CheckedExpression
  readonly #evaluate: Evaluate

  constructor(checked: CheckedExpression, evaluate: Evaluate) {
    this.#checked = checked
    this.#evaluate = evaluate
  }

  get outputType(): CelType {
    return this.#checked.outputType
  }

  /** True if the expression names a variable. */
  uses(variable: string): boolean {
    return this.#checked.variables.has(variable)
  }

  /** What runs may cost, where values are as large as a declared type allows. Every path begins with a variable. */
  estimate(root?: DeclaredType): Range {
    return estimateCost(this.#checked, root === undefined ? undefined : sizesOf(root))
  }

  /** Runs the program. The cost limit is that of one call of kube-apiserver by default. */
  run(variables: Activation, { costLimit = perCallLimit, spent, ...limits }: RunOptions = {}): Outcome {
    const evaluation = new Evaluation(variables, { costLimit, ...limits })
    return countWork(
      () => this.#outcome(evaluation),
      (steps) => spent?.(evaluation.cost, steps),
    )
  }

  #outcome(evaluation: Evaluation): Outcome {
    try {
      const value = this.#evaluate(evaluation)
      const { cost } = evaluation
      return value instanceof CelError
        ? { error: value.message.slice(0, maxErrorLength), cancelled: false, cost }
        : { value, cancelled: false, cost }
    } catch (error) {
      const { cost } = evaluation
      if (error instanceof TooMuchWork) return { error: new CostLimitExceeded().message, cancelled: true, cost }
      if (!(error instanceof CostLimitExceeded || error instanceof EvaluationInterrupted)) throw error
      return { error: error.message, cancelled: true, cost }
    }
  }
}

const sizesOf =
  (root: DeclaredType): SizeOfPath =>
  (path) => {
    const found = typeAtPath(root, path.slice(1))
    return found === undefined ? undefined : { min: 0n, max: BigInt(found.maxElements) }
  }

/** Compiles an expression. */
export function compileExpression(text: string, environment: Environment): Program | CompileFailure {
  const parsed = parse(text, environment.parser)
  if (parsed instanceof SourceErrors) return { stage: 'compile', message: parsed.toString() }
  const checked = check(parsed, environment.declarations)
  if (checked instanceof SourceErrors) return { stage: 'compile', message: checked.toString() }
  const wrong = literalErrors(parsed, checked, environment)
  if (wrong !== undefined) return { stage: 'compile', message: wrong.toString() }
  try {
    const { struct } = environment.declarations
    return new Program(checked, plan(checked, { struct, callCost, withConstantPattern }))
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error
    return { stage: 'program', message: error.message, outputType: checked.outputType }
  }
}
