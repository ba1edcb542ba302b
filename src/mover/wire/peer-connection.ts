// TLS between the two movers: the target connects, through an address or through a relay that control has opened.
import { once } from 'node:events'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { isIdentity, MoverError, type PartyCredentials } from '#mover/contract/index.ts'

/** The protocol of frames; HTTP of control has `http/1.1`. */
export const peerProtocol = 'kcp-mover'
const connectMs = 15_000
/** At an address, nothing but the network is in between: a relay, which takes longer, is the other way. */
const directMs = 5000

export interface PeerOptions {
  readonly credentials: PartyCredentials
  readonly move: string
  /** The connection leads to an address, and not through a relay. */
  readonly isDirect: boolean
  readonly signal: AbortSignal
}

/** `IP:PORT`, with brackets around an IPv6 address. Anything else than an IP would be looked up as a name. */
export function parseAddress(text: string): { readonly host: string; readonly port: number } | undefined {
  const found = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):(\d{1,5})$/.exec(text)
  const host = found?.[1] ?? found?.[2]
  const port = Number(found?.[3])
  return host === undefined || isIP(host) === 0 || !(port >= 1 && port <= 65_535) ? undefined : { host, port }
}

/** Opens a TCP connection to the source. Rejects with Unreached. */
export async function dialSource(address: string, signal: AbortSignal): Promise<Socket> {
  const parsed = parseAddress(address)
  if (parsed === undefined) throw new MoverError('ProtocolViolated', `"${address}" is not IP:PORT`)
  const socket = connectTcp({ ...parsed, noDelay: true, keepAlive: true })
  const timeout = AbortSignal.any([signal, AbortSignal.timeout(directMs)])
  try {
    await once(socket, 'connect', { signal: timeout })
    return socket
  } catch (cause) {
    socket.on('error', () => undefined).destroy()
    signal.throwIfAborted()
    throw new MoverError('Unreached', `the source is not reached at ${address}: ${String(cause)}`, { cause })
  }
}

/**
 * The target's TLS session with the source over a connection. Rejects with PeerRefused or PeerLost; at an address, with
 * Unreached: whatever is there, the source is not.
 */
export async function secureWithSource(
  socket: Duplex,
  { credentials, move, isDirect, signal }: PeerOptions,
): Promise<TLSSocket> {
  const tls = connectTls({
    socket,
    ca: credentials['ca.crt'],
    cert: credentials['tls.crt'],
    key: credentials['tls.key'],
    minVersion: 'TLSv1.3',
    ALPNProtocols: [peerProtocol],
    checkServerIdentity: (_host, { subjectaltname }) =>
      isIdentity(subjectaltname, move, 'source')
        ? undefined
        : new MoverError('PeerRefused', `the other end is not the source of "${move}": ${String(subjectaltname)}`),
  })
  socket.on('error', (error: Error) => tls.destroy(error))
  const timeout = AbortSignal.any([signal, AbortSignal.timeout(isDirect ? directMs : connectMs)])
  try {
    await once(tls, 'secureConnect', { signal: timeout })
    if (tls.alpnProtocol !== peerProtocol) throw new MoverError('PeerRefused', 'the other end is no mover')
    tls.on('error', () => undefined)
    tls.once('close', () => socket.destroy())
    return tls
  } catch (cause) {
    tls.on('error', () => undefined).destroy()
    socket.destroy()
    signal.throwIfAborted()
    const message = cause instanceof MoverError ? cause.message : `no TLS connection with the source: ${String(cause)}`
    if (isDirect) throw new MoverError('Unreached', message, { cause })
    if (cause instanceof MoverError) throw cause
    throw new MoverError(isCertificateError(cause) ? 'PeerRefused' : 'PeerLost', message, { cause })
  }
}

/** True for errors of TLS itself, as opposed to those of the connection below. */
export function isCertificateError(error: unknown): boolean {
  const { code = '' } = (error ?? {}) as { code?: string }
  return /^(ERR_SSL|ERR_TLS|CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO|INVALID_PURPOSE)/.test(code)
}
