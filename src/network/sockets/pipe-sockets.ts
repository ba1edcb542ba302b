// Joins two sockets: bytes that are read from one are written to the other, until either closes.
import type { Duplex } from 'node:stream'

export interface PipeOptions {
  readonly signal: AbortSignal
  /** How long a side may take to close after everything was sent to it, milliseconds. Default 2000. */
  readonly lingerMs?: number
}

/**
 * Resolves when both sockets are closed. An end is forwarded after the bytes before it; then the other side has
 * `lingerMs` to close, since SPDY and WebSocket never use a half-closed connection. Bytes that a side sent before it
 * failed are still delivered. The signal destroys both sockets at once.
 */
export async function pipeSockets(a: Duplex, b: Duplex, { signal, lingerMs = 2000 }: PipeOptions): Promise<void> {
  const timers: NodeJS.Timeout[] = []
  const destroy = (): void => {
    a.destroy()
    b.destroy()
  }
  const closed = [a, b].map(
    (socket) => new Promise<void>((resolve) => (socket.closed ? resolve() : socket.once('close', () => resolve()))),
  )
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    ignoreWriteErrors(from)
    // 'close' follows.
    from.on('error', () => undefined)
    // All that was written is still delivered. A side that never reads it is destroyed by the signal.
    from.once('close', () => end(to))
    from.once('finish', () => timers.push(setTimeout(() => from.destroy(), lingerMs)))
    if (from.destroyed) end(to)
    else copy(from, to)
  }
  signal.addEventListener('abort', destroy, { once: true })
  if (signal.aborted) destroy()
  try {
    await Promise.all(closed)
  } finally {
    signal.removeEventListener('abort', destroy)
    for (const timer of timers) clearTimeout(timer)
  }
}

/**
 * Like `pipe`, but frees each chunk once it was sent. If chunks were left to the garbage collector, every few dozen MiB
 * of them would trigger a collection of the whole heap: with a large heap that took most of the time of a stream.
 */
function copy(from: Duplex, to: Duplex): void {
  from.on('data', (chunk: Buffer) => {
    if (to.writable && !to.write(chunk, () => free(chunk))) from.pause()
  })
  from.once('end', () => to.end())
  to.on('drain', () => from.resume())
  if (to.writableNeedDrain) from.pause()
  else from.resume()
}

/** Frees the memory of a chunk that is not a part of something larger. */
function free({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}

/**
 * Ends a socket whose data is not read any more, and discards what it receives: unread bytes would keep it open for
 * ever.
 */
export function end(socket: Duplex): void {
  socket.end()
  socket.resume()
}

/**
 * Ignores write errors, at which Node destroys a socket with its unread bytes. A server that closes while data is sent
 * to it answers with a reset after its last bytes (the exit code of a command); reading delivers those bytes and then
 * the reset.
 */
function ignoreWriteErrors(socket: Duplex): void {
  const write = socket._write.bind(socket)
  socket._write = (chunk, encoding, done) => write(chunk, encoding, () => done())
  const writeMany = socket._writev?.bind(socket)
  if (writeMany !== undefined) socket._writev = (chunks, done) => writeMany(chunks, () => done())
}
