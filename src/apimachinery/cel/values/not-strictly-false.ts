// The loop condition of all() and exists().
import type { Value } from './value.ts'

/** False only of false: what failed counts as true. */
export function notStrictlyFalse(value?: Value): Value {
  return value !== false
}
