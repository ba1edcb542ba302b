// The key of an agent, its certificate requests, and the certificate that is issued for it. The key is made in the
// member and never leaves it.
import 'reflect-metadata'
import * as x509 from '@peculiar/x509'
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  webcrypto,
  X509Certificate,
} from 'node:crypto'

/** The organization in the subject of agents. */
const organization = 'kcp.dev:agents'
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/** A private key for ECDSA P-256, PKCS #8 in PEM. */
export function newAgentKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** The fingerprint that `kcp member approve` shows. */
export function fingerprintOf(key: string): string {
  return `SHA256:${createHash('sha256').update(publicInfo(key)).digest('base64').replace('=', '')}`
}

/** A request (PKCS #10, PEM) for the certificate of this member. */
export async function signingRequest(key: string, member: string): Promise<string> {
  const der = createPrivateKey(key).export({ type: 'pkcs8', format: 'der' })
  const privateKey = await webcrypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign'])
  const publicKey = await webcrypto.subtle.importKey('spki', publicInfo(key), algorithm, true, ['verify'])
  const name = new x509.Name([{ O: [{ utf8String: organization }] }, { CN: [{ utf8String: member }] }])
  const request = await x509.Pkcs10CertificateRequestGenerator.create(
    { name: name.toString(), keys: { privateKey, publicKey }, signingAlgorithm: algorithm },
    webcrypto,
  )
  return request.toString('pem')
}

/** Throws a plain Error unless the certificate (PEM) is one for this key and this member. */
export function requireOwnCertificate(certificate: string, key: string, member: string): void {
  const read = new X509Certificate(certificate)
  const names = read.subject.split('\n')
  if (!read.checkPrivateKey(createPrivateKey(key)) || !names.includes(`CN=${member}`))
    throw new Error('the installation has sent a certificate for another key or another member')
}

/** When a certificate (PEM) has to be renewed, and when it ends, milliseconds. */
export function timesOf(certificate: string): { readonly dueMs: number; readonly endMs: number } {
  const { validFromDate, validToDate } = new X509Certificate(certificate)
  const [beginMs, endMs] = [validFromDate.getTime(), validToDate.getTime()]
  return { dueMs: beginMs + ((endMs - beginMs) * 2) / 3, endMs }
}

function publicInfo(key: string): Buffer {
  return createPublicKey(createPrivateKey(key)).export({ type: 'spki', format: 'der' })
}
