// Connections whose requests all belong to other workers of this server. A hop costs about as much as a request, so such
// a connection is asked to end: the client connects again, and the kernel may lead it to the worker that answers.
import type { ServerHttp2Session } from 'node:http2'
import type { RawRequest } from '../wire/raw-request.ts'
import type { RawResponse } from '../wire/raw-response.ts'

/**
 * Hops without a request for this worker between them after which a connection is misplaced. A new connection costs
 * about as much as ten requests.
 */
const mostHops = 32

type Connected = Pick<RawRequest, 'connection'>

export class MisplacedConnections {
  readonly #hops = new WeakMap<object, number>()

  /**
   * Counts a request that another worker of this server answers; call it before the response begins. A misplaced
   * connection takes no more requests (GOAWAY, `Connection: close`); the requests that it has are answered.
   */
  hopped({ connection }: Connected, response: RawResponse): void {
    const hops = (this.#hops.get(connection) ?? 0) + 1
    this.#hops.set(connection, hops)
    if (hops < mostHops) return
    if ('respond' in response) (connection as ServerHttp2Session).close()
    else if (!response.headersSent) response.shouldKeepAlive = false
  }

  /** Counts a request that this worker answers itself. */
  answered({ connection }: Connected): void {
    this.#hops.delete(connection)
  }
}
