// A timeout from the opening of a connection to its first request. Node's own timeouts begin with the first byte of a request,
// so a connection without a TLS handshake or without a request would stay open for ever.
import type { Socket } from 'node:net'
import { networkOf } from '../flowcontrol/network-of.ts'

interface Waiting {
  readonly socket: Socket
  readonly network: string
  readonly since: number
}

/** Connections of one network that may be without a request: each costs a TLS handshake of about a millisecond. */
const defaultMaxPerPeer = 500

export class FirstRequestTimeout implements Disposable {
  readonly #waiting = new Map<string, Waiting>()
  /** How many of them there are, by network. */
  readonly #counts = new Map<string, number>()
  readonly #maxPerPeer: number
  readonly #timer: NodeJS.Timeout

  /**
   * @param maxMs how long a connection may take until its first request; checked every quarter of this time.
   * @param maxPerPeer connections of one network without a request; more are closed. Default 500.
   */
  constructor({ maxMs, maxPerPeer = defaultMaxPerPeer }: { maxMs: number; maxPerPeer?: number }) {
    this.#maxPerPeer = maxPerPeer
    this.#timer = setInterval(() => this.#end(performance.now() - maxMs), maxMs / 4)
    this.#timer.unref()
  }

  /** The number of connections without a request. */
  get size(): number {
    return this.#waiting.size
  }

  /** Adds a new connection, or closes it if its network has too many without a request. */
  add(socket: Socket): void {
    const network = networkOf(socket.remoteAddress ?? '')
    const count = this.#counts.get(network) ?? 0
    if (count >= this.#maxPerPeer) {
      socket.destroy()
      return
    }
    const key = keyOf(socket)
    this.#counts.set(network, count + 1)
    this.#waiting.set(key, { socket, network, since: performance.now() })
    socket.once('close', () => {
      if (this.#waiting.get(key)?.socket === socket) this.#remove(key)
    })
  }

  /** A request arrived on this connection. Identified by its peer, because TLS wraps the socket that was added. */
  asked(peer: Pick<Socket, 'remoteAddress' | 'remotePort'>): void {
    if (this.#waiting.size > 0) this.#remove(keyOf(peer))
  }

  #remove(key: string): void {
    const waiting = this.#waiting.get(key)
    if (waiting === undefined) return
    this.#waiting.delete(key)
    const left = (this.#counts.get(waiting.network) ?? 1) - 1
    if (left === 0) this.#counts.delete(waiting.network)
    else this.#counts.set(waiting.network, left)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.#waiting.clear()
    this.#counts.clear()
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
