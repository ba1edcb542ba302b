// Connections that have asked for nothing yet. Node's own limits begin with the first byte of a request: a connection that
// never shakes hands, or shakes hands and says nothing, would stay for ever.
import type { Socket } from 'node:net'

export class FirstRequestTimeout implements Disposable {
  readonly #waiting = new Map<string, { readonly socket: Socket; readonly since: number }>()
  readonly #timer: NodeJS.Timeout

  /** @param maxMs how long a connection may take to its first request; looked at four times as often. */
  constructor({ maxMs }: { maxMs: number }) {
    this.#timer = setInterval(() => this.#end(performance.now() - maxMs), maxMs / 4)
    this.#timer.unref()
  }

  /** Connections that have asked for nothing yet. */
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

  /** A request came over this connection; known by its peer, because TLS wraps the socket that was added. */
  asked(peer: Pick<Socket, 'remoteAddress' | 'remotePort'>): void {
    if (this.#waiting.size > 0) this.#waiting.delete(keyOf(peer))
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.#waiting.clear()
  }

  #end(before: number): void {
    // In the order of their coming: the first that is young enough ends the look.
    for (const { socket, since } of this.#waiting.values()) {
      if (since > before) return
      socket.destroy()
    }
  }
}

function keyOf({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress ?? ''} ${remotePort ?? 0}`
}
