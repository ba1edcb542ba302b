// Bounds what costs do not: comparing, searching and printing values that hold one another many times over, and texts
// that grow out of small ones. cel-go counts such a call as one step.
import { CelError } from './value.ts'

/** Elements that one run may look at on the way, whatever its cost limit. */
const maxElements = 5_000_000

/** UTF-16 units of the longest text that a function may make. */
export const maxTextLength = 16 * 1024 * 1024

export const textTooLong = new CelError('string is too large')

/** Thrown where a run looks at too many elements. */
export class TooMuchWork extends Error {}

// One run goes on at a time: nothing in a run waits.
let left = maxElements

/** Begins to count for a run. */
export function beginWork(): void {
  left = maxElements
}

/** Counts elements that are looked at. Throws TooMuchWork. */
export function lookAt(elements: number): void {
  left -= elements
  if (left < 0) throw new TooMuchWork()
}
