// A hash of content: the same in every process, whatever the order of keys.
import { createHash } from 'node:crypto'
import { canonicalJson } from '#apimachinery/json/index.ts'

export { canonicalJson }

/** 80 bits of the SHA-256 of the canonical JSON. */
export function contentHash(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, 20)
}

const hashes = new WeakMap<object, string>()

/**
 * contentHash of a value that does not change any more, such as a part of an object from a cache: computed once,
 * because scheduler and syncers ask for that of one workload a dozen times.
 */
export function unchangingHash(value: unknown): string {
  if (typeof value !== 'object' || value === null) return contentHash(value)
  let hash = hashes.get(value)
  if (hash === undefined) hashes.set(value, (hash = contentHash(value)))
  return hash
}
