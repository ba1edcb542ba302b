// The contract of authentication.
import type { DetailedPeerCertificate } from 'node:tls'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { RequestInfo } from '#virtualapi/request/request-info.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'

export interface AuthnRequest {
  readonly info: RequestInfo
  /** Raw headers: name, value, name, value. Repeated headers are not joined. */
  readonly rawHeaders: readonly string[]
  /** The client's certificate, unverified (TLS requests one and verifies none); undefined if there is none. */
  readonly peerCertificate: DetailedPeerCertificate | undefined
  /** The address of the connection's peer, by which invalid tokens are counted. */
  readonly peerAddress?: string | undefined
  /** The logical cluster of the path; undefined if it does not exist. */
  readonly cluster: LogicalCluster | undefined
}

export interface Authentication {
  readonly user: UserInfo
  /** The logical cluster that the verified token or certificate is for, if the path names no logical cluster. */
  readonly cluster?: LogicalCluster
}

/**
 * Authenticates a request; undefined: the client is anonymous. Throws or rejects with 401 if there are credentials and
 * none is valid, or if there are none and the path allows no anonymous clients, and with 429 after too many invalid
 * tokens. Only a token makes the caller wait: a certificate is verified at once.
 */
export interface Authenticator {
  authenticate(
    request: AuthnRequest,
    signal: AbortSignal,
  ): Authentication | undefined | Promise<Authentication | undefined>
}
