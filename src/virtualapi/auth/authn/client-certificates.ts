// Verifies a client's certificate against a set of authorities and reads its subject. The TLS listener only requests
// the certificate, because the authority that counts depends on how the request reached us.
import 'reflect-metadata'
import * as x509 from '@peculiar/x509'
import { createHash, X509Certificate } from 'node:crypto'
import type { DetailedPeerCertificate } from 'node:tls'
import { LRUCache } from 'lru-cache'
import type { Clock } from '#async/index.ts'

/** The subject of a certificate. */
export interface CertificateIdentity {
  readonly commonName: string
  readonly organizations: readonly string[]
  readonly uris: readonly string[]
  /** Identifies the certificate in audit logs. */
  readonly credentialId: string
}

/** The verified identity, or why verification failed. The reason is for the log, never for the client. */
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
 * Verifies against these authorities only (PEM, several certificates allowed): the signatures up to one of them,
 * validity, and extended key usage clientAuth. Results are cached by fingerprint; validity is checked every time.
 */
export function createCertificateVerifier(authorities: string, { clock }: { clock: Clock }): CertificateVerifier {
  const roots = parseCertificates(authorities)
  const cache = new LRUCache<string, Checked>({ max: maxCached })
  // All requests of a connection share one certificate object, so its hash is computed once.
  const byConnection = new WeakMap<DetailedPeerCertificate, Checked>()
  const checkOnce = (peer: DetailedPeerCertificate): Checked => {
    // The key includes the intermediates: the same leaf may be sent with and without its chain.
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
      let checked = byConnection.get(peer)
      if (checked === undefined) byConnection.set(peer, (checked = checkOnce(peer)))
      const now = clock.now()
      if (!checked.verdict.ok) return checked.verdict
      if (now < checked.notBefore) return { ok: false, reason: 'not yet valid' }
      if (now > checked.notAfter) return { ok: false, reason: 'expired' }
      return checked.verdict
    },
  }
}

/** The certificates of a PEM text. Throws if a certificate cannot be parsed. */
export function parseCertificates(text: string): X509Certificate[] {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  return blocks.map((block) => new X509Certificate(block))
}

interface Checked {
  readonly verdict: CertificateVerdict
  /** Validity of the whole chain with its authority, milliseconds. */
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

/** The verified chain from the leaf to an authority; undefined if there is none. */
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

/**
 * The subject of the certificate. Parsed names are read and not their printed form, in which a comma in a value would
 * look like a separator.
 */
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
