// FNV-1a with 64 bits, computed with numbers: a BigInt for each byte of each object would make a sharded list slow.
import { Buffer } from 'node:buffer'

/** A position in the space of hashes: the upper and the lower 32 bits, unsigned. */
export interface ShardHash {
  readonly high: number
  readonly low: number
}

const offset: ShardHash = { high: 0xcbf29ce4, low: 0x84222325 }
/** The prime is 2^40 + 0x1b3. */
const [primeLow, primeShift] = [0x1b3, 8]

/** The hash of the UTF-8 bytes of a text. */
export function hashOf(text: string): ShardHash {
  let { high, low } = offset
  const bytes = isAscii(text) ? undefined : Buffer.from(text)
  const length = bytes?.length ?? text.length
  for (let i = 0; i < length; i++) {
    low = (low ^ (bytes === undefined ? text.charCodeAt(i) : (bytes[i] ?? 0))) >>> 0
    // A product below 2^53 is exact; what exceeds 32 bits goes to the upper half.
    const product = low * primeLow
    high = (Math.imul(high, primeLow) + Math.floor(product / 2 ** 32) + (low << primeShift)) >>> 0
    low = product >>> 0
  }
  return { high, low }
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false
  return true
}
