// Comparing objects as data: the order of keys means nothing.
import { createHash } from 'node:crypto'

/** JSON with sorted keys: equal data gives equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
}

/** A short name for this content: 80 bits of SHA-256 of its canonical JSON. */
export function contentHash(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, 20)
}

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
