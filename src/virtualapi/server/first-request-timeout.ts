// A timeout from the opening of a connection to its first request. Node's own timeouts begin with the first byte of a request,
// so a connection without a TLS handshake or without a request would stay open for ever.
import type { Socket } from 'node:net'

export class FirstRequestTimeout implements Disposable {
  readonly #waiting = new Map<string, { readonly socket: Socket; readonly since: number }>()
  readonly #timer: NodeJS.Timeout

  /** @param maxMs how long a connection may take until its first request; checked every quarter of this time. */
  constructor({ maxMs }: { maxMs: number }) {
    this.#timer = setInterval(() => this.#end(performance.now() - maxMs), maxMs / 4)
    this.#timer.unref()
  }

  /** The number of connections without a request. */
  get size(): number {
    return this.#waiting.size
  }

  add(socket: Socket): void {
    const key = keyOf(socket)
    this.#waiting.set(key, { socket, since: performance.now() })
    socket.once('close', () => {
      if (this.#waiting.get(key)?.socket === socket) this.#waiting.delete(key)
    })
  }

  /** A request arrived on this connection. Identified by its peer, because TLS wraps the socket that was added. */
  asked(peer: Pick<Socket, 'remoteAddress' | 'remotePort'>): void {
    if (this.#waiting.size > 0) this.#waiting.delete(keyOf(peer))
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.#waiting.clear()
  }

  #end(before: number): void {
    // In the order of arrival: after the first that is young enough, all are.
    for (const { socket, since } of this.#waiting.values()) {
      if (since > before) return
      socket.destroy()
    }
  }
}

function keyOf({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress ?? ''} ${remotePort ?? 0}`
}
