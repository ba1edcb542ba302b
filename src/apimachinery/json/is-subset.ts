// Compares an object with the fields we want it to have.

/** True if `actual` has everything in `wanted`. It may have more fields; lists must have the same length. */
export function isSubset(actual: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(actual) && actual.length === wanted.length && wanted.every((item, i) => isSubset(actual[i], item))
    )
  }
  if (typeof wanted === 'object' && wanted !== null) {
    if (typeof actual !== 'object' || actual === null) return Object.keys(wanted).length === 0
    return Object.entries(wanted).every(([key, value]) => isSubset((actual as Record<string, unknown>)[key], value))
  }
  return Object.is(actual, wanted)
}
