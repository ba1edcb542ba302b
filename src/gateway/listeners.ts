// The ports at which pods of this member reach Services of other members.
import { createServer, type Server, type Socket } from 'node:net'
import type { Logger } from '#telemetry/index.ts'
import { keepAliveMs } from './peer-dialer.ts'
import type { RemoteSlice } from './slice-record.ts'
import type { Target } from './wire.ts'

/** The destination of a listener's connections. */
export interface Route {
  readonly member: string
  readonly clusterId: string
  readonly target: Target
}

interface ListeningPort {
  /**
   * Routes by the key of the slice. The first one counts: two slices with the same port are a mistake of their writer.
   */
  readonly routes: Map<string, Route>
  server: Server
  isListening: boolean
  retry?: NodeJS.Timeout
}

export interface ListenersOptions {
  readonly onConnection: (client: Socket, route: Route) => void
  readonly log: Logger
  /** Milliseconds until a port that is taken is tried again. Default 5000. */
  readonly retryMs?: number
}

export class Listeners {
  readonly #options: ListenersOptions
  readonly #ports = new Map<number, ListeningPort>()
  #isClosed = false

  constructor(options: ListenersOptions) {
    this.#options = options
  }

  /** Replaces the routes of one slice. */
  set(key: string, before: RemoteSlice | undefined, after: RemoteSlice | undefined): void {
    const kept = new Set(after?.ports.map(({ port }) => port))
    for (const { port } of before?.ports ?? []) if (!kept.has(port)) this.#remove(port, key)
    if (after === undefined || this.#isClosed) return
    const { member, clusterId, targetNamespace, service } = after
    for (const { name, port } of after.ports)
      this.#add(port, key, { member, clusterId, target: { namespace: targetNamespace, service, port: name } })
  }

  /** Whether the gateway listens on every wanted port. */
  get isComplete(): boolean {
    return [...this.#ports.values()].every(({ isListening }) => isListening)
  }

  get size(): number {
    return this.#ports.size
  }

  /** Stops taking new connections; open ones continue. */
  close(): void {
    this.#isClosed = true
    for (const port of [...this.#ports.keys()]) this.#end(port)
  }

  #add(port: number, key: string, route: Route): void {
    const known = this.#ports.get(port)
    if (known === undefined) {
      this.#listen(port, new Map([[key, route]]))
      return
    }
    if (!known.routes.has(key))
      this.#options.log.error('two EndpointSlices want one port of the gateway', {
        port,
        slices: [...known.routes.keys(), key],
      })
    known.routes.set(key, route)
  }

  #remove(port: number, key: string): void {
    const known = this.#ports.get(port)
    known?.routes.delete(key)
    if (known?.routes.size === 0) this.#end(port)
  }

  #end(port: number): void {
    const known = this.#ports.get(port)
    if (known === undefined) return
    clearTimeout(known.retry)
    this.#ports.delete(port)
    known.server.close()
  }

  #listen(port: number, routes: Map<string, Route>): void {
    const { onConnection, log, retryMs = 5000 } = this.#options
    // A new connection is paused: no bytes of a client are read before they can be passed on.
    const server = createServer(
      {
        pauseOnConnect: true,
        allowHalfOpen: true,
        noDelay: true,
        keepAlive: true,
        keepAliveInitialDelay: keepAliveMs,
      },
      (client) => {
        const [route] = routes.values()
        client.on('error', () => undefined)
        if (route === undefined) client.resetAndDestroy()
        else onConnection(client, route)
      },
    )
    const listening: ListeningPort = { routes, server, isListening: false }
    this.#ports.set(port, listening)
    server.on('listening', () => (listening.isListening = true))
    server.on('error', (error) => {
      if (this.#ports.get(port) !== listening) return
      log.error('a port of the gateway cannot be listened on', { port, error })
      // Errors of single connections are reported here, too.
      if (server.listening) return
      listening.retry = setTimeout(() => server.listen(port), retryMs)
    })
    server.listen(port)
  }
}
