// Answers a watch over a WebSocket: each line becomes a message.
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { childSignal } from '#async/index.ts'
import type { Exchange, PushResponse } from '#virtualapi/request/exchange.ts'
import type { ServerDependencies } from './dependencies.ts'
import { pushedChunks } from './wire/push-chunks.ts'
import { acceptWebSocket } from './wire/web-socket.ts'

interface Connection {
  readonly request: IncomingMessage
  readonly socket: Duplex
  /** The bytes that the client sent after its handshake. */
  readonly head: Buffer
}

interface WatchContext {
  readonly exchange: Exchange
  /** Aborted when the client disconnects. */
  readonly gone: AbortController
  readonly log: ServerDependencies['log']
}

/** Close codes of RFC 6455, section 7.4.1. */
const closeCodes = { normal: 1000, goingAway: 1001, internalError: 1011 } as const

/** Resolves when the watch has ended or the client has disconnected; closes the WebSocket. Never rejects. */
export async function watchOverWebSocket(
  { request, socket, head }: Connection,
  response: PushResponse,
  { exchange, gone, log }: WatchContext,
): Promise<void> {
  exchange.audit?.started({ status: 101 })
  exchange.trace?.answered(101)
  const webSocket = acceptWebSocket(request, socket, head)
  if (webSocket === undefined) {
    response.drop()
    return
  }
  webSocket.on('close', () => gone.abort(new Error('the client closed the WebSocket')))
  // Invalid frames; 'close' follows.
  webSocket.on('error', (error) => gone.abort(error))
  try {
    await writeMessages({ webSocket, socket }, response, exchange.signal)
    webSocket.close(exchange.signal.aborted ? closeCodes.goingAway : closeCodes.normal)
  } catch (error) {
    if (!exchange.signal.aborted) log.warn('a stream ended early', { url: exchange.request.url, error })
    webSocket.close(closeCodes.internalError)
  }
}

async function writeMessages(
  { webSocket, socket }: { readonly webSocket: WebSocket; readonly socket: Duplex },
  response: PushResponse,
  signal: AbortSignal,
): Promise<void> {
  for await (const chunk of pushedChunks(response, signal)) {
    if (signal.aborted) return
    // One write for all messages of a chunk.
    socket.cork()
    for (let start = 0; start < chunk.length;) {
      const next = chunk.indexOf(0x0a, start) + 1 || chunk.length
      webSocket.send(chunk.subarray(start, next), { binary: false }, ignoreError)
      start = next
    }
    socket.uncork()
    if (socket.writableNeedDrain) await drained(socket, response.maxStallMs, signal)
  }
}

/** A failed write closes the WebSocket, which ends the watch. */
const ignoreError = (): void => undefined

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
