// What the kubelet and Prometheus ask for, over plain HTTP.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Metrics } from '../telemetry/index.ts'

export interface HealthServerOptions {
  readonly port: number
  /** Why it is not ready; undefined: it is. */
  readonly notReady: () => string | undefined
  readonly metrics: Pick<Metrics, 'scrape'>
  readonly beforeScrape: () => void
}

export interface HealthServer extends AsyncDisposable {
  readonly port: number
}

/** Connections at once; an answer takes milliseconds. */
const maxConnections = 32
const requestTimeoutMs = 10_000

/** Listens on all addresses. Rejects if the port cannot be used. */
export async function listenForHealth({
  port,
  notReady,
  metrics,
  beforeScrape,
}: HealthServerOptions): Promise<HealthServer> {
  const server = createServer({ requestTimeout: requestTimeoutMs }, (request, response) => {
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
  server.maxConnections = maxConnections
  const listening = Promise.withResolvers<undefined>()
  server.once('error', listening.reject)
  server.listen(port, () => listening.resolve(undefined))
  await listening.promise
  server.off('error', listening.reject)
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      const closed = Promise.withResolvers<undefined>()
      server.close(() => closed.resolve(undefined))
      server.closeAllConnections()
      await closed.promise
    },
  }
}
