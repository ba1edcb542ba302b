// The contract of authentication.
import type { DetailedPeerCertificate } from 'node:tls'
import type { LogicalCluster } from '../clusters/directory.ts'
import type { RequestInfo } from '../request/request-info.ts'
import type { UserInfo } from './user-info.ts'

export interface AuthnRequest {
  readonly info: RequestInfo
  /** Header pairs as they came: name, value, name, value. Repeated headers stay apart. */
  readonly rawHeaders: readonly string[]
  /** The client's certificate, not yet verified by anybody (TLS asks for one and verifies none); undefined without. */
  readonly peerCertificate: DetailedPeerCertificate | undefined
  /** The logical cluster of the path, where it exists. */
  readonly cluster: LogicalCluster | undefined
}

export interface Authentication {
  readonly user: UserInfo
  /** For path-less requests: the logical cluster that the verified token is for. */
  readonly cluster?: LogicalCluster
}

/** Says who asks; undefined = anonymous. Rejects 401 for a proof that is there and wrong. */
export interface Authenticator {
  authenticate(request: AuthnRequest, signal: AbortSignal): Promise<Authentication | undefined>
}
