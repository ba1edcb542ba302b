// Comparing what is with what is wanted.

/** True where everything that `wanted` says is so in `actual`, which may say more (defaults, other owners' fields). */
export function saysAll(actual: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(actual) && actual.length === wanted.length && wanted.every((part, i) => saysAll(actual[i], part))
    )
  }
  if (typeof wanted === 'object' && wanted !== null) {
    if (typeof actual !== 'object' || actual === null) return Object.keys(wanted).length === 0
    return Object.entries(wanted).every(([key, part]) => saysAll((actual as Record<string, unknown>)[key], part))
  }
  return Object.is(actual, wanted)
}
