// Numbers of objects, as members report them. One value that is not such a number would make the sum over all members
// invalid.
const maxCount = 10_000_000

/** True for a number of objects. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maxCount
}

/** The value if it is a number of objects, else 0. */
export function countOf(value: unknown): number {
  return isCount(value) ? value : 0
}
