// Verifies a client's certificate against a set of authorities and reads who it names. TLS asks for a certificate and
// believes none: which authority counts depends on the door the request came through.
import 'reflect-metadata'
import * as x509 from '@peculiar/x509'
import { createHash, X509Certificate } from 'node:crypto'
import type { DetailedPeerCertificate } from 'node:tls'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../async/index.ts'

/** Who a certificate names, as it says itself. */
export interface CertificateIdentity {
  readonly commonName: string
  readonly organizations: readonly string[]
  readonly uris: readonly string[]
  /** Names the certificate itself, for those who look into what it was used for. */
  readonly credentialId: string
}

/** A verified certificate, or why it is not. The reason is for the log, never for the client. */
export type CertificateVerdict =
  { readonly ok: true; readonly identity: CertificateIdentity } | { readonly ok: false; readonly reason: string }

export interface CertificateVerifier {
  verify(peer: DetailedPeerCertificate): CertificateVerdict
}

const clientAuth = '1.3.6.1.5.5.7.3.2'
const anyUsage = '2.5.29.37.0'
const maxChain = 4
const maxCached = 4096

/**
 * Verifies against exactly these authorities (PEM, several certificates allowed): signatures up to one of them, dates,
 * usage for clients. What was verified is remembered by fingerprint; dates are looked at every time.
 */
export function createCertificateVerifier(authorities: string, { clock }: { clock: Clock }): CertificateVerifier {
  const roots = parseCertificates(authorities)
  const cache = new LRUCache<string, Checked>({ max: maxCached })
  // Of a connection: its certificate is one object for all its requests, which is not even hashed again.
  const known = new WeakMap<DetailedPeerCertificate, Checked>()
  const checkOnce = (peer: DetailedPeerCertificate): Checked => {
    // The intermediates are part of what was judged: the same leaf may come with a chain once and without another time.
    const chain = chainOf(peer)
    const fingerprint = createHash('sha256')
    for (const raw of chain) fingerprint.update(raw)
    const key = fingerprint.digest('base64')
    const checked = cache.get(key) ?? check(chain, roots)
    cache.set(key, checked)
    return checked
  }
  return {
    verify: (peer) => {
      let checked = known.get(peer)
      if (checked === undefined) known.set(peer, (checked = checkOnce(peer)))
      const now = clock.now()
      if (!checked.verdict.ok) return checked.verdict
      if (now < checked.notBefore) return { ok: false, reason: 'not yet valid' }
      if (now > checked.notAfter) return { ok: false, reason: 'expired' }
      return checked.verdict
    },
  }
}

/** The certificates of a PEM text; throws where one can't be read. */
export function parseCertificates(text: string): X509Certificate[] {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  return blocks.map((block) => new X509Certificate(block))
}

interface Checked {
  readonly verdict: CertificateVerdict
  /** Of the whole chain, authority included; milliseconds. */
  readonly notBefore: number
  readonly notAfter: number
}

function chainOf(peer: DetailedPeerCertificate): Buffer[] {
  const chain: Buffer[] = []
  let next: Partial<DetailedPeerCertificate> | undefined = peer
  while (next !== undefined && chain.length < maxChain) {
    const raw: Buffer | undefined = next.raw
    // A self-signed certificate is its own issuer.
    if (raw === undefined || chain.some((seen) => seen.equals(raw))) break
    chain.push(raw)
    next = next.issuerCertificate
  }
  return chain
}

function check(chain: readonly Buffer[], roots: readonly X509Certificate[]): Checked {
  const refused = (reason: string): Checked => ({ verdict: { ok: false, reason }, notBefore: 0, notAfter: 0 })
  try {
    const [leaf, ...intermediates] = chain.map((raw) => new X509Certificate(raw))
    if (leaf === undefined) return refused('no certificate')
    const path = pathToRoot(leaf, intermediates, roots)
    if (path === undefined) return refused('signed by none of the authorities')
    // Node calls the extended key usages `keyUsage`. Absent means any.
    const usages = leaf.keyUsage as string[] | undefined
    if (usages !== undefined && !usages.includes(clientAuth) && !usages.includes(anyUsage))
      return refused('not for clients')
    return {
      verdict: { ok: true, identity: identityOf(leaf) },
      notBefore: Math.max(...path.map((certificate) => certificate.validFromDate.getTime())),
      notAfter: Math.min(...path.map((certificate) => certificate.validToDate.getTime())),
    }
  } catch {
    return refused('unreadable')
  }
}

/** The leaf and what signed it, up to and including an authority. The peer's intermediates count only if signed too. */
function pathToRoot(
  leaf: X509Certificate,
  intermediates: readonly X509Certificate[],
  roots: readonly X509Certificate[],
): X509Certificate[] | undefined {
  const path = [leaf]
  let current = leaf
  for (let depth = 0; depth < maxChain; depth++) {
    const signed = current
    const root = roots.find((authority) => isIssuer(authority, signed))
    if (root !== undefined) return [...path, root]
    const issuer = intermediates.find((authority) => !path.includes(authority) && isIssuer(authority, signed))
    if (issuer === undefined) return undefined
    path.push(issuer)
    current = issuer
  }
  return undefined
}

function isIssuer(authority: X509Certificate, certificate: X509Certificate): boolean {
  return authority.ca && certificate.checkIssued(authority) && certificate.verify(authority.publicKey)
}

/** Read from the parsed names, not from their printed form: no character in a value can end it. */
function identityOf(leaf: X509Certificate): CertificateIdentity {
  const certificate = new x509.X509Certificate(leaf.raw)
  const names = certificate.getExtension(x509.SubjectAlternativeNameExtension)?.names.items ?? []
  return {
    commonName: certificate.subjectName.getField('CN').at(-1) ?? '',
    organizations: certificate.subjectName.getField('O'),
    uris: names.filter((name) => name.type === 'url').map((name) => name.value),
    credentialId: `X509SHA256=${createHash('sha256').update(leaf.raw).digest('hex')}`,
  }
}
