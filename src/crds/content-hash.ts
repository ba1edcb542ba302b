// A hash of content: the same in every process, whatever the order of keys.
import { createHash } from 'node:crypto'
import { canonicalJson } from '../apimachinery/json/index.ts'

export { canonicalJson }

/** 80 bits of the SHA-256 of the canonical JSON. */
export function contentHash(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, 20)
}
