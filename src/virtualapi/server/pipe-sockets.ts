// Two sockets joined: what comes out of one goes into the other, until either is gone.
import type { Duplex } from 'node:stream'

export interface PipeOptions {
  readonly signal: AbortSignal
  /** How long a side may take to go after everything for it was sent, milliseconds. Default 2000. */
  readonly lingerMs?: number
}

/**
 * Resolves when both are closed. An end is passed on after the bytes before it; then the other side has `lingerMs` to go,
 * since the protocols in question (SPDY, WebSocket) close halves within themselves and have no use for half a connection.
 * A side that breaks ends like one that closes: what it had sent before is still delivered. The signal ends both at once.
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
    outliveFailedWrites(from)
    // Its 'close' follows.
    from.on('error', () => undefined)
    // What was written reaches the other side whole; a side that never takes it is the signal's to end.
    from.once('close', () => end(to))
    from.once('finish', () => timers.push(setTimeout(() => from.destroy(), lingerMs)))
    if (from.destroyed) end(to)
    else from.pipe(to)
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

/** Ends a socket that nobody reads any more: unread bytes would keep it open for ever. */
export function end(socket: Duplex): void {
  socket.end()
  socket.resume()
}

/**
 * Node destroys a socket at the first write that fails, unread bytes and all. But a server that closes while something for
 * it is under way answers with a reset, behind its last words (the exit code of a command): whoever is gone is told by
 * reading, which comes to those words first.
 */
function outliveFailedWrites(socket: Duplex): void {
  const write = socket._write.bind(socket)
  socket._write = (chunk, encoding, done) => write(chunk, encoding, () => done())
  const writeMany = socket._writev?.bind(socket)
  if (writeMany !== undefined) socket._writev = (chunks, done) => writeMany(chunks, () => done())
}
