// Takes connections of the gateways of other members. One is known by its certificate, and by nothing else.
import type { AddressInfo, Socket } from 'node:net'
import { createServer, type Server, type TLSSocket } from 'node:tls'
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
  /** A peer asks for a target. */
  readonly onRequest: (leg: Leg, peer: Peer, target: Target) => void
  readonly onRefused: (reason: 'handshakes' | 'handshake' | 'unknown-peer' | 'malformed') => void
}

export interface PeerServer {
  readonly port: number
  /** For new connections. */
  use(identity: Identity): void
  /** Takes no new connections; open ones go on. */
  close(): void
}

/** Connections that have not yet said what they want: strangers can open no more. */
const maxUnknown = 500
const handshakeMs = 10_000
const lineMs = 5000

/** Listens on all addresses. Rejects if the port cannot be used. */
export async function listenForPeers(options: PeerServerOptions): Promise<PeerServer> {
  const { identity, port, onRefused } = options
  const tlsOf = ({ cert, key }: Identity) => ({ cert, key, minVersion: 'TLSv1.3' }) as const
  const server: Server = createServer({
    ...tlsOf(identity),
    requestCert: true,
    // Certificates are compared with those of the peers: no authority is trusted.
    rejectUnauthorized: false,
    ALPNProtocols: [gatewayProtocol],
    handshakeTimeout: handshakeMs,
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveMs,
  })
  /** By the address of the other end: TLS does not tell which TCP connection carries it. */
  const unknown = new Map<string, Socket>()
  server.on('connection', (raw: Socket) => {
    const from = addressOf(raw)
    raw.on('error', () => undefined)
    if (unknown.size >= maxUnknown) {
      onRefused('handshakes')
      raw.resetAndDestroy()
      return
    }
    unknown.set(from, raw)
    raw.once('close', () => {
      if (unknown.get(from) === raw) unknown.delete(from)
    })
  })
  server.on('tlsClientError', () => onRefused('handshake'))
  server.on('secureConnection', (secure) => {
    secure.on('error', () => undefined)
    const from = addressOf(secure)
    const raw = unknown.get(from)
    // Closed meanwhile.
    if (raw === undefined) return void setImmediate(() => secure.destroy())
    void admit(secure, raw, options).finally(() => void unknown.delete(from))
  })
  const listening = Promise.withResolvers<undefined>()
  server.once('error', listening.reject)
  server.listen(port, () => listening.resolve(undefined))
  await listening.promise
  server.off('error', listening.reject).on('error', () => undefined)
  return {
    port: (server.address() as AddressInfo).port,
    use: (next) => server.setSecureContext(tlsOf(next)),
    close: () => void server.close(),
  }
}

async function admit(
  secure: TLSSocket,
  raw: Socket,
  { peerOf, onRequest, onRefused }: PeerServerOptions,
): Promise<void> {
  const leg = secureLeg(secure, raw)
  const fingerprint = secure.getPeerX509Certificate()?.fingerprint256
  const peer = fingerprint === undefined ? undefined : peerOf(fingerprint)
  if (peer === undefined || secure.alpnProtocol !== gatewayProtocol) {
    onRefused('unknown-peer')
    leg.reset()
    return
  }
  const line = await readLine(secure, { maxBytes: maxLineBytes, timeoutMs: lineMs }).catch(() => undefined)
  const target = line === undefined ? undefined : tryParseRequest(line)
  if (target === undefined) {
    onRefused('malformed')
    if (line === undefined) leg.reset()
    else refuse(leg, 'malformed')
    return
  }
  onRequest(leg, peer, target)
}

/** Says why, and ends the connection. */
export function refuse({ stream }: Leg, reason: Parameters<typeof answerLine>[0]): void {
  stream.end(answerLine(reason))
  stream.resume()
  // It may never end its side.
  stream.setTimeout(lineMs, () => stream.destroy())
}

function addressOf({ remoteAddress = '', remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
