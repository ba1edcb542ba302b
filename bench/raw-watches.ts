// A client that holds thousands of watches at little cost: HTTP/2 frames over a TLS socket, read by hand. The time of a
// client library per event would count as the server's lag.
import { connect, type TLSSocket } from 'node:tls'
import type { Connection } from './connection.ts'

const [frameData, frameHeaders, frameReset, frameSettings, framePing, frameGoAway, frameWindow] = [0, 1, 3, 4, 6, 7, 8]
const [flagAck, flagEndStream, flagEndHeaders] = [1, 1, 4]
const maxWindow = 0x7fffffff
/** Bytes read before the flow-control window is opened by as much again. */
const windowStep = 16 * 1024 * 1024

export interface RawWatches {
  /** Streams that the server ended or refused, with its message. */
  readonly ended: readonly string[]
  close(): void
}

/**
 * Opens one connection with a GET for every path. Resolves once all are answered with 200; rejects if one is not.
 * `onData` receives every chunk of every stream, with the path's index, as it arrives.
 */
export function openRawWatches(
  { host, port, base, ca, cert, key }: Connection,
  { paths, onData }: { paths: readonly string[]; onData: (index: number, piece: Buffer) => void },
): Promise<RawWatches> {
  const socket = connect({ host, port, ca, cert, key, ALPNProtocols: ['h2'], servername: '' })
  socket.setNoDelay(true)
  return new Promise((resolve, reject) => {
    const ended: string[] = []
    let answered = 0
    let read = 0
    let rest: Buffer = Buffer.alloc(0)
    const end = (what: string): void => {
      ended.push(what)
      reject(new Error(what))
    }
    socket.on('error', (error: Error) => end(`the connection failed: ${error.message}`))
    socket.on('close', () => end('the connection was closed'))
    socket.on('secureConnect', () => {
      socket.write(Buffer.concat([preface(), ...paths.map((path, i) => request(i * 2 + 1, host, port, base + path))]))
    })
    const take = (type: number, flags: number, stream: number, payload: Buffer): void => {
      const index = (stream - 1) / 2
      switch (type) {
        case frameData:
          if (payload.length > 0) onData(index, payload)
          if (flags & flagEndStream) end(`stream ${index} ended`)
          return
        case frameHeaders:
          if (!saysOk(payload)) end(`stream ${index} was not answered with 200`)
          else if (++answered === paths.length) resolve({ ended, close: () => closeQuietly(socket) })
          return
        case frameReset:
          end(`stream ${index} was reset`)
          return
        case frameGoAway:
          end('the server goes away')
          return
        case frameSettings:
          if (!(flags & flagAck)) socket.write(frame(frameSettings, flagAck, 0, Buffer.alloc(0)))
          return
        case framePing:
          if (!(flags & flagAck)) socket.write(frame(framePing, flagAck, 0, payload))
      }
    }
    socket.on('data', (piece: Buffer) => {
      const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece])
      let at = 0
      while (bytes.length - at >= 9) {
        const length = bytes.readUIntBE(at, 3)
        if (bytes.length - at < 9 + length) break
        const payload = bytes.subarray(at + 9, at + 9 + length)
        take(bytes[at + 3] ?? 0, bytes[at + 4] ?? 0, bytes.readUInt32BE(at + 5) & maxWindow, payload)
        at += 9 + length
      }
      rest = bytes.subarray(at)
      read += piece.length
      if (read < windowStep) return
      socket.write(frame(frameWindow, 0, 0, uint32(read)))
      read = 0
    })
  })
}

function closeQuietly(socket: TLSSocket): void {
  socket.removeAllListeners()
  socket.on('error', () => undefined)
  socket.destroy()
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** The connection preface: no dynamic header table, and windows so large that they never stop the server. */
function preface(): Buffer {
  const settings = Buffer.from([0, 1, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff])
  return Buffer.concat([
    Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    frame(frameSettings, 0, 0, settings),
    frame(frameWindow, 0, 0, uint32(maxWindow - 0xffff)),
  ])
}

/** HEADERS of a GET, in HPACK without compression (RFC 7541): indexed method and scheme, literal path and authority. */
function request(stream: number, host: string, port: number, path: string): Buffer {
  const headers = [Buffer.from([0x82, 0x87, 0x04]), literal(path), Buffer.from([0x01]), literal(`${host}:${port}`)]
  return frame(frameHeaders, flagEndStream | flagEndHeaders, stream, Buffer.concat(headers))
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text)
  const length: number[] = []
  if (bytes.length < 127) length.push(bytes.length)
  else {
    length.push(127)
    let left = bytes.length - 127
    for (; left >= 128; left >>= 7) length.push((left & 127) | 128)
    length.push(left)
  }
  return Buffer.concat([Buffer.from(length), bytes])
}

/** `:status 200` is one byte, after any updates of the header table's size. */
function saysOk(payload: Buffer): boolean {
  let at = 0
  while (((payload[at] ?? 0) & 0xe0) === 0x20) at++
  return payload[at] === 0x88
}
