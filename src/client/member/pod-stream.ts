// The bytes of one port of a pod, over the WebSocket protocol of port-forward (`v4.channel.k8s.io`): every message
// begins with the number of its channel, which is 0 for data and 1 for errors. The first message of each channel
// contains the port.
import { randomBytes } from 'node:crypto'
import { Duplex, type DuplexOptions } from 'node:stream'

const opcodes = { continuation: 0, binary: 2, close: 8, ping: 9, pong: 10 } as const
const [dataChannel, errorChannel] = [0, 1]
/** A kubelet sends 32 KiB at a time. */
const maxFrameBytes = 1024 * 1024
const maxSentBytes = 32 * 1024
const maxControlBytes = 125

interface Frame {
  readonly isLast: boolean
  readonly opcode: number
  readonly payload: Buffer
  readonly length: number
}

/**
 * A byte stream to the port. Both `destroy` and `end` close the connection, because the protocol has no half-closing.
 */
export class PodStream extends Duplex {
  readonly #socket: Duplex
  #received: Buffer
  #channel: number | undefined
  /** Channels whose first message, which contains the port, has arrived. */
  readonly #started = new Set<number>()

  /** `socket`: the connection after the upgrade. `head`: the bytes that were already read from it. */
  constructor(socket: Duplex, head: Uint8Array, options: DuplexOptions = {}) {
    super({ ...options, autoDestroy: true })
    this.#socket = socket
    this.#received = Buffer.from(head)
    // Readers have listeners for errors of their own. This one keeps an error after the last reader has gone from
    // ending the process.
    this.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    socket.once('end', () => this.push(null))
    socket.once('close', () => this.destroy())
    socket.on('error', (error) => this.destroy(error))
    if (head.length > 0) queueMicrotask(() => this.#take(Buffer.alloc(0)))
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    for (let from = 0; from < chunk.length; from += maxSentBytes)
      this.#socket.write(frame(opcodes.binary, Buffer.of(dataChannel), chunk.subarray(from, from + maxSentBytes)))
    if (this.#socket.writableNeedDrain) this.#socket.once('drain', () => done())
    else done()
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(frame(opcodes.close, Buffer.alloc(0), Buffer.alloc(0)))
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }

  #take(chunk: Buffer): void {
    if (this.destroyed) return
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    try {
      for (let next = parseFrame(this.#received); next !== undefined; next = parseFrame(this.#received)) {
        this.#received = this.#received.subarray(next.length)
        this.#frame(next)
      }
    } catch (error) {
      this.destroy(error as Error)
    }
  }

  #frame({ opcode, isLast, payload }: Frame): void {
    switch (opcode) {
      case opcodes.binary:
        this.#channel = payload[0]
        this.#message(payload.subarray(1), { isFirst: true })
        break
      case opcodes.continuation:
        this.#message(payload, { isFirst: false })
        break
      case opcodes.ping:
        this.#socket.write(frame(opcodes.pong, Buffer.alloc(0), payload.subarray(0, maxControlBytes)))
        break
      case opcodes.close:
        this.push(null)
        break
      default:
    }
    if (isLast && opcode <= opcodes.binary) this.#channel = undefined
  }

  #message(payload: Buffer, { isFirst }: { isFirst: boolean }): void {
    const channel = this.#channel
    if (channel === undefined) return
    // The first message of a channel is the port, in two bytes.
    if (isFirst && !this.#started.has(channel)) this.#started.add(channel)
    else if (channel === errorChannel) throw new Error('the member could not connect to the port of the pod')
    else if (channel === dataChannel && payload.length > 0 && !this.push(payload)) this.#socket.pause()
  }
}

/** The first frame of the bytes; undefined while it is incomplete. Throws for a frame that is masked or too long. */
function parseFrame(bytes: Buffer): Frame | undefined {
  if (bytes.length < 2) return undefined
  const [first, second] = [bytes.readUInt8(0), bytes.readUInt8(1)]
  if ((second & 0x80) !== 0) throw new Error('the member sent a masked frame')
  const short = second & 0x7f
  const head = short === 127 ? 10 : short === 126 ? 4 : 2
  if (bytes.length < head) return undefined
  const size = short === 127 ? Number(bytes.readBigUInt64BE(2)) : short === 126 ? bytes.readUInt16BE(2) : short
  if (size > maxFrameBytes) throw new Error('the member sent a frame that is too long')
  if (bytes.length < head + size) return undefined
  const payload = bytes.subarray(head, head + size)
  return { isLast: (first & 0x80) !== 0, opcode: first & 0x0f, payload, length: head + size }
}

/** A frame with a whole message of a client, masked as RFC 6455 requires. */
function frame(opcode: number, before: Buffer, payload: Buffer): Buffer {
  const size = before.length + payload.length
  const head = Buffer.alloc(size > 0xffff ? 14 : size > 125 ? 8 : 6)
  head[0] = 0x80 | opcode
  head[1] = 0x80 | (size > 0xffff ? 127 : size > 125 ? 126 : size)
  if (size > 0xffff) head.writeBigUInt64BE(BigInt(size), 2)
  else if (size > 125) head.writeUInt16BE(size, 2)
  const mask = randomBytes(4)
  mask.copy(head, head.length - 4)
  const body = Buffer.concat([before, payload])
  for (let i = 0; i < body.length; i++) body[i] = (body[i] ?? 0) ^ (mask[i & 3] ?? 0)
  return Buffer.concat([head, body])
}
