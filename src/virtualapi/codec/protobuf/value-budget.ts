// Bounds the values of one body: two bytes of protobuf can become an object of a hundred bytes in memory.
import { defaultMaxJsonValues, tooManyValues } from '#apimachinery/json/index.ts'

/** Counts the values of one body. Default bound: the number that a JSON body may have. */
export class ValueBudget {
  readonly #max: number
  #left: number

  constructor(max = defaultMaxJsonValues) {
    this.#max = max
    this.#left = max
  }

  /** Counts values. Throws 413 if there are too many. */
  take(values = 1): void {
    this.#left -= values
    if (this.#left < 0) throw tooManyValues(this.#max)
  }
}
