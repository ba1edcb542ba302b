// Answers a watch over a WebSocket: each line becomes a message.
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { childSignal } from '../../async/index.ts'
import type { Exchange, PushAnswer } from '../exchange/exchange.ts'
import type { ServerParts } from './parts.ts'
import { end } from './pipe-sockets.ts'
import { pushedChunks } from './push-chunks.ts'
import { ClientFrames, closeFrame, textFrame } from './web-socket.ts'

interface Connection {
  readonly socket: Duplex
  /** What the client sent after its handshake. */
  readonly head: Uint8Array
  /** Header lines that accept the WebSocket. */
  readonly accepted: readonly string[]
}

interface Around {
  readonly exchange: Exchange
  /** Aborted when the client disconnects. */
  readonly gone: AbortController
  readonly log: ServerParts['log']
}

/** How long a client may keep its connection after the end, milliseconds. */
const lingerMs = 2000

/** Resolves when the watch has ended or the client has disconnected; ends the socket. Never rejects. */
export async function watchOverWebSocket(
  { socket, head, accepted }: Connection,
  answer: PushAnswer,
  { exchange, gone, log }: Around,
): Promise<void> {
  exchange.audit?.started({ status: 101 })
  socket.write(`${['HTTP/1.1 101 Switching Protocols', ...accepted].join('\r\n')}\r\n\r\n`)
  const frames = new ClientFrames()
  const onData = (bytes: Uint8Array): void => {
    try {
      for (const { frame, last } of frames.read(bytes)) {
        // Drop pongs to a client that does not read, or they would fill our memory.
        if (last || !socket.writableNeedDrain) socket.write(frame)
        if (last) gone.abort(new Error('the client closed the WebSocket'))
      }
    } catch (error) {
      gone.abort(error)
    }
  }
  const onEnd = (): void => gone.abort(new Error('the client went away'))
  onData(head)
  socket.on('data', onData)
  socket.once('end', onEnd)
  try {
    await writeMessages(socket, answer, exchange.signal)
    if (!exchange.signal.aborted) socket.write(closeFrame())
  } catch (error) {
    // The answer has begun, so it can only be cut off.
    if (!exchange.signal.aborted) log.warn('a stream ended early', { url: exchange.request.url, error })
  } finally {
    socket.off('data', onData)
    socket.off('end', onEnd)
    socket.once('finish', () => setTimeout(() => socket.destroy(), lingerMs).unref())
    end(socket)
  }
}

async function writeMessages(socket: Duplex, answer: PushAnswer, signal: AbortSignal): Promise<void> {
  for await (const chunk of pushedChunks(answer, signal)) {
    if (signal.aborted) return
    const frames: Uint8Array[] = []
    for (let start = 0; start < chunk.length;) {
      const next = chunk.indexOf(0x0a, start) + 1 || chunk.length
      frames.push(textFrame(chunk.subarray(start, next)))
      start = next
    }
    if (frames.length > 0 && !socket.write(Buffer.concat(frames))) await drained(socket, answer.maxStallMs, signal)
  }
}

async function drained(socket: Duplex, maxStallMs: number, signal: AbortSignal): Promise<void> {
  using limited = childSignal(signal)
  const timer = setTimeout(
    () => limited.abort(new Error(`the client took nothing for ${maxStallMs / 1000} s`)),
    maxStallMs,
  )
  try {
    await once(socket, 'drain', { signal: limited.signal })
  } finally {
    clearTimeout(timer)
  }
}
