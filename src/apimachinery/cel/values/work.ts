// Bounds what costs do not: comparing, searching and printing values that hold one another many times over, and texts
// that grow out of small ones. cel-go counts such a call as one step.
import { CelError } from './value.ts'

/** Steps of some 20 ns that one run may take on the way, whatever its cost limit: the elements of several objects. */
const maxSteps = 5_000_000

/** UTF-16 units of the longest text that a function may make. */
export const maxTextLength = 16 * 1024 * 1024

/** UTF-16 units that are compared, counted or searched in one step. */
const unitsPerStep = 16
/** Steps that it takes to find an entry of a map. */
export const stepsOfEntry = 8
/** Steps that it takes to print a value, beside its text. */
const stepsToPrint = 8
/** UTF-16 units that are printed in one step. */
const unitsPrintedPerStep = 4

export const textTooLong = new CelError('string is too large')

/** Thrown where a run takes too many steps. */
export class TooMuchWork extends Error {
  constructor() {
    super('the values are too large')
  }
}

// One run goes on at a time: nothing in a run waits. A variable may run a program within a run.
let left = 0
let isCounting = false

/**
 * Counts the steps of a run: `done` gets their number, however the run ends. A run within another one has what that has
 * left; its own number is 0.
 */
export function countWork<T>(run: () => T, done: (steps: number) => void): T {
  const isWithin = isCounting
  if (!isWithin) left = maxSteps
  isCounting = true
  try {
    return run()
  } finally {
    isCounting = isWithin
    done(isWithin ? 0 : maxSteps - Math.max(left, 0))
  }
}

/** Counts elements that are looked at. Throws TooMuchWork. */
export function lookAt(elements: number): void {
  if (!isCounting) return
  left -= elements
  if (left < 0) throw new TooMuchWork()
}

/** Counts a text that is looked at; a short one is free. Throws TooMuchWork. */
export function lookAtText(length: number): void {
  if (length > unitsPerStep) lookAt(Math.ceil(length / unitsPerStep))
}

/** Counts a value that is printed with so much text, before it is printed. Throws TooMuchWork. */
export function lookAtPrinted(length: number): void {
  lookAt(stepsToPrint + Math.ceil(length / unitsPrintedPerStep))
}
