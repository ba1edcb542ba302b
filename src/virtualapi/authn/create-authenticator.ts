// Who asks: decides, by the door a request came through, which proofs of identity count.
import type { ClusterId } from '../../apimachinery/meta/index.ts'
import { unauthorized } from '../../apimachinery/status/index.ts'
import { systemClock, type Clock } from '../../async/index.ts'
import type { ClusterDirectory } from '../clusters/directory.ts'
import type { RequestInfo } from '../request/request-info.ts'
import type { Authentication, Authenticator, AuthnRequest } from './authenticator.ts'
import { createBearerTokens } from './bearer-tokens.ts'
import { createCertificateVerifier, type CertificateIdentity } from './client-certificates.ts'
import { createFrontProxyAuthenticator, type FrontProxyConfig } from './front-proxy.ts'
import type { MemberTokens } from './member-tokens.ts'
import { tryRealm } from './pki/index.ts'
import { apiAudience, issuerOf, type ServiceAccountTokens } from './service-account-tokens.ts'
import type { TokenReviewer } from './token-reviewer.ts'
import type { UserInfo } from './user-info.ts'

export interface AuthenticatorOptions {
  /** What client certificates are verified against. */
  readonly pki: { readonly clientCa: string }
  readonly directory: ClusterDirectory
  /** The host's front proxy as it is configured now; absent or undefined: identity headers mean nothing. */
  readonly frontProxy?: () => FrontProxyConfig | undefined
  readonly memberTokens?: MemberTokens
  /** Our own tokens of ServiceAccounts; absent: none are believed. */
  readonly accountTokens?: ServiceAccountTokens
  readonly clock?: Clock
}

/**
 * In order: front-proxy headers (through the front proxy's own door only), client certificate, bearer token. A proof that is there and
 * wrong is 401 unless another one holds; no proof at all is anonymous (undefined).
 */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator & TokenReviewer {
  const { pki, directory, frontProxy, memberTokens, accountTokens, clock = systemClock } = options
  const certificates = createCertificateVerifier(pki.clientCa, { clock })
  const proxies = createFrontProxyAuthenticator({ clock })
  const tokens = createBearerTokens({ memberTokens, directory, clock })

  /** Who a token for this API is for. */
  const tokenFor = async (
    token: string,
    wanted: ClusterId | undefined,
    signal: AbortSignal,
  ): Promise<Required<Authentication> | undefined> => {
    if (accountTokens?.claimsToBeOurs(token) !== true) return tokens.authenticate(token, wanted, signal)
    const found = await accountTokens.verify(token, wanted, signal)
    return found?.audiences.some((audience) => isForApi(audience, found.cluster.id)) === true ? found : undefined
  }

  return {
    reviewToken: async (token, audiences, cluster, signal) => {
      if (accountTokens?.claimsToBeOurs(token) === true) {
        const account = await accountTokens.verify(token, cluster.id, signal)
        const asked = audiences.length > 0 ? audiences : [apiAudience, issuerOf(cluster.id)]
        const meant = asked.filter((audience) => account?.audiences.includes(audience))
        return account === undefined || meant.length === 0 ? undefined : { user: account.user, audiences: meant }
      }
      const found = await tokens.authenticate(token, cluster.id, signal)
      if (found === undefined) return undefined
      // A pod's token is for this API, whatever the member called it.
      const meant = audiences.filter((audience) => audience === found.audience || audience === apiAudience)
      if (audiences.length > 0 && meant.length === 0) return undefined
      return { user: found.user, audiences: meant.length > 0 ? meant : [apiAudience] }
    },
    authenticate: async ({ info, rawHeaders, peerCertificate, cluster }, signal) => {
      if (info.way === 'loopback') return undefined
      const peer = hasCertificate(peerCertificate) ? peerCertificate : undefined
      const proxyConfig = isFrontProxyDoor(info) ? frontProxy?.() : undefined
      if (peer !== undefined && proxyConfig !== undefined) {
        const answer = proxies.authenticate(peer, rawHeaders, proxyConfig)
        if (answer !== undefined) return answer.user === undefined ? undefined : { user: answer.user }
      }
      let wrong = false
      if (peer !== undefined) {
        const verdict = certificates.verify(peer)
        const user = verdict.ok ? certificateUser(verdict.identity) : undefined
        if (user !== undefined && isAtHome(user, info, cluster?.id)) return { user }
        wrong = true
      }
      const token = bearerToken(rawHeaders)
      if (token !== undefined) {
        // A path that names a logical cluster which is not there has nobody's tokens.
        const isLost = info.cluster.kind === 'one' && cluster === undefined
        const found = isLost ? undefined : await tokenFor(token, cluster?.id, signal)
        if (found !== undefined) return tokenAnswer(found, info)
        wrong = true
      }
      if (wrong) throw unauthorized()
      return undefined
    },
  }
}

function isForApi(audience: string, cluster: ClusterId): boolean {
  return audience === apiAudience || audience === issuerOf(cluster)
}

function tokenAnswer({ user, cluster }: Required<Authentication>, info: RequestInfo): Authentication {
  // Tokens of one logical cluster do not open what is above all of them.
  if (info.cluster.kind === 'all') throw unauthorized()
  return info.way === 'pathless' ? { user, cluster } : { user }
}

/**
 * Through the aggregator's own paths, and where no logical cluster is named at all: there the aggregator itself asks for
 * discovery and whether we are up. Nowhere else do identity headers mean anything.
 */
function isFrontProxyDoor({ way, cluster }: RequestInfo): boolean {
  return way === 'aggregated' || (way === 'direct' && cluster.kind === 'none')
}

/** Node gives an empty object where the client sent no certificate. */
function hasCertificate(peer: AuthnRequest['peerCertificate']): peer is NonNullable<AuthnRequest['peerCertificate']> {
  return (peer as { raw?: Buffer } | undefined)?.raw !== undefined
}

function certificateUser({ commonName, organizations, uris, credentialId }: CertificateIdentity): UserInfo | undefined {
  const realms = uris.map(tryRealm).filter((realm) => realm !== undefined)
  const [realm] = realms
  // Two realms would let the holder choose; no name is nobody.
  if (realm === undefined || realms.length !== 1 || commonName === '') return undefined
  return {
    name: commonName,
    groups: [...new Set([...organizations, 'system:authenticated'])],
    extra: { 'authentication.kubernetes.io/credential-id': [credentialId] },
    realm: realm === 'installation' ? { kind: 'installation' } : { kind: 'cluster', id: realm },
  }
}

/** A certificate of one logical cluster is nobody in every other, whether that exists or not. */
function isAtHome(user: UserInfo, info: RequestInfo, id: string | undefined): boolean {
  if (user.realm.kind !== 'cluster') return true
  return info.cluster.kind === 'none' || (info.cluster.kind === 'one' && user.realm.id === id)
}

function bearerToken(rawHeaders: readonly string[]): string | undefined {
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== 'authorization') continue
    const match = /^bearer +(\S+) *$/i.exec(rawHeaders[i + 1] ?? '')
    if (match !== null) return match[1]
  }
  return undefined
}
