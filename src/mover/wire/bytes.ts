// Writing and reading of the binary fields of frames.
import { MoverError } from '#mover/contract/index.ts'

/** Numbers are little-endian; sizes and offsets are whole numbers up to 2^53 - 1, in 8 bytes. */
export class ByteWriter {
  #buffer: Buffer
  #length = 0

  constructor(capacity = 256) {
    this.#buffer = Buffer.allocUnsafe(capacity)
  }

  get length(): number {
    return this.#length
  }

  /** What was written so far. Later writes may reuse its memory only after `reset`. */
  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.#length)
    this.#buffer = Buffer.allocUnsafe(Math.max(256, Math.min(this.#buffer.length, 1 << 17)))
    this.#length = 0
    return taken
  }

  u8(value: number): this {
    const at = this.#grow(1)
    this.#buffer[at] = value
    return this
  }

  u16(value: number): this {
    const at = this.#grow(2)
    this.#buffer.writeUInt16LE(value, at)
    return this
  }

  u32(value: number): this {
    const at = this.#grow(4)
    this.#buffer.writeUInt32LE(value, at)
    return this
  }

  /** A size or an offset. */
  size(value: number): this {
    const at = this.#grow(8)
    this.#buffer.writeUInt32LE(value % 2 ** 32, at)
    this.#buffer.writeUInt32LE(Math.floor(value / 2 ** 32), at + 4)
    return this
  }

  /** A whole number that may be negative. */
  signed(value: number): this {
    const at = this.#grow(8)
    this.#buffer.writeUInt32LE(((value % 2 ** 32) + 2 ** 32) % 2 ** 32, at)
    this.#buffer.writeInt32LE(Math.floor(value / 2 ** 32), at + 4)
    return this
  }

  raw(bytes: Uint8Array): this {
    const at = this.#grow(bytes.length)
    this.#buffer.set(bytes, at)
    return this
  }

  bytes16(bytes: Uint8Array): this {
    return this.u16(bytes.length).raw(bytes)
  }

  bytes32(bytes: Uint8Array): this {
    return this.u32(bytes.length).raw(bytes)
  }

  text(value: string): this {
    return this.bytes16(Buffer.from(value).subarray(0, 4096))
  }

  #grow(by: number): number {
    const at = this.#length
    this.#length += by
    if (this.#length > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#length, this.#buffer.length * 2))
      larger.set(this.#buffer.subarray(0, at))
      this.#buffer = larger
    }
    return at
  }
}

/** Reads the fields of a frame; every read beyond its end throws ProtocolViolated. */
export class ByteReader {
  readonly #buffer: Buffer
  #at = 0

  constructor(buffer: Buffer) {
    this.#buffer = buffer
  }

  get isAtEnd(): boolean {
    return this.#at === this.#buffer.length
  }

  u8(): number {
    return this.#buffer[this.#take(1)] ?? 0
  }

  u16(): number {
    return this.#buffer.readUInt16LE(this.#take(2))
  }

  u32(): number {
    return this.#buffer.readUInt32LE(this.#take(4))
  }

  size(): number {
    const at = this.#take(8)
    const value = this.#buffer.readUInt32LE(at + 4) * 2 ** 32 + this.#buffer.readUInt32LE(at)
    if (!Number.isSafeInteger(value)) throw violated('a size beyond 2^53')
    return value
  }

  signed(): number {
    const at = this.#take(8)
    const value = this.#buffer.readInt32LE(at + 4) * 2 ** 32 + this.#buffer.readUInt32LE(at)
    if (!Number.isSafeInteger(value)) throw violated('a time beyond 2^53')
    return value
  }

  /** A view of the frame, valid as long as the frame. */
  raw(length: number): Buffer {
    const at = this.#take(length)
    return this.#buffer.subarray(at, at + length)
  }

  bytes16(): Buffer {
    return this.raw(this.u16())
  }

  bytes32(): Buffer {
    return this.raw(this.u32())
  }

  text(): string {
    return this.bytes16().toString()
  }

  rest(): Buffer {
    return this.raw(this.#buffer.length - this.#at)
  }

  #take(length: number): number {
    const at = this.#at
    if (at + length > this.#buffer.length) throw violated('a frame that ends too early')
    this.#at += length
    return at
  }
}

/** The other mover does not keep to the protocol. */
export function violated(what: string): MoverError {
  return new MoverError('ProtocolViolated', `the other mover sent ${what}`)
}
