// The identity of a gateway: a key that never leaves its member, and a certificate that is signed with this key. The
// other gateways learn the certificate through the MemberClusters. So there is no CA whose key could be stolen, and the
// others stop trusting a member as soon as they learn that it was removed.
import 'reflect-metadata'
import * as x509 from '@peculiar/x509'
import { webcrypto } from 'node:crypto'

/** PEM, the key as PKCS #8. */
export interface GatewayKeyPair {
  readonly certificate: string
  readonly key: string
}

export interface GatewayIdentity {
  readonly current: GatewayKeyPair
  /** Published to the other gateways, but not used yet. */
  readonly next?: GatewayKeyPair
}

const dayMs = 86_400_000
const validMs = 365 * dayMs
const renewBeforeMs = 60 * dayMs
/** How long before its creation a certificate becomes valid, because the clocks of members differ. */
const backdatedMs = 5 * 60_000
/** How long after its publication a certificate is used: by then the other gateways have learned of it. */
const publishedMs = 60 * 60_000

/**
 * The identity to use from now on: `known` itself until it is due for renewal. A new certificate is published an hour
 * before it is used.
 */
export async function nextIdentity(
  known: Partial<GatewayIdentity>,
  memberName: string,
  nowMs: number,
): Promise<GatewayIdentity> {
  const isGood = (pair: GatewayKeyPair | undefined, leftMs = 0): pair is GatewayKeyPair =>
    pair !== undefined && endOf(pair) - nowMs > leftMs
  const { current, next } = known
  if (!isGood(current)) return { current: isGood(next) ? next : await createPair(memberName, nowMs) }
  if (isGood(next)) return beginOf(next) + backdatedMs + publishedMs <= nowMs ? { current: next } : { current, next }
  if (isGood(current, renewBeforeMs)) return known as GatewayIdentity
  return { current, next: await createPair(memberName, nowMs) }
}

/** The data of the Secret. */
export function secretData({ current, next }: GatewayIdentity): Record<string, string> {
  const encode = (text: string): string => Buffer.from(text).toString('base64')
  return {
    'tls.crt': encode(current.certificate),
    'tls.key': encode(current.key),
    ...(next && { 'next.crt': encode(next.certificate), 'next.key': encode(next.key) }),
  }
}

/** What the Secret holds; an unreadable pair counts as absent. */
export function identityOf(data: Readonly<Record<string, string>> = {}): Partial<GatewayIdentity> {
  const pair = (name: string): GatewayKeyPair | undefined => {
    const decode = (key: string): string => Buffer.from(data[key] ?? '', 'base64').toString()
    const [certificate, key] = [decode(`${name}.crt`), decode(`${name}.key`)]
    try {
      return key === '' || Number.isNaN(endOf({ certificate, key })) ? undefined : { certificate, key }
    } catch {
      return undefined
    }
  }
  const [current, next] = [pair('tls'), pair('next')]
  return { ...(current && { current }), ...(next && { next }) }
}

function endOf({ certificate }: GatewayKeyPair): number {
  return new x509.X509Certificate(certificate).notAfter.getTime()
}

function beginOf({ certificate }: GatewayKeyPair): number {
  return new x509.X509Certificate(certificate).notBefore.getTime()
}

async function createPair(memberName: string, nowMs: number): Promise<GatewayKeyPair> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: Buffer.from(webcrypto.getRandomValues(new Uint8Array(16)))
        .toString('hex')
        .replace(/^[89a-f]/, '1'),
      // An attribute of a name has at most 64 characters (RFC 5280).
      name: [{ CN: [`kcp-gateway ${memberName}`.slice(0, 64)] }],
      notBefore: new Date(nowMs - backdatedMs),
      notAfter: new Date(nowMs + validMs),
      signingAlgorithm: algorithm,
      keys,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
      ],
    },
    webcrypto,
  )
  const key = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64')
  const lines = key.match(/.{1,64}/g) ?? []
  return {
    certificate: `${certificate.toString('pem')}\n`,
    key: ['-----BEGIN PRIVATE KEY-----', ...lines, '-----END PRIVATE KEY-----', ''].join('\n'),
  }
}
