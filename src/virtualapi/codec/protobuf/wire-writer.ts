// Writes the protobuf wire format into one growing buffer. Lengths are inserted when a nested message is complete.
import type { Int64 } from '#apimachinery/meta/index.ts'
import { Buffer } from 'node:buffer'

/** The bytes that are reserved for the length of a nested message. Most nested messages are shorter than 128 bytes. */
const reserved = 1

export class WireWriter {
  #buffer = Buffer.allocUnsafe(1024)
  #length = 0

  /** The bytes that were written so far; later writes do not change them. */
  bytes(): Buffer {
    return Buffer.from(this.#buffer.subarray(0, this.#length))
  }

  tag(field: number, wire: 0 | 1 | 2): void {
    this.unsigned(field * 8 + wire)
  }

  /** Writes a varint. A negative integer takes ten bytes, in two's complement of 64 bits. */
  integer(value: Int64): void {
    if (typeof value === 'number' && value >= 0) {
      this.unsigned(value)
      return
    }
    this.#reserve(10)
    let rest = BigInt.asUintN(64, typeof value === 'bigint' ? value : BigInt(Math.trunc(value)))
    while (rest > 0x7fn) {
      this.#buffer[this.#length++] = Number(rest & 0x7fn) | 0x80
      rest >>= 7n
    }
    this.#buffer[this.#length++] = Number(rest)
  }

  unsigned(value: number): void {
    this.#reserve(10)
    let rest = value
    while (rest > 0x7f) {
      this.#buffer[this.#length++] = (rest % 128) | 0x80
      rest = Math.floor(rest / 128)
    }
    this.#buffer[this.#length++] = rest
  }

  double(value: number): void {
    this.#reserve(8)
    this.#length = this.#buffer.writeDoubleLE(value, this.#length)
  }

  /** Writes a string with its length before it. */
  string(text: string): void {
    const size = Buffer.byteLength(text)
    this.unsigned(size)
    this.#reserve(size)
    this.#length += this.#buffer.write(text, this.#length)
  }

  /** Writes bytes with their length before them. */
  sized(bytes: Uint8Array): void {
    this.unsigned(bytes.length)
    this.raw(bytes)
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length)
    this.#buffer.set(bytes, this.#length)
    this.#length += bytes.length
  }

  /** Writes the output of `write` with its length before it. */
  nested(write: () => void): void {
    this.#reserve(reserved)
    const start = this.#length
    this.#length += reserved
    write()
    const size = this.#length - start - reserved
    const header = varintBytes(size)
    if (header > reserved) {
      this.#reserve(header - reserved)
      this.#buffer.copyWithin(start + header, start + reserved, this.#length)
      this.#length += header - reserved
    }
    let rest = size
    for (let i = 0; i < header; i++) {
      this.#buffer[start + i] = i < header - 1 ? (rest % 128) | 0x80 : rest
      rest = Math.floor(rest / 128)
    }
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#length + bytes))
    this.#buffer.copy(larger, 0, 0, this.#length)
    this.#buffer = larger
  }
}

/** The number of bytes that a varint takes. */
export function varintBytes(value: number): number {
  let bytes = 1
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) bytes++
  return bytes
}
