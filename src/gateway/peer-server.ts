// Takes connections of the gateways of other members. A gateway is identified by its certificate alone.
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { createServer as createTlsServer, type Server as TlsServer, type TLSSocket } from 'node:tls'
import { PendingConnections, type PendingBounds } from '#network/listening/index.ts'
import type { Identity } from './identity.ts'
import { secureLeg, type Leg } from './leg.ts'
import { keepAliveMs } from './peer-dialer.ts'
import type { Peer } from './peers.ts'
import { readLine } from './read-line.ts'
import { answerLine, gatewayProtocol, maxLineBytes, tryParseRequest, type Target } from './wire.ts'

export interface PeerServerOptions {
  readonly identity: Identity
  readonly port: number
  readonly peerOf: (fingerprint: string) => Peer | undefined
  /** Called when a peer asks for a target. */
  readonly onRequest: (leg: Leg, peer: Peer, target: Target) => void
  readonly onRefused: (reason: 'handshake' | 'unknown-peer' | 'malformed') => void
  /**
   * Limits of connections that have not sent their request yet; they apply to strangers and to networks of peers
   * separately.
   */
  readonly bounds?: PendingBounds
}

export interface PeerServer {
  readonly port: number
  /** Number of connections that have not sent their request yet. */
  readonly pending: number
  /** Presents this identity on new connections. */
  use(identity: Identity): void
  /** Stops taking new connections; open ones continue. */
  close(): void
}

/** A pending connection takes some 60 KiB from its first byte on. */
const defaultBounds: PendingBounds = { maxMs: 10_000, maxPerNetwork: 64, max: 500 }
const lineMs = 5000
/** The addresses from which the gateway itself checks whether this server takes connections. */
const ownAddresses = ['127.0.0.1', '::ffff:127.0.0.1', '::1']

/** Listens on all addresses. Rejects if the port cannot be used. */
export async function listenForPeers(options: PeerServerOptions): Promise<PeerServer> {
  const { port, bounds = defaultBounds } = options
  const pending = new PendingConnections(bounds)
  for (const address of ownAddresses) pending.trust(address)
  let { identity } = options
  const tls = secureServer(options, pending, () => identity)
  const server = createTcpServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveMs }, (raw) => {
    raw.on('error', () => undefined)
    pending.add(raw)
    // TLS takes memory and time, which a silent connection, such as the check of a load balancer, does not get.
    raw.once('data', (first: Buffer) => {
      raw.pause()
      raw.unshift(first)
      tls.emit('connection', raw)
    })
  })
  const listening = Promise.withResolvers<undefined>()
  server.once('error', listening.reject)
  server.listen(port, () => listening.resolve(undefined))
  await listening.promise
  server.off('error', listening.reject).on('error', () => undefined)
  return {
    port: (server.address() as AddressInfo).port,
    get pending() {
      return pending.size
    },
    use(next) {
      identity = next
      tls.setSecureContext(tlsOf(next))
    },
    close: () => void server.close(() => pending[Symbol.dispose]()),
  }
}

const tlsOf = ({ cert, key }: Identity) => ({ cert, key, minVersion: 'TLSv1.3' }) as const

/** The TLS server. It does not listen: the TCP server passes connections to it. */
function secureServer(options: PeerServerOptions, pending: PendingConnections, identity: () => Identity): TlsServer {
  const { bounds = defaultBounds, onRefused } = options
  const tls = createTlsServer({
    ...tlsOf(options.identity),
    requestCert: true,
    // Certificates are compared with those of the peers: no authority is trusted.
    rejectUnauthorized: false,
    ALPNProtocols: [gatewayProtocol],
    handshakeTimeout: bounds.maxMs,
  })
  tls.on('tlsClientError', (_error, secure) => {
    onRefused('handshake')
    // Node leaves the socket open after the timeout of the handshake.
    setImmediate(() => secure.destroy())
  })
  tls.on('secureConnection', (secure) => {
    secure.on('error', () => undefined)
    const raw = pending.find(secure)
    // The connection was closed meanwhile.
    if (raw === undefined) return void setImmediate(() => secure.destroy())
    // From now on, the end of one direction is passed on alone; during the handshake, it ended the connection.
    for (const socket of [raw, secure]) socket.allowHalfOpen = true
    void admit(secure, raw, { ...options, identity: identity() }, pending)
  })
  return tls
}

async function admit(
  secure: TLSSocket,
  raw: Socket,
  { identity, peerOf, onRequest, onRefused }: PeerServerOptions,
  pending: PendingConnections,
): Promise<void> {
  const leg = secureLeg(secure, raw)
  const fingerprint = secure.getPeerX509Certificate()?.fingerprint256
  const peer = fingerprint === undefined ? undefined : peerOf(fingerprint)
  if (peer === undefined || secure.alpnProtocol !== gatewayProtocol) {
    if (fingerprint !== identity.fingerprint) onRefused('unknown-peer')
    leg.reset()
    return
  }
  pending.trust(raw.remoteAddress ?? '')
  const line = await readLine(secure, { maxBytes: maxLineBytes, timeoutMs: lineMs }).catch(() => undefined)
  const target = line === undefined ? undefined : tryParseRequest(line)
  if (target === undefined) {
    onRefused('malformed')
    if (line === undefined) leg.reset()
    else refuse(leg, 'malformed')
    return
  }
  pending.settle(secure)
  onRequest(leg, peer, target)
}

/** Sends the reason, and ends the connection. */
export function refuse(leg: Leg, reason: Parameters<typeof answerLine>[0]): void {
  const { stream } = leg
  stream.end(answerLine(reason))
  stream.resume()
  // The other end may never end its side, and may continue to send.
  const timer = setTimeout(() => leg.reset(), lineMs)
  stream.once('close', () => clearTimeout(timer))
}
