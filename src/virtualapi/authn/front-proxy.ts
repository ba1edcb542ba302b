// Identity that the host's kube-aggregator vouches for in headers. Believed only from a client whose certificate the
// requestheader authority alone has signed, under a name that is allowed.
import type { DetailedPeerCertificate } from 'node:tls'
import type { Clock } from '../../async/index.ts'
import { createCertificateVerifier, type CertificateVerifier } from './client-certificates.ts'
import { headerText } from './header-text.ts'
import { hostName } from './host-names.ts'
import type { UserInfo } from './user-info.ts'

/** The requestheader part of the host's ConfigMap `extension-apiserver-authentication`. */
export interface FrontProxyConfig {
  /** The requestheader authority, PEM. */
  readonly ca: string
  /** Common names that may speak for others. Empty means nobody: a front proxy must be named. */
  readonly allowedNames: readonly string[]
  readonly usernameHeaders: readonly string[]
  readonly groupHeaders: readonly string[]
  readonly extraPrefixes: readonly string[]
  readonly uidHeaders: readonly string[]
}

/** Undefined: the client is no front proxy. `user` undefined: it is one, and speaks for nobody (anonymous at the host). */
export type FrontProxyAnswer = { readonly user: UserInfo | undefined } | undefined

export interface FrontProxyAuthenticator {
  authenticate(peer: DetailedPeerCertificate, rawHeaders: readonly string[], config: FrontProxyConfig): FrontProxyAnswer
}

export function createFrontProxyAuthenticator({ clock }: { clock: Clock }): FrontProxyAuthenticator {
  // One verifier for each CA text: a rotation starts with an empty memory.
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
 * Reads raw pairs: Node joins repeated headers with a comma, and one group called `dev, system:masters` must not read
 * as two.
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

/** Keys are percent-encoded, as header names may not carry everything; one that does not decode is taken as it is. */
function unescapeKey(key: string): string {
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}
