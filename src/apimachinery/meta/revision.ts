// Positions in a store.
import type { Brand } from './brand.ts'

/**
 * Position in our own store; ordered. A safe integer, not a bigint: the counter of etcd reaches 2^53 after 285 years of
 * a million writes a second, and numbers compare and encode several times faster on the paths every request takes.
 * A foreign resourceVersion stays a plain string.
 */
export type Revision = Brand<number, 'Revision'>

export const zeroRevision = 0 as Revision

/** Parses a resourceVersion: decimal without leading zero. Undefined if it is not one we could have given out. */
export function tryRevision(text: string): Revision | undefined {
  if (!/^(0|[1-9][0-9]{0,15})$/.test(text)) return undefined
  const value = Number(text)
  return Number.isSafeInteger(value) ? (value as Revision) : undefined
}
