// Serves /metrics of a process that has no API server, over TLS, to clients with the certificate for Prometheus.
import { createServer } from 'node:https'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { TLSSocket, type DetailedPeerCertificate } from 'node:tls'
import { systemClock } from '#async/index.ts'
import { PendingConnections } from '#network/listening/index.ts'
import type { Logger, Metrics } from '#telemetry/index.ts'
import { createCertificateVerifier, metricsReadersGroup, tryRealm, type Pki } from '#virtualapi/index.ts'
import { keepRenewed } from './keep-renewed.ts'

export interface MetricsListenerOptions {
  readonly metrics: Pick<Metrics, 'scrape'>
  /** 0 chooses a free port. */
  readonly port: number
  /** DNS names in its certificate, beside our own. */
  readonly hosts: readonly string[]
  readonly pki: Pick<Pki, 'clientCa' | 'servingCertificate'>
  readonly log: Logger
}

export interface MetricsListener extends AsyncDisposable {
  readonly port: number
}

/**
 * Limits of connections, each for one request, which takes milliseconds. At a limit, the oldest connection is reset, so
 * that others can still connect.
 */
const bounds = { maxMs: 10_000, maxPerNetwork: 8, max: 64 }
const minVersion = 'TLSv1.2'

/** Listens on all addresses. Rejects if the port cannot be used. */
export async function listenForScrapes({
  metrics,
  port,
  hosts,
  pki,
  log,
}: MetricsListenerOptions): Promise<MetricsListener> {
  let served = await pki.servingCertificate(hosts)
  const tlsOf = ({ certificate: cert, key }: typeof served) => ({ cert, key, minVersion }) as const
  // Any certificate is accepted here and checked below: a client without one gets a response that says so.
  const tls = { ...tlsOf(served), requestCert: true, rejectUnauthorized: false, handshakeTimeout: bounds.maxMs }
  const mayRead = readerCheck(pki.clientCa)
  const connections = new PendingConnections(bounds)
  const server = createServer(tls, (request, response) => {
    response.setHeader('connection', 'close')
    if (!mayRead(request)) {
      response.writeHead(403).end('needs a client certificate of Secret kcp-metrics-client\n')
      return
    }
    if (request.url !== '/metrics' || request.method !== 'GET') {
      response.writeHead(404).end()
      return
    }
    metrics.scrape().then(
      ({ contentType, body }) => response.writeHead(200, { 'content-type': contentType }).end(body),
      () => response.writeHead(500).end(),
    )
  })
  server.on('connection', (socket: Socket) => connections.add(socket))
  const listening = Promise.withResolvers<undefined>()
  server.once('error', listening.reject)
  server.listen(port, () => listening.resolve(undefined))
  await listening.promise
  server.off('error', listening.reject)
  const renewal = {
    what: 'certificate of the metrics',
    async renew() {
      const pair = await pki.servingCertificate(hosts)
      if (pair.certificate === served.certificate) return
      server.setSecureContext(tlsOf(pair))
      served = pair
    },
  }
  const renewing = keepRenewed([renewal], { log })
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      await renewing[Symbol.asyncDispose]()
      connections[Symbol.dispose]()
      const closed = Promise.withResolvers<undefined>()
      server.close(() => closed.resolve(undefined))
      server.closeAllConnections()
      await closed.promise
    },
  }
}

/**
 * Whether a request has the client certificate for Prometheus. Certificates of tenants have the same authority, but
 * another realm.
 */
function readerCheck(clientCa: string): (request: IncomingMessage) => boolean {
  const verifier = createCertificateVerifier(clientCa, { clock: systemClock })
  return ({ socket }) => {
    if (!(socket instanceof TLSSocket)) return false
    // Null once the connection is closed.
    const peer = socket.getPeerCertificate(true) as DetailedPeerCertificate | null
    const verdict = peer === null ? undefined : verifier.verify(peer)
    if (verdict?.ok !== true) return false
    const { uris, organizations } = verdict.identity
    return uris.some((uri) => tryRealm(uri) === 'installation') && organizations.includes(metricsReadersGroup)
  }
}
