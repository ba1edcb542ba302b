// Writes protobuf's wire format: fields in the order in which they are added, without default values.
import { Buffer } from 'node:buffer'

const text = new TextEncoder()

export class ProtoWriter {
  readonly #chunks: Uint8Array[] = []

  /** Writes a string unless it is empty. */
  string(field: number, value: string): void {
    if (value !== '') this.bytes(field, text.encode(value))
  }

  /** Writes a message or bytes, even if empty. */
  bytes(field: number, value: Uint8Array): void {
    this.#chunks.push(small(field * 8 + 2), small(value.length), value)
  }

  /** Writes true; with `always` (for members of a oneof), also writes false. */
  bool(field: number, value: boolean, { always = false }: { always?: boolean } = {}): void {
    if (value || always) this.#chunks.push(small(field * 8), Uint8Array.of(value ? 1 : 0))
  }

  int64(field: number, value: number): void {
    if (value !== 0) this.#chunks.push(small(field * 8), varint(BigInt.asUintN(64, BigInt(Math.trunc(value)))))
  }

  double(field: number, value: number): void {
    if (value === 0) return
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(value)
    this.#chunks.push(small(field * 8 + 1), bytes)
  }

  finish(): Buffer {
    return Buffer.concat(this.#chunks)
  }
}

/** A varint below 2^31; nearly all are below 128. */
function small(value: number): Uint8Array {
  if (value < 0x80) return Uint8Array.of(value)
  const bytes: number[] = []
  for (; value >= 0x80; value >>>= 7) bytes.push((value & 0x7f) | 0x80)
  bytes.push(value)
  return Uint8Array.from(bytes)
}

function varint(value: bigint): Uint8Array {
  const bytes: number[] = []
  for (; value >= 0x80n; value >>= 7n) bytes.push(Number(value & 0x7fn) | 0x80)
  bytes.push(Number(value))
  return Uint8Array.from(bytes)
}
