// Turns of connections: requests that arrive together on one connection begin in turns with the requests of other
// connections, before their clients are known. A connection whose client goes on after many refusals takes no more
// requests.
import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { EventLoopShare } from '#virtualapi/flowcontrol/event-loop-share.ts'

/**
 * How many refusals of requests, within how many milliseconds, make the server close a connection to new requests. A
 * client that waits as long as it is asked to stays below this number.
 */
const [maxRefusals, refusalsMs] = [500, 10_000]
/**
 * Maximum of concurrent streams of a connection, before its client is known and after; the latter is the maximum of a
 * kube-apiserver (Go's default).
 */
export const maxStreams = { unknown: 100, known: 250 }
const tooManyRequestsCode = 429

interface Connection {
  readonly flow: string
  isKnown: boolean
  refusals: number
  refusedSince: number
}

type AnyConnection = object | ServerHttp2Session | Socket

export class ConnectionTurns {
  readonly #share = new EventLoopShare()
  readonly #connections = new WeakMap<object, Connection>()
  #next = 0

  /** Resolves when a request of the connection may begin; undefined: at once. */
  turn(connection: AnyConnection): Promise<void> | undefined {
    return this.#share.turn(this.#of(connection).flow)
  }

  /** Called when the client of the connection is known: it may have more requests at the same time. */
  known(connection: AnyConnection): void {
    const of = this.#of(connection)
    if (of.isKnown) return
    of.isKnown = true
    if (isSession(connection) && !connection.closed) connection.settings({ maxConcurrentStreams: maxStreams.known })
  }

  /**
   * Called with the status of each response. After too many refusals the connection takes no new requests; its requests
   * and watches under way go on.
   */
  answered(connection: AnyConnection, status: number): void {
    if (status !== tooManyRequestsCode) return
    const of = this.#of(connection)
    const now = performance.now()
    if (now - of.refusedSince > refusalsMs) {
      of.refusedSince = now
      of.refusals = 0
    }
    if (++of.refusals === maxRefusals && isSession(connection) && !connection.closed) connection.close()
  }

  #of(connection: AnyConnection): Connection {
    let of = this.#connections.get(connection)
    if (of === undefined) {
      of = { flow: String(this.#next++), isKnown: false, refusals: 0, refusedSince: -Infinity }
      this.#connections.set(connection, of)
    }
    return of
  }
}

/** True for a connection of HTTP/2. */
function isSession(connection: AnyConnection): connection is ServerHttp2Session {
  return 'settings' in connection && 'goaway' in connection
}
