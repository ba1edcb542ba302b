// Random choices that are the same for the same seed.
import { randomBelow } from '#test/parity/cel/generate.ts'

export interface Dice {
  /** A number from 0 up to a bound. */
  readonly below: (bound: number) => number
  /** True once in so many times. */
  once(inTimes: number): boolean
  pick<T>(items: readonly [T, ...T[]]): T
  /** Each of them with a chance of one half. */
  some<T>(items: readonly T[]): T[]
}

/** The choices of one case. */
export function diceOf(seed: number): Dice {
  const below = randomBelow(seed)
  return {
    below,
    once: (inTimes) => below(inTimes) === 0,
    pick: (items) => items[below(items.length)] ?? items[0],
    some: (items) => items.filter(() => below(2) === 0),
  }
}
