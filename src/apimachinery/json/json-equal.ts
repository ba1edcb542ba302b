// Equality of JSON values: objects by their fields in any order, arrays in order.
/** True if both are the same JSON value. A member with the value undefined differs from a missing one. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b)) return Array.isArray(a) && Array.isArray(b) && areEqualLists(a, b)
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>]
  let fields = 0
  for (const key in left) {
    // Inherited properties of `right`, such as `constructor`, are not its fields.
    if (!Object.hasOwn(right, key) || !jsonEqual(left[key], right[key])) return false
    fields++
  }
  for (const _ in right) fields--
  return fields === 0
}

function areEqualLists(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (!jsonEqual(a[i], b[i])) return false
  return true
}
