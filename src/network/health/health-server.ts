// The listener for the kubelet and Prometheus, over plain HTTP.
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { PendingConnections } from '#network/listening/index.ts'
import type { Metrics } from '#telemetry/index.ts'

export interface HealthServerOptions {
  readonly port: number
  /** Why the program is not ready; undefined if it is ready. */
  readonly notReady: () => string | undefined
  readonly metrics: Pick<Metrics, 'scrape'>
  readonly beforeScrape: () => void
}

export interface HealthServer extends AsyncDisposable {
  readonly port: number
}

/**
 * Limits of connections, each for one request, which takes milliseconds. At a limit, the oldest connection is reset, so
 * that the kubelet can still connect.
 */
const bounds = { maxMs: 10_000, maxPerNetwork: 8, max: 64 }

/** Listens on all addresses. Rejects if the port cannot be used. */
export async function listenForHealth({
  port,
  notReady,
  metrics,
  beforeScrape,
}: HealthServerOptions): Promise<HealthServer> {
  const connections = new PendingConnections(bounds)
  const server = createServer((request, response) => {
    response.setHeader('connection', 'close')
    if (request.url === '/livez') response.end('ok\n')
    else if (request.url === '/readyz') {
      const why = notReady()
      response.writeHead(why === undefined ? 200 : 503).end(`${why ?? 'ok'}\n`)
    } else if (request.url === '/metrics') {
      beforeScrape()
      metrics.scrape().then(
        ({ contentType, body }) => response.writeHead(200, { 'content-type': contentType }).end(body),
        () => response.writeHead(500).end(),
      )
    } else response.writeHead(404).end()
  })
  server.on('connection', (socket: Socket) => connections.add(socket))
  const listening = Promise.withResolvers<undefined>()
  server.once('error', listening.reject)
  server.listen(port, () => listening.resolve(undefined))
  await listening.promise
  server.off('error', listening.reject)
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      const closed = Promise.withResolvers<undefined>()
      connections[Symbol.dispose]()
      server.close(() => closed.resolve(undefined))
      server.closeAllConnections()
      await closed.promise
    },
  }
}
