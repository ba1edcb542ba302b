// One run of a program: its variables, its local variables, and what it has cost so far.
import type { Value } from '#apimachinery/cel/values/value.ts'

/** Values of the declared variables by name. */
export type Activation = ReadonlyMap<string, Value>

/** Ends a run that costs more than it may. */
export class CostLimitExceeded extends Error {
  constructor() {
    super('operation cancelled: actual cost limit exceeded')
  }
}

/** Ends a run that nobody waits for any more. */
export class EvaluationInterrupted extends Error {
  constructor() {
    super('operation interrupted')
  }
}

const iterationsBetweenChecks = 100

export interface EvaluationLimits {
  /** In cost units; none by default. */
  readonly costLimit?: number
  /** Asked every 100 iterations of loops; true ends the run. */
  readonly isInterrupted?: () => boolean
}

export class Evaluation {
  readonly variables: Activation
  /** Accumulators and loop variables; undefined where an accumulator was not read yet. */
  readonly locals: (Value | undefined)[] = []
  cost = 0
  readonly #costLimit: number
  readonly #isInterrupted: (() => boolean) | undefined
  #iterations = 0

  constructor(variables: Activation, { costLimit = Infinity, isInterrupted }: EvaluationLimits = {}) {
    this.variables = variables
    this.#costLimit = costLimit
    this.#isInterrupted = isInterrupted
  }

  /** Adds to the cost. Throws CostLimitExceeded. */
  charge(units: number): void {
    this.cost += units
    if (this.cost > this.#costLimit) throw new CostLimitExceeded()
  }

  /** Counts an iteration of a loop. Throws EvaluationInterrupted. */
  iterate(): void {
    if (this.#isInterrupted === undefined || ++this.#iterations % iterationsBetweenChecks !== 0) return
    if (this.#isInterrupted()) throw new EvaluationInterrupted()
  }
}

/** A compiled piece of an expression. */
export type Evaluate = (run: Evaluation) => Value
