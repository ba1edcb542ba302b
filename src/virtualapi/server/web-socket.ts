// A server-side WebSocket that only sends (RFC 6455), for watches: of the client's frames only close and ping are handled.
// exec and the like do not use it; their bytes are piped to the member unread.
import { createHash } from 'node:crypto'
import { badRequest } from '../../apimachinery/status/index.ts'

/** The first header of this lower-case name, or undefined. */
type HeaderOf = (name: string) => string | undefined

// RFC 6455, section 1.3: suffix of the key in Sec-WebSocket-Accept.
const acceptSuffix = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
/** Browsers send their bearer token as a subprotocol, which must not be selected. */
const tokenProtocol = 'base64url.bearer.authorization.k8s.io.'
const opcodes = { text: 0x1, close: 0x8, ping: 0x9, pong: 0xa } as const
const maxControlBytes = 125

/** True if the client asks for an upgrade to WebSocket. */
export function isWebSocketRequest(header: HeaderOf): boolean {
  return /\bupgrade\b/i.test(header('connection') ?? '') && header('upgrade')?.toLowerCase() === 'websocket'
}

/** The header lines that accept a WebSocket. Throws 400 unless the request is a handshake of version 13. */
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

/** A text message in one frame. */
export function textFrame(text: Uint8Array): Buffer {
  return frame(opcodes.text, text)
}

/** A close frame with status 1000. */
export function closeFrame(): Buffer {
  return frame(opcodes.close, Uint8Array.of(1000 >> 8, 1000 & 0xff))
}

function frame(opcode: number, payload: Uint8Array): Buffer {
  const { length } = payload
  const head = Buffer.alloc(length <= maxControlBytes ? 2 : length < 2 ** 16 ? 4 : 10)
  head[0] = 0x80 | opcode // FIN: the only frame of its message
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

/** A frame that answers one of the client. `last`: close the connection after it. */
export interface Reply {
  readonly frame: Buffer
  readonly last: boolean
}

/** Parses a client's frames incrementally. Messages are skipped; only an incomplete control frame is buffered. */
export class ClientFrames {
  private kept = Buffer.alloc(0)
  private skip = 0

  /** Replies to the frames that these bytes complete. Throws 400 for invalid frames. */
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
    this.kept = Buffer.from(rest) // a copy, so that a few bytes do not retain the whole chunk
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
