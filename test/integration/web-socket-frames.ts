// Parses the WebSocket frames that a server sends.
import type { Duplex } from 'node:stream'

export interface Frame {
  readonly opcode: number
  readonly payload: Buffer
}

/** The frames of a server: unmasked, one per message. */
export async function* framesOf(socket: Duplex): AsyncGenerator<Frame, undefined> {
  let bytes = Buffer.alloc(0)
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    bytes = Buffer.concat([bytes, chunk])
    for (let frame = frameAt(bytes); frame !== undefined; frame = frameAt(bytes)) {
      bytes = bytes.subarray(frame.end)
      yield { opcode: frame.opcode, payload: frame.payload }
    }
  }
  return undefined
}

function frameAt(bytes: Buffer): (Frame & { end: number }) | undefined {
  const short = bytes[1]
  const headBytes = short === undefined ? 2 : short < 126 ? 2 : short === 126 ? 4 : 10
  if (short === undefined || bytes.length < headBytes) return undefined
  const length = headBytes === 2 ? short : headBytes === 4 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
  const end = headBytes + length
  if (bytes.length < end) return undefined
  return { opcode: bytes[0]! & 0x0f, payload: bytes.subarray(headBytes, end), end }
}
