// A request as it arrives on a socket, before any stage.
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { TLSSocket } from 'node:tls'

/** The socket; for HTTP/2 the session's proxy of it. */
type PeerSocket = Socket & Partial<Pick<TLSSocket, 'getPeerCertificate'>>

/** A request of either protocol. */
export interface RawRequest {
  readonly method: string
  /** Path and query as sent. */
  readonly url: string
  /** Raw headers: name, value, name, value; for HTTP/2 with the pseudo headers. */
  readonly rawHeaders: readonly string[]
  /** HTTP/2: the stream does not end with the headers. */
  readonly isOpen?: boolean
  readonly body: Readable
  readonly socket: PeerSocket
  /** Identifies the connection: the same object for all its requests. */
  readonly connection: object
}
