// Numbers of objects, as members report them. A number that is none would make the reports of the other members invalid
// with it.
const maxCount = 10_000_000

/** True for a number of objects. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maxCount
}

/** The number, or 0 for what is none. */
export function countOf(value: unknown): number {
  return isCount(value) ? value : 0
}
