// A WebSocket that only tells (RFC 6455): what the client says is not listened to, but for close and ping. Watches have
// no use for more; exec and its like never come here, their bytes pass through unread.
import { createHash } from 'node:crypto'
import { badRequest } from '../../apimachinery/status/index.ts'

/** The first header of this lower-case name, or undefined. */
type HeaderOf = (name: string) => string | undefined

// RFC 6455, 1.3: what a server proves to have read the request by.
const acceptSuffix = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
/** Browsers send their bearer token as a subprotocol, which is not one to choose. */
const tokenProtocol = 'base64url.bearer.authorization.k8s.io.'
const opcodes = { text: 0x1, close: 0x8, ping: 0x9, pong: 0xa } as const
const maxControlBytes = 125

/** True when the client asks for a WebSocket, and not for another protocol or none. */
export function isWebSocketRequest(header: HeaderOf): boolean {
  return /\bupgrade\b/i.test(header('connection') ?? '') && header('upgrade')?.toLowerCase() === 'websocket'
}

/** The header lines that accept a WebSocket. Throws 400 for a request that is none of version 13. */
export function acceptWebSocket(header: HeaderOf): string[] {
  const key = header('sec-websocket-key') ?? ''
  if (header('sec-websocket-version') !== '13' || Buffer.from(key, 'base64').length !== 16)
    throw badRequest('this is no WebSocket handshake of version 13')
  const accept = createHash('sha1').update(`${key}${acceptSuffix}`).digest('base64')
  const protocols = (header('sec-websocket-protocol') ?? '').split(',').map((protocol) => protocol.trim())
  const protocol = protocols.find((name) => name !== '' && !name.startsWith(tokenProtocol))
  return [
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${accept}`,
    ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
  ]
}

/** A whole message of UTF-8 text. */
export function textFrame(text: Uint8Array): Buffer {
  return frame(opcodes.text, text)
}

/** The end, in good order. */
export function closeFrame(): Buffer {
  return frame(opcodes.close, Uint8Array.of(1000 >> 8, 1000 & 0xff))
}

function frame(opcode: number, payload: Uint8Array): Buffer {
  const { length } = payload
  const head = Buffer.alloc(length <= maxControlBytes ? 2 : length < 2 ** 16 ? 4 : 10)
  head[0] = 0x80 | opcode // the only frame of its message
  if (head.length === 2) head[1] = length
  else if (head.length === 4) {
    head[1] = 126
    head.writeUInt16BE(length, 2)
  } else {
    head[1] = 127
    head.writeBigUInt64BE(BigInt(length), 2)
  }
  return Buffer.concat([head, payload])
}

/** What is to be said in answer to what a client said: a frame, and whether that is the last. */
export interface Reply {
  readonly frame: Buffer
  readonly last: boolean
}

/** Reads a client's frames as their bytes come. Messages are skipped; at most one frame's head is kept. */
export class ClientFrames {
  private kept = Buffer.alloc(0)
  private skip = 0

  /** Replies to what these bytes complete. Throws 400 for frames that no client may send. */
  read(bytes: Uint8Array): Reply[] {
    const replies: Reply[] = []
    let rest = Buffer.concat([this.kept, bytes])
    for (;;) {
      const skipped = Math.min(this.skip, rest.length)
      this.skip -= skipped
      rest = rest.subarray(skipped)
      const head = this.skip > 0 ? undefined : headOf(rest)
      if (head === undefined) break
      if (head.opcode < opcodes.close) {
        this.skip = head.headBytes + head.payloadBytes
        continue
      }
      const end = head.headBytes + head.payloadBytes
      if (rest.length < end) break
      const payload = unmasked(rest.subarray(head.headBytes - 4, head.headBytes), rest.subarray(head.headBytes, end))
      if (head.opcode === opcodes.ping) replies.push({ frame: frame(opcodes.pong, payload), last: false })
      if (head.opcode === opcodes.close)
        replies.push({ frame: frame(opcodes.close, payload.subarray(0, 2)), last: true })
      rest = rest.subarray(end)
    }
    this.kept = Buffer.from(rest) // a copy: not the whole chunk for a few bytes of it
    return replies
  }
}

function headOf(bytes: Buffer): { opcode: number; headBytes: number; payloadBytes: number } | undefined {
  const [first, second] = bytes
  if (first === undefined || second === undefined) return undefined
  const opcode = first & 0x0f
  const short = second & 0x7f
  if ((second & 0x80) === 0) throw badRequest('a WebSocket frame of a client must be masked')
  if (opcode >= opcodes.close && short > maxControlBytes) throw badRequest('a WebSocket control frame is too long')
  const headBytes = (short < 126 ? 2 : short === 126 ? 4 : 10) + 4
  if (bytes.length < headBytes) return undefined
  const payloadBytes = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
  return { opcode, headBytes, payloadBytes }
}

function unmasked(mask: Uint8Array, payload: Uint8Array): Buffer {
  return Buffer.from(payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0)))
}
