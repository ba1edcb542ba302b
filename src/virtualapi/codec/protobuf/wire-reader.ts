// Reads protobuf's wire format. The bytes are untrusted, so every length is checked against the remaining bytes.
import type { Int64 } from '#apimachinery/meta/index.ts'
import { Buffer } from 'node:buffer'
import { badRequest, type StatusError } from '#apimachinery/status/index.ts'
import { ValueBudget } from './value-budget.ts'

/** The wire type of a field. Groups (3 and 4) are not supported. */
export type WireType = 0 | 1 | 2 | 5

export interface WireTag {
  readonly field: number
  readonly wire: WireType
}

/** The 400 error for a body that is not a valid protobuf message of its kind. */
export function malformed(message: string): StatusError {
  return badRequest(`unable to decode the protobuf body: ${message}`)
}

export class WireReader {
  readonly #bytes: Buffer
  readonly #end: number
  #at: number
  /** The bound of the values of the whole body. Readers of nested messages share it. */
  readonly budget: ValueBudget

  constructor(bytes: Uint8Array, { start = 0, end = bytes.length, budget = new ValueBudget() } = {}) {
    // Buffer decodes short strings several times faster than TextDecoder.
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#at = start
    this.#end = end
    this.budget = budget
  }

  get done(): boolean {
    return this.#at >= this.#end
  }

  /** The tag of the next field. */
  tag(): WireTag {
    const tag = this.varint()
    const wire = tag % 8
    const field = Math.floor(tag / 8)
    if (tag < 0 || field < 1 || field > 0x1fffffff) throw malformed('illegal tag')
    if (wire !== 0 && wire !== 1 && wire !== 2 && wire !== 5) throw malformed(`illegal wire type ${wire}`)
    return { field, wire }
  }

  /** Reads a varint as a signed 64-bit integer, rounded beyond 2^53. For tags, lengths and small numbers. */
  varint(): number {
    return Number(this.integer())
  }

  /** Reads a varint as a signed 64-bit integer. */
  integer(): Int64 {
    // Most varints are one byte: tags, short lengths, bools, small numbers.
    const first = this.#bytes[this.#at]
    if (first !== undefined && first < 0x80 && this.#at < this.#end) {
      this.#at++
      return first
    }
    let low = 0
    let high = 0
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.#at >= this.#end) throw malformed('unexpected end')
      const byte = this.#bytes[this.#at++] ?? 0
      const part = byte & 0x7f
      if (shift < 28) low += part * 2 ** shift
      else high += part * 2 ** (shift - 28)
      if (byte < 0x80) return signed(low, high)
    }
    throw malformed('a number is too long')
  }

  double(): number {
    const at = this.#advance(8)
    return new DataView(this.#bytes.buffer, this.#bytes.byteOffset + at, 8).getFloat64(0, true)
  }

  /** The bytes of a length-delimited field; a view, not a copy. */
  bytes(): Uint8Array {
    const length = this.#length()
    const at = this.#advance(length)
    return this.#bytes.subarray(at, at + length)
  }

  string(): string {
    const length = this.#length()
    const at = this.#advance(length)
    return this.#bytes.toString('utf8', at, at + length)
  }

  /** A reader of the next nested message. */
  nested(): WireReader {
    const length = this.#length()
    const at = this.#advance(length)
    return new WireReader(this.#bytes, { start: at, end: at + length, budget: this.budget })
  }

  skip(wire: WireType): void {
    if (wire === 0) this.varint()
    else if (wire === 1) this.#advance(8)
    else if (wire === 5) this.#advance(4)
    else this.#advance(this.#length())
  }

  #length(): number {
    const length = this.varint()
    if (length < 0 || length > this.#end - this.#at) throw malformed('unexpected end')
    return length
  }

  /** Skips `count` bytes and returns the offset of the first of them. */
  #advance(count: number): number {
    const at = this.#at
    if (count > this.#end - at) throw malformed('unexpected end')
    this.#at = at + count
    return at
  }
}

/** The signed integer of 64 bits whose 28 low bits are `low` and whose bits above them (up to 42) are `high`. */
function signed(low: number, high: number): Int64 {
  const above = high % 2 ** 36
  const signedAbove = above < 2 ** 35 ? above : above - 2 ** 36
  const value = signedAbove * 2 ** 28 + low
  return Number.isSafeInteger(value) ? value : BigInt(signedAbove) * 2n ** 28n + BigInt(low)
}
