// Writes protobuf's wire format: fields in the order in which they are added, without default values.
import { Buffer } from 'node:buffer'

const text = new TextEncoder()

export class ProtoWriter {
  private readonly chunks: Uint8Array[] = []

  /** Writes a string unless it is empty. */
  string(field: number, value: string): void {
    if (value !== '') this.bytes(field, text.encode(value))
  }

  /** Writes a message or bytes, even if empty. */
  bytes(field: number, value: Uint8Array): void {
    this.chunks.push(varint(BigInt(field) * 8n + 2n), varint(BigInt(value.length)), value)
  }

  /** Writes true; with `always` (members of a oneof) false too. */
  bool(field: number, value: boolean, { always = false }: { always?: boolean } = {}): void {
    if (value || always) this.chunks.push(varint(BigInt(field) * 8n), Uint8Array.of(value ? 1 : 0))
  }

  int64(field: number, value: number): void {
    if (value !== 0) this.chunks.push(varint(BigInt(field) * 8n), varint(BigInt.asUintN(64, BigInt(Math.trunc(value)))))
  }

  double(field: number, value: number): void {
    if (value === 0) return
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(value)
    this.chunks.push(varint(BigInt(field) * 8n + 1n), bytes)
  }

  finish(): Buffer {
    return Buffer.concat(this.chunks)
  }
}

function varint(value: bigint): Uint8Array {
  if (value < 0x80n) return Uint8Array.of(Number(value))
  const bytes: number[] = []
  for (; value >= 0x80n; value >>= 7n) bytes.push(Number(value & 0x7fn) | 0x80)
  bytes.push(Number(value))
  return Uint8Array.from(bytes)
}
