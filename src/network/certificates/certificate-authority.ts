// Creates certificate authorities and signs certificates for clients and servers. Keys are ECDSA P-256, which are fast
// to generate; client keys are RSA, as in kubeadm's kubeconfigs, because some client libraries cannot read other keys
// (Java's fabric8).
import 'reflect-metadata'
import * as x509 from '@peculiar/x509'
import { createPrivateKey, randomBytes, webcrypto, X509Certificate } from 'node:crypto'
import { systemClock, type Clock } from '#async/index.ts'

x509.cryptoProvider.set(webcrypto)

/** A certificate with its private key, both PEM (PKCS #8; client keys PKCS #1). */
export interface KeyPair {
  readonly certificate: string
  readonly key: string
}

export interface SubjectAttributes {
  readonly commonName: string
  readonly organizations?: readonly string[]
}

export interface CertificateRequest {
  readonly subject: SubjectAttributes
  /** `peer`: both client and server, with a key of ECDSA. */
  readonly usage: 'client' | 'server' | 'peer'
  readonly dnsNames?: readonly string[]
  readonly ipAddresses?: readonly string[]
  readonly uris?: readonly string[]
  readonly notBefore: Date
  readonly notAfter: Date
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const clientAlgorithm = {
  name: 'RSASSA-PKCS1-v1_5',
  modulusLength: 2048,
  publicExponent: Uint8Array.of(1, 0, 1),
  hash: 'SHA-256',
} as const
const clientAuth = '1.3.6.1.5.5.7.3.2'
const serverAuth = '1.3.6.1.5.5.7.3.1'
const usages = { client: [clientAuth], server: [serverAuth], peer: [clientAuth, serverAuth] } as const

/** Creates a self-signed certificate authority. */
export async function createCertificateAuthority(options: {
  readonly commonName: string
  readonly notBefore: Date
  readonly notAfter: Date
}): Promise<KeyPair> {
  const keys = await generateKeys()
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: distinguishedName({ commonName: options.commonName }),
    notBefore: options.notBefore,
    notAfter: options.notAfter,
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { certificate: pem(certificate), key: await privatePem(keys.privateKey) }
}

/**
 * Generates a key and signs a certificate for it. The key of a client takes some 40 ms, on a thread of libuv's pool.
 */
export async function signCertificate(authority: KeyPair, request: CertificateRequest): Promise<KeyPair> {
  const keys = await generateKeys(request.usage === 'client' ? clientAlgorithm : algorithm)
  const subject = distinguishedName(request.subject)
  const certificate = await signKey(authority, { ...request, subject, publicKey: keys.publicKey })
  return { certificate, key: await privatePem(keys.privateKey) }
}

/** Signs a certificate for a public key that the caller has. Returns PEM. */
export async function signKey(
  authority: KeyPair,
  request: Omit<CertificateRequest, 'subject'> & {
    readonly subject: x509.Name
    readonly publicKey: x509.PublicKey | webcrypto.CryptoKey
  },
): Promise<string> {
  const issuer = new x509.X509Certificate(authority.certificate)
  const names = [
    ...(request.dnsNames ?? []).map((value) => ({ type: 'dns' as const, value })),
    ...(request.ipAddresses ?? []).map((value) => ({ type: 'ip' as const, value })),
    ...(request.uris ?? []).map((value) => ({ type: 'url' as const, value })),
  ]
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: request.subject,
    issuer: issuer.subjectName,
    notBefore: request.notBefore,
    notAfter: request.notAfter,
    signingAlgorithm: algorithm,
    publicKey: request.publicKey,
    signingKey: await importPrivate(authority.key),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([...usages[request.usage]]),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
      ...(names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)]),
    ],
  })
  return pem(certificate)
}

/** Generates an ECDSA P-256 private key for signing tokens, PEM. */
export async function createSigningKey(): Promise<string> {
  return privatePem((await generateKeys()).privateKey)
}

async function generateKeys(
  wanted: typeof algorithm | typeof clientAlgorithm = algorithm,
): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(wanted, true, ['sign', 'verify'])
}

async function importPrivate(text: string): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(text).export({ type: 'pkcs8', format: 'der' })
  return webcrypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign'])
}

async function privatePem(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key))
  const type = key.algorithm.name === algorithm.name ? 'pkcs8' : 'pkcs1'
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).export({ type, format: 'pem' }).toString()
}

function pem(certificate: x509.X509Certificate): string {
  return `${certificate.toString('pem')}\n`
}

/** The name, built from attributes and not parsed from text: no character in a value can begin another attribute. */
export function distinguishedName({ commonName, organizations = [] }: SubjectAttributes): x509.Name {
  return new x509.Name([
    ...organizations.map((organization) => ({ O: [{ utf8String: organization }] })),
    { CN: [{ utf8String: commonName }] },
  ])
}

/** A random serial number of 16 bytes in hexadecimal; it is positive. */
function serialNumber(): string {
  const bytes = randomBytes(16)
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40
  return bytes.toString('hex')
}

/**
 * True once two thirds of the validity of this certificate (PEM) are over, and before the validity begins. A failed
 * renewal can be tried again for a third of the validity, while the old certificate is still valid.
 */
export function isRenewalDue(certificate: string, { clock = systemClock }: { clock?: Clock } = {}): boolean {
  const { validFromDate, validToDate } = new X509Certificate(certificate)
  const [from, to, now] = [validFromDate.getTime(), validToDate.getTime(), clock.now()]
  return now < from || now >= from + ((to - from) * 2) / 3
}
