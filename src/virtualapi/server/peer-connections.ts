// Connections to other processes of ours, for the requests that they answer: one HTTP/2 session to each, and a
// connection for each upgrade. Both sides show certificates of an authority that signs for nobody else.
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { abortable } from '#async/index.ts'
import type { Peer } from '#virtualapi/request/ownership.ts'

/** PEM. */
export interface PeerCredentials {
  /** The authorities of other processes' certificates. */
  readonly ca: string
  readonly certificate: string
  readonly key: string
}

/** The DNS name in the certificate of a process: a connection never reaches another one that has got its address. */
export function peerServerName(name: string): string {
  return `${name}.peers.kcp.dev`
}

const connectTimeoutMs = 5000
/** How long a process that is gone may take for its last answers, milliseconds. */
const lastResponsesMs = 2000
/** Maximum of received and unread bytes of one answer: a client that reads slowly costs no more. */
const windowBytes = 256 * 1024
/** As much as clients may send; nghttp2's default is 64 KiB. */
const headerBytes = 256 * 1024
/** MiB of one session: Node's default refuses streams where some thousand watches wait. */
const sessionMemory = 1024

export class PeerConnections implements Disposable {
  readonly #credentials: () => PeerCredentials
  readonly #sessions = new Map<string, { readonly session: ClientHttp2Session; readonly address: string }>()

  constructor(credentials: () => PeerCredentials) {
    this.#credentials = credentials
  }

  /** The session to a process; connects if there is none. Requests on it may be made at once. */
  session(peer: Peer): ClientHttp2Session {
    const known = this.#sessions.get(peer.name)
    if (known?.address === peer.address && !known.session.closed && !known.session.destroyed) return known.session
    const session = connectHttp2(`https://${peer.address}`, {
      ...this.#tls(peer),
      settings: { initialWindowSize: windowBytes, enablePush: false },
      maxSessionMemory: sessionMemory,
      maxSendHeaderBlockLength: headerBytes,
    })
    const timer = setTimeout(() => session.destroy(new Error('the connection took too long')), connectTimeoutMs)
    session.once('connect', () => clearTimeout(timer))
    // Each of its requests fails too, and is answered then.
    session.on('error', () => undefined)
    session.once('close', () => {
      clearTimeout(timer)
      if (this.#sessions.get(peer.name)?.session === session) this.#sessions.delete(peer.name)
    })
    this.#sessions.set(peer.name, { session, address: peer.address })
    return session
  }

  /** A connection of its own for an upgrade. Rejects if none comes about. */
  async socket(peer: Peer, signal: AbortSignal): Promise<TLSSocket> {
    const { host, port } = endpointOf(peer)
    const socket = connectTls({ host, port, ...this.#tls(peer), ALPNProtocols: ['http/1.1'] })
    socket.setNoDelay(true)
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    socket.once('secureConnect', () => resolve(undefined))
    socket.on('error', reject)
    socket.once('close', () => reject(new Error('the connection was closed')))
    const timer = setTimeout(() => reject(new Error('the connection took too long')), connectTimeoutMs)
    try {
      await abortable(promise, signal)
      return socket
    } catch (error) {
      socket.destroy()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * Cuts off processes that are gone, so that nobody waits for their answers. `isThere` says by name which are not. One
   * that stops by itself says so first, and is given the time to answer what it was asked before.
   */
  retain(isThere: (name: string) => boolean): void {
    for (const [name, { session }] of this.#sessions) {
      if (isThere(name) || session.closed) continue
      session.close()
      const timer = setTimeout(() => session.destroy(), lastResponsesMs).unref()
      session.once('close', () => clearTimeout(timer))
    }
  }

  [Symbol.dispose](): void {
    for (const { session } of this.#sessions.values()) session.destroy()
  }

  #tls({ name }: Peer) {
    const { ca, certificate: cert, key } = this.#credentials()
    return { ca, cert, key, servername: peerServerName(name), minVersion: 'TLSv1.3' as const }
  }
}

function endpointOf({ address }: Peer): { host: string; port: number } {
  const { hostname, port } = new URL(`https://${address}`)
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port) }
}
