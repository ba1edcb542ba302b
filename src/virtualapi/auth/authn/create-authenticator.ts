// Authenticates requests. How a request reached us decides which credentials count.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { unauthorized } from '#apimachinery/status/index.ts'
import { systemClock, type Clock } from '#async/index.ts'
import { ancestryOf } from '#virtualapi/request/hierarchy.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { RequestInfo } from '#virtualapi/request/request-info.ts'
import type { Authentication, Authenticator, AuthnRequest } from './authenticator.ts'
import { belowOf, isAncestorName } from './ancestor-names.ts'
import { createBearerTokens } from './bearer-tokens.ts'
import { createCertificateVerifier, type CertificateIdentity } from './client-certificates.ts'
import { createFrontProxyAuthenticator, type FrontProxyConfig } from './front-proxy.ts'
import type { MemberTokens } from './member-tokens.ts'
import { isOfAgent, tryRealm } from './pki/index.ts'
import { apiAudience, issuerOf, type ServiceAccountTokens } from './service-account-tokens.ts'
import type { TokenReviewer } from './token-reviewer.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'

/** The contract for tokens that let others use one logical cluster. */
export interface AccessUsers {
  /** True if the unverified text looks like such a token. */
  isOurs(token: string): boolean
  /** The user of a token that is valid in this logical cluster now; undefined for any other token. */
  userIn(token: string, cluster: LogicalCluster, signal: AbortSignal): Promise<UserInfo | undefined>
}

/** The contract for tokens of identity providers. */
export interface SignInUsers {
  /** True if the unverified token is of an issuer that counts in the logical cluster. */
  trusts(token: string, cluster: LogicalCluster | undefined): boolean
  /** The user of a valid token; undefined for any other token. */
  userOf(token: string, cluster: LogicalCluster | undefined): Promise<UserInfo | undefined>
  /** Whether a client without credentials may be anonymous at this path. */
  allowsAnonymous(path: string): boolean
}

export interface AuthenticatorOptions {
  /** The authority of client certificates, PEM. */
  readonly pki: { readonly clientCa: string }
  readonly directory: ClusterDirectory
  /** The current configuration of the host's front proxy; absent or undefined: identity headers are ignored. */
  readonly frontProxy?: () => FrontProxyConfig | undefined
  readonly memberTokens?: MemberTokens
  /** ServiceAccount tokens that we issue; absent: none are accepted. */
  readonly accountTokens?: ServiceAccountTokens
  /** Tokens for the use of one logical cluster by others; absent: none are accepted. */
  readonly access?: AccessUsers
  /** Users of identity providers; absent: none. */
  readonly signIn?: SignInUsers
  /** The only cluster of the server, and the authority of its client certificates, PEM. */
  readonly plain?: { readonly cluster: ClusterId; readonly clientCa: string }
  readonly clock?: Clock
}

/**
 * Tries, in order: front-proxy headers (only on requests through the front proxy), client certificate, bearer token.
 * Throws 401 for invalid credentials unless others are valid; a client without credentials is anonymous (undefined).
 */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator & TokenReviewer {
  const { pki, directory, frontProxy, memberTokens, accountTokens, access, signIn, plain } = options
  const { clock = systemClock } = options
  const certificates = createCertificateVerifier(pki.clientCa, { clock })
  const plainCertificates = plain && createCertificateVerifier(plain.clientCa, { clock })
  const proxies = createFrontProxyAuthenticator({ clock })
  const tokens = createBearerTokens({ memberTokens, directory, clock })

  /** The ancestor of the logical cluster of the path that has this id; undefined if none has. */
  const ancestorOf = (cluster: LogicalCluster | undefined, id: ClusterId | undefined): LogicalCluster | undefined =>
    cluster?.parent === undefined
      ? undefined
      : ancestryOf(cluster, directory).ancestors.find((above) => above.id === id)

  /** The user as the logical cluster of the path sees it; undefined if its certificate is not valid there. */
  const userAt = (user: UserInfo, { info, cluster }: Pick<AuthnRequest, 'info' | 'cluster'>): UserInfo | undefined => {
    if (isInRealm(user, info, cluster?.id)) return user
    const ancestor = user.realm.kind === 'cluster' ? ancestorOf(cluster, user.realm.id) : undefined
    return ancestor && belowOf(user, ancestor)
  }

  /** Authenticates a ServiceAccount token of this ancestor. */
  const tokenOfAncestor = async (token: string, ancestor: LogicalCluster, signal: AbortSignal) => {
    const found = await accountTokens?.verify(token, ancestor.id, signal)
    const isValid = found?.audiences.some((audience) => isForApi(audience, ancestor.id)) === true
    if (found === undefined || !isValid) throw unauthorized()
    return { user: belowOf(found.user, ancestor) }
  }

  /** Authenticates a token whose audience is this API. */
  const tokenFor = async (
    token: string,
    wanted: ClusterId | undefined,
    context: { readonly source: string; readonly signal: AbortSignal },
  ): Promise<Required<Authentication> | undefined> => {
    if (accountTokens?.hasOurIssuer(token) !== true) return tokens.authenticate(token, wanted, context)
    const found = await accountTokens.verify(token, wanted, context.signal)
    return found?.audiences.some((audience) => isForApi(audience, found.cluster.id)) === true ? found : undefined
  }

  const isSignIn = (token: string, cluster: LogicalCluster | undefined): boolean =>
    signIn !== undefined && accountTokens?.hasOurIssuer(token) !== true && signIn.trusts(token, cluster)

  /** The user of an identity provider's token. */
  const signInResponse = async (token: string, cluster: LogicalCluster | undefined): Promise<Authentication> => {
    const user = await signIn?.userOf(token, cluster)
    if (user === undefined) throw unauthorized()
    return { user }
  }

  return {
    reviewToken: async (token, audiences, cluster, signal) => {
      if (accountTokens?.hasOurIssuer(token) === true) {
        const account = await accountTokens.verify(token, cluster.id, signal)
        const asked = audiences.length > 0 ? audiences : [apiAudience, issuerOf(cluster.id)]
        const accepted = asked.filter((audience) => account?.audiences.includes(audience))
        return account === undefined || accepted.length === 0 ? undefined : { user: account.user, audiences: accepted }
      }
      if (isSignIn(token, cluster)) {
        const user = await signIn?.userOf(token, cluster)
        const isForUs = audiences.length === 0 || audiences.includes(apiAudience)
        return user === undefined || !isForUs ? undefined : { user, audiences: [apiAudience] }
      }
      const found = await tokens.authenticate(token, cluster.id, { source: cluster.id, signal })
      if (found === undefined) return undefined
      // A pod's token is for this API, whatever its audience is called in the member.
      const accepted = audiences.filter((audience) => audience === found.audience || audience === apiAudience)
      if (audiences.length > 0 && accepted.length === 0) return undefined
      return { user: found.user, audiences: accepted.length > 0 ? accepted : [apiAudience] }
    },
    authenticate({ info, rawHeaders, peerCertificate, peerAddress = '', cluster }, signal) {
      if (info.entryPoint === 'loopback') return undefined
      const peer = hasCertificate(peerCertificate) ? peerCertificate : undefined
      const proxyConfig = acceptsFrontProxy(info) ? frontProxy?.() : undefined
      if (peer !== undefined && proxyConfig !== undefined) {
        const response = proxies.authenticate(peer, rawHeaders, proxyConfig)
        if (response !== undefined) return response.user === undefined ? undefined : { user: response.user }
      }
      if (peer !== undefined && plain !== undefined) {
        const verdict = plainCertificates?.verify(peer)
        const user = verdict?.ok === true ? plainUser(verdict.identity, plain.cluster) : undefined
        if (user !== undefined) return { user }
      }
      if (peer !== undefined) {
        const verdict = certificates.verify(peer)
        const owner = verdict.ok ? certificateUser(verdict.identity) : undefined
        const user = owner && userAt(owner, { info, cluster })
        if (user !== undefined) return certificateResponse(user, info, directory)
      }
      const token = bearerToken(rawHeaders)
      // The path names a logical cluster that does not exist: no token is valid there.
      const isMissing = info.cluster.kind === 'one' && cluster === undefined
      if (token !== undefined && access?.isOurs(token) === true) return accessResponse(access, token, cluster, signal)
      if (token !== undefined && !isMissing && isSignIn(token, cluster)) return signInResponse(token, cluster)
      if (token !== undefined && !isMissing) {
        const ancestor =
          cluster?.parent === undefined ? undefined : ancestorOf(cluster, accountTokens?.issuedFor(token))
        if (ancestor !== undefined) return tokenOfAncestor(token, ancestor, signal)
        return tokenFor(token, cluster?.id, { source: peerAddress, signal }).then((found) => {
          if (found === undefined) throw unauthorized()
          return tokenResponse(found, info)
        })
      }
      if (peer !== undefined || token !== undefined) throw unauthorized()
      const path = info.target.kind === 'path' ? info.target.path : ''
      if (signIn?.allowsAnonymous(path) === false) throw unauthorized()
      return undefined
    },
  }
}

/** A token of this kind counts where the path names its logical cluster, and nowhere else. */
async function accessResponse(
  access: AccessUsers,
  token: string,
  cluster: LogicalCluster | undefined,
  signal: AbortSignal,
): Promise<Authentication> {
  const user = cluster && (await access.userIn(token, cluster, signal))
  if (user === undefined) throw unauthorized()
  return { user }
}

function isForApi(audience: string, cluster: ClusterId): boolean {
  return audience === apiAudience || audience === issuerOf(cluster)
}

function tokenResponse({ user, cluster }: Required<Authentication>, info: RequestInfo): Authentication {
  // The token of one logical cluster gives no access to all of them.
  if (info.cluster.kind === 'all') throw unauthorized()
  return info.entryPoint === 'unprefixed' ? { user, cluster } : { user }
}

/**
 * True where identity headers count: on the aggregator's paths, and on paths without a logical cluster, where the
 * aggregator itself reads discovery and health.
 */
function acceptsFrontProxy({ entryPoint, cluster }: RequestInfo): boolean {
  return entryPoint === 'aggregated' || (entryPoint === 'direct' && cluster.kind === 'none')
}

/** On a path without a logical cluster, the certificate names the logical cluster of the request, as a token does. */
function certificateResponse(user: UserInfo, { cluster }: RequestInfo, directory: ClusterDirectory): Authentication {
  const own = cluster.kind === 'none' && user.realm.kind === 'cluster' ? directory.byId(user.realm.id) : undefined
  return own === undefined ? { user } : { user, cluster: own }
}

/** Node returns an empty object if the client sent no certificate. */
function hasCertificate(peer: AuthnRequest['peerCertificate']): peer is NonNullable<AuthnRequest['peerCertificate']> {
  return (peer as { raw?: Buffer } | undefined)?.raw !== undefined
}

/**
 * The user of each identity. An identity is the same object while its certificate is in use, so its user is the same
 * object, too: caches find their entries by it.
 */
const users = new WeakMap<CertificateIdentity, { readonly user: UserInfo | undefined }>()

function certificateUser(identity: CertificateIdentity): UserInfo | undefined {
  let known = users.get(identity)
  if (known === undefined) users.set(identity, (known = { user: userOf(identity) }))
  return known.user
}

/** The user of a certificate in a server of one cluster, where certificates name no realm. */
function plainUser(identity: CertificateIdentity, id: ClusterId): UserInfo | undefined {
  if (identity.uris.some(isOfAgent)) return undefined
  let known = users.get(identity)
  if (known === undefined) users.set(identity, (known = { user: userIn({ kind: 'cluster', id }, identity) }))
  return known.user
}

function userOf(identity: CertificateIdentity): UserInfo | undefined {
  // The certificate of an agent opens a tunnel and is nobody here, whatever else it names.
  if (identity.uris.some(isOfAgent)) return undefined
  const realms = identity.uris.map(tryRealm).filter((realm) => realm !== undefined)
  const [realm] = realms
  // A certificate with two realms is invalid.
  if (realm === undefined || realms.length !== 1) return undefined
  // Names of users of ancestors: only authentication gives them.
  if ([identity.commonName, ...identity.organizations].some(isAncestorName)) return undefined
  return userIn(realm === 'installation' ? { kind: 'installation' } : { kind: 'cluster', id: realm }, identity)
}

/** The user of the certificate; undefined if the certificate has no common name. */
function userIn(
  realm: UserInfo['realm'],
  { commonName, organizations, credentialId }: CertificateIdentity,
): UserInfo | undefined {
  if (commonName === '') return undefined
  return {
    name: commonName,
    groups: [...new Set([...organizations, 'system:authenticated'])],
    extra: { 'authentication.kubernetes.io/credential-id': [credentialId] },
    realm,
  }
}

/** False for the certificate of one logical cluster on a path of another one. */
function isInRealm(user: UserInfo, info: RequestInfo, id: string | undefined): boolean {
  if (user.realm.kind !== 'cluster') return true
  return info.cluster.kind === 'none' || (info.cluster.kind === 'one' && user.realm.id === id)
}

function bearerToken(rawHeaders: readonly string[]): string | undefined {
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== 'authorization') continue
    const match = /^bearer +(\S+)/i.exec(rawHeaders[i + 1] ?? '')
    if (match !== null) return match[1]
  }
  return undefined
}
