// How many values one body may have: two bytes of protobuf can be an object that takes a hundred in memory, and microseconds.
import { defaultMaxJsonValues, tooManyValues } from '../../../apimachinery/json/index.ts'

/** Counts the values of one body; as many are let through as a JSON body may have. */
export class ValueBudget {
  #left = defaultMaxJsonValues

  /** Throws 413 beyond the last. */
  take(values = 1): void {
    this.#left -= values
    if (this.#left < 0) throw tooManyValues(defaultMaxJsonValues)
  }
}
