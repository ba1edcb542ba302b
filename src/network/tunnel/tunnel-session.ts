// What both ends of a tunnel share: HTTP/2 over a WebSocket, in which each stream is one connection.
import type { Http2Session } from 'node:http2'
import type { Duplex, DuplexOptions } from 'node:stream'
import { createWebSocketStream, type WebSocket } from 'ws'

/**
 * The sessions of a tunnel. Bulk carries logs, exec, port-forwards and proxied requests, so that these never delay the
 * requests and watches of the control session.
 */
export const sessionKinds = ['control', 'bulk'] as const
export type SessionKind = (typeof sessionKinds)[number]

/** Bytes that one connection may have under way; a reader that stalls only stalls itself. */
const streamWindowBytes = 1024 * 1024
/** Bytes that all connections of a session may have under way. */
const sessionWindowBytes = 16 * 1024 * 1024

/** Options for both ends. Node's default of 10 MiB of memory would refuse streams once some hundred watches wait. */
export const sessionSettings = {
  maxSessionMemory: 128,
  settings: { enablePush: false, initialWindowSize: streamWindowBytes, maxConcurrentStreams: 20_000 },
  peerMaxConcurrentStreams: 20_000,
} as const

interface KeepAliveOptions {
  /** Milliseconds between two pings. Default 15,000, less than the idle limit of usual proxies. */
  readonly everyMs?: number
  /** Milliseconds in which the other end must answer. Default 15,000. */
  readonly withinMs?: number
  /** Called with each answer. */
  readonly answered?: () => void
}

/** Widens the window of the session, and destroys the session when the other end does not answer a ping in time. */
export function keepAlive(
  session: Http2Session,
  { everyMs = 15_000, withinMs = 15_000, answered }: KeepAliveOptions = {},
): void {
  session.setLocalWindowSize(sessionWindowBytes)
  let deadline: NodeJS.Timeout | undefined
  const ping = (): void => {
    if (session.destroyed || deadline !== undefined) return
    deadline = setTimeout(() => session.destroy(new Error('the other end of the tunnel does not answer')), withinMs)
    const settled = (): void => {
      clearTimeout(deadline)
      deadline = undefined
    }
    const isSent = session.ping((error) => {
      settled()
      if (error === null) answered?.()
    })
    if (!isSent) settled()
  }
  const timer = setInterval(ping, everyMs)
  session.once('close', () => {
    clearInterval(timer)
    clearTimeout(deadline)
  })
}

/** Ends the session with its WebSocket: HTTP/2 over a stream does not notice that the stream is cut. */
export function endTogether(session: Http2Session, webSocket: WebSocket): void {
  webSocket.once('close', () => session.destroy())
  session.once('close', () => webSocket.terminate())
}

/** Bytes of writes that go into one message: less than the limits of both ends. */
const maxJoinedBytes = 1024 * 1024

/**
 * The bytes of a WebSocket. What HTTP/2 writes at once (the head of a frame, its data, the next frame) is one message:
 * otherwise each part would be encrypted, sent and read by itself.
 */
export function duplexOf(webSocket: WebSocket): Duplex {
  const writev: NonNullable<DuplexOptions['writev']> = (chunks, done) => {
    const messages = joined(chunks.map(({ chunk }) => chunk as Uint8Array))
    for (const message of messages.slice(0, -1)) webSocket.send(message)
    webSocket.send(messages.at(-1) ?? new Uint8Array(), done)
  }
  return createWebSocketStream(webSocket, { allowHalfOpen: false, writev })
}

function joined(chunks: readonly Uint8Array[]): Uint8Array[] {
  const messages: Uint8Array[] = []
  let [parts, size]: [Uint8Array[], number] = [[], 0]
  for (const chunk of chunks) {
    if (parts.length > 0 && size + chunk.length > maxJoinedBytes) {
      messages.push(Buffer.concat(parts))
      ;[parts, size] = [[], 0]
    }
    parts.push(chunk)
    size += chunk.length
  }
  return [...messages, Buffer.concat(parts)]
}

/** The stream with the methods of sockets that node:http calls, which mean nothing within a tunnel. */
export function asSocket<S extends Duplex>(stream: S): S {
  const nothing = (): S => stream
  // 'close' follows. Without a listener, an error between two requests would end the process.
  stream.on('error', () => undefined)
  Object.assign(stream, { setKeepAlive: nothing, setNoDelay: nothing, ref: nothing, unref: nothing })
  keepWrittenMemory(stream)
  return stream
}

/**
 * Leaves empty chunks out of what is written at once. node:http ends a message with one, and when it is the last chunk,
 * Node's HTTP/2 (24.21) takes the write for finished before it sends the others: it frees the memory of strings, and
 * what this memory has become goes to the other end.
 */
function keepWrittenMemory(stream: Duplex): void {
  const writeMany = stream._writev?.bind(stream)
  if (writeMany === undefined) return
  stream._writev = (chunks, done) => {
    const full = chunks.filter(({ chunk }) => (chunk as string | Uint8Array).length > 0)
    if (full.length > 0) writeMany(full, done)
    else done()
  }
}
