// Bounds the cost of checking one value against a schema. A tenant writes both: alternatives times items, or an
// expression on a long text, may take minutes and block every other request.
import { requestEntityTooLarge } from '../status/index.ts'

/** Steps of a regular expression, some 20 ns each at worst: 250 kB of text against 40 instructions. */
const maxSteps = 10_000_000
/** Cost of checking one value against one schema node, in steps. */
export const checkSteps = 5

/** The budget of one `validate`, trials of alternatives included. */
export class CheckBudget {
  #left = maxSteps

  /** Throws RequestEntityTooLarge when the budget is used up. */
  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0)
      throw requestEntityTooLarge('the object takes too long to be checked against the schema of its kind')
  }
}
