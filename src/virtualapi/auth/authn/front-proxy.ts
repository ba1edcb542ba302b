// Authentication by the identity headers of the host's kube-aggregator (front proxy). They count only with a client
// certificate that the requestheader authority signed and whose common name is allowed.
import type { DetailedPeerCertificate } from 'node:tls'
import type { Clock } from '#async/index.ts'
import { createCertificateVerifier, type CertificateVerifier } from './client-certificates.ts'
import { headerText } from './header-text.ts'
import { hostName } from './host-names.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'

/** The requestheader part of the host's ConfigMap `extension-apiserver-authentication`. */
export interface FrontProxyConfig {
  /** The requestheader authority, PEM. */
  readonly ca: string
  /** Common names of front proxies. Empty: no front proxy is trusted. */
  readonly allowedNames: readonly string[]
  readonly usernameHeaders: readonly string[]
  readonly groupHeaders: readonly string[]
  readonly extraPrefixes: readonly string[]
  readonly uidHeaders: readonly string[]
}

/**
 * The result of front-proxy authentication. Undefined: the client is no front proxy. `user` undefined: the front proxy
 * forwards an anonymous request.
 */
export type FrontProxyAnswer = { readonly user: UserInfo | undefined } | undefined

export interface FrontProxyAuthenticator {
  authenticate(peer: DetailedPeerCertificate, rawHeaders: readonly string[], config: FrontProxyConfig): FrontProxyAnswer
}

export function createFrontProxyAuthenticator({ clock }: { clock: Clock }): FrontProxyAuthenticator {
  // One verifier per CA: a rotation starts with an empty cache.
  let current: { ca: string; verifier: CertificateVerifier } | undefined
  return {
    authenticate: (peer, rawHeaders, config) => {
      if (current?.ca !== config.ca)
        current = { ca: config.ca, verifier: createCertificateVerifier(config.ca, { clock }) }
      const verdict = current.verifier.verify(peer)
      if (!verdict.ok || !config.allowedNames.includes(verdict.identity.commonName)) return undefined
      return { user: userOf(rawHeaders, config) }
    },
  }
}

/**
 * The user in the identity headers; undefined for an anonymous one. Raw headers are read, because Node joins repeated
 * headers with a comma: one group called `dev, system:masters` must not become two.
 */
function userOf(rawHeaders: readonly string[], config: FrontProxyConfig): UserInfo | undefined {
  const values = (header: string): string[] =>
    pairsOf(rawHeaders).flatMap(([name, value]) => (name === header.toLowerCase() ? [value] : []))
  const first = (headers: readonly string[]): string | undefined =>
    headers.flatMap(values).find((value) => value !== '')
  const name = first(config.usernameHeaders)
  if (name === undefined || name === 'system:anonymous') return undefined
  const uid = first(config.uidHeaders)
  return {
    name: hostName(name),
    ...(uid === undefined ? {} : { uid }),
    groups: [
      ...new Set(
        config.groupHeaders
          .flatMap(values)
          .filter((group) => group !== '')
          .map(hostName),
      ),
    ],
    extra: extraOf(rawHeaders, config.extraPrefixes),
    realm: { kind: 'host' },
  }
}

function extraOf(rawHeaders: readonly string[], prefixes: readonly string[]): Record<string, readonly string[]> {
  const extra: Record<string, string[]> = Object.create(null) as Record<string, string[]>
  for (const [name, value] of pairsOf(rawHeaders)) {
    const prefix = prefixes.find((candidate) => candidate !== '' && name.startsWith(candidate.toLowerCase()))
    if (prefix === undefined) continue
    ;(extra[unescapeKey(name.slice(prefix.length))] ??= []).push(value)
  }
  return extra
}

function pairsOf(rawHeaders: readonly string[]): [name: string, value: string][] {
  const pairs: [string, string][] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    pairs.push([(rawHeaders[i] ?? '').toLowerCase(), headerText(rawHeaders[i + 1] ?? '')])
  return pairs
}

/** Keys are percent-encoded, since header names allow few characters. An invalid encoding is kept as it is. */
function unescapeKey(key: string): string {
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}
