// What checking one value against a schema may cost. Both are a tenant's: alternatives times items, or an expression times
// a long text, may take minutes, and nobody else would be answered meanwhile.
import { requestEntityTooLarge } from '../status/index.ts'

/** In steps of an expression, some 20 ns each at worst: 250 kB of text against 40 instructions. */
const maxSteps = 10_000_000
/** One check of one value by one node of a schema, in steps. */
export const checkSteps = 5

/** Spent by one `validate`, trials of alternatives included. */
export class CheckBudget {
  #left = maxSteps

  /** Throws RequestEntityTooLarge when there is nothing left. */
  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0)
      throw requestEntityTooLarge('the object takes too long to be checked against the schema of its kind')
  }
}
