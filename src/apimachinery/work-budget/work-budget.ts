// The budget of work of one request. Tenants choose the sizes of both sides of a product (selectors times objects,
// rules times roles, a pattern times a text), so a small request can cause minutes of work, during which all other
// requests wait.
import { requestEntityTooLarge } from '#apimachinery/status/index.ts'

/** Maximum number of steps, of some 20 ns each: 0.2 s at worst. */
const maxSteps = 10_000_000
/** Maximum bytes of stored objects that are parsed for the request, besides the object of the request itself. */
const maxBytes = 16 * 1024 * 1024

/** Steps and bytes that one request has left; it travels with the request. Charging costs one subtraction. */
export class WorkBudget {
  #steps: number
  #bytes: number

  constructor({ steps = maxSteps, bytes = maxBytes }: { readonly steps?: number; readonly bytes?: number } = {}) {
    this.#steps = steps
    this.#bytes = bytes
  }

  /**
   * Charges steps. Throws RequestEntityTooLarge (413) with this message if too few are left: a retry would cost the
   * same.
   */
  spend(steps: number, message: string): void {
    this.#steps -= steps
    if (this.#steps < 0) throw requestEntityTooLarge(message)
  }

  /** Charges steps; false if too few are left. For callers that then return less instead of failing. */
  trySpend(steps: number): boolean {
    this.#steps -= steps
    return this.#steps >= 0
  }

  /** Charges bytes to be parsed; false if too few are left. */
  trySpendBytes(bytes: number): boolean {
    this.#bytes -= bytes
    return this.#bytes >= 0
  }
}
