// Positions in a store.
import type { Brand } from './brand.ts'

/**
 * Position in our own store; ordered. It is a number and not a bigint: numbers compare and encode several times faster
 * on every request, and a counter reaches 2^53 only after 285 years of a million writes a second. A foreign
 * resourceVersion stays a plain string.
 */
export type Revision = Brand<number, 'Revision'>

export const zeroRevision = 0 as Revision

/** Parses a resourceVersion: decimal without leading zero. Undefined if the store cannot have issued it. */
export function tryRevision(text: string): Revision | undefined {
  if (!/^(0|[1-9][0-9]{0,15})$/.test(text)) return undefined
  const value = Number(text)
  return Number.isSafeInteger(value) ? (value as Revision) : undefined
}
