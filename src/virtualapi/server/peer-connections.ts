// Connections to our other processes, over which requests are passed on: one HTTP/2 session per process, and one
// connection per upgrade. Both sides present certificates of an authority that signs for our processes only. A session
// to a process on the same machine may use a Unix socket instead, which only our user can reach.
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2'
import { connect as connectSocket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { abortable } from '#async/index.ts'
import type { Peer } from '#virtualapi/request/ownership.ts'

/** The credentials of this process for connections to other processes, PEM. */
export interface PeerCredentials {
  /** The authorities of other processes' certificates. */
  readonly ca: string
  readonly certificate: string
  readonly key: string
}

/**
 * The DNS name in the certificate of a process, so that a connection never reaches another process that now has its
 * address.
 */
export function peerServerName(name: string): string {
  return `${name}.peers.kcp.dev`
}

const connectTimeoutMs = 5000
/** How long a process that is gone may take for its last answers, milliseconds. */
const lastResponsesMs = 2000
/** Maximum of bytes of one response that were received and not yet read: a client that reads slowly costs no more. */
const windowBytes = 256 * 1024
/** Maximum of the headers of one request, bytes: as many as clients may send. nghttp2's default is 64 KiB. */
const headerBytes = 256 * 1024
/**
 * Memory that one session may take, MiB: with Node's default it refuses streams when some thousand watches wait on it.
 */
const sessionMemory = 1024

interface Session {
  readonly session: ClientHttp2Session
  readonly address: string
  readonly isLocal: boolean
}

export class PeerConnections implements Disposable {
  readonly #credentials: () => PeerCredentials
  readonly #localSocketOf: (name: string) => string | undefined
  readonly #sessions = new Map<string, Session>()

  /** `localSocketOf`: the path of the Unix socket of a process on this machine. Default: there is none. */
  constructor(
    credentials: () => PeerCredentials,
    { localSocketOf = () => undefined }: { readonly localSocketOf?: (name: string) => string | undefined } = {},
  ) {
    this.#credentials = credentials
    this.#localSocketOf = localSocketOf
  }

  /** The session to a process; connects if there is none. Requests on it may be made at once. */
  session(peer: Peer): ClientHttp2Session {
    const known = this.#sessions.get(peer.name)
    if (known?.address === peer.address && !known.session.closed && !known.session.destroyed) return known.session
    const path = this.#localSocketOf(peer.name)
    const session = connectHttp2(path === undefined ? `https://${peer.address}` : 'http://localhost', {
      ...(path === undefined ? this.#tls(peer) : { createConnection: () => connectSocket({ path }) }),
      settings: { initialWindowSize: windowBytes, enablePush: false },
      maxSessionMemory: sessionMemory,
      maxSendHeaderBlockLength: headerBytes,
    })
    const timer = setTimeout(() => session.destroy(new Error('the connection took too long')), connectTimeoutMs)
    session.once('connect', () => clearTimeout(timer))
    // Each request of the session fails too and is answered with its own error.
    session.on('error', () => undefined)
    session.once('close', () => {
      clearTimeout(timer)
      if (this.#sessions.get(peer.name)?.session === session) this.#sessions.delete(peer.name)
    })
    this.#sessions.set(peer.name, { session, address: peer.address, isLocal: path !== undefined })
    return session
  }

  /** Whether requests to this process go through a Unix socket. */
  isLocal({ name }: Peer): boolean {
    return this.#sessions.get(name)?.isLocal ?? this.#localSocketOf(name) !== undefined
  }

  /** Opens a separate connection for an upgrade. Rejects if it is not established in time, or the signal aborts. */
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
   * Closes the sessions to processes for which `isThere` is false, so that no request waits for a process that is gone.
   * A process that stops normally says so beforehand, so it gets some time to answer the requests that it has.
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
