// Certificate authorities and certificates of the clusters that tests boot. ECDSA P-256: fast to make.

import 'reflect-metadata'
import { createPrivateKey, randomBytes, webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'

export interface KeyPair {
  /** PEM. */
  certificate: string
  /** PEM, PKCS 8. */
  key: string
}

export interface CertificateRequest {
  commonName: string
  /** Kubernetes reads them as groups. */
  organizations?: readonly string[]
  /** Makes it a serving certificate; IP addresses and DNS names. */
  hosts?: readonly string[]
  /** Also valid for clients; true unless `hosts` are given. */
  client?: boolean
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const dayMs = 24 * 60 * 60_000

x509.cryptoProvider.set(webcrypto)

/** An authority that lives as long as the object. Its key is readable, for controllers that sign. */
export class CertificateAuthority implements KeyPair {
  readonly certificate: string
  readonly key: string
  readonly #signingKey: webcrypto.CryptoKey
  readonly #issuer: x509.X509Certificate

  private constructor(issuer: x509.X509Certificate, key: string, signingKey: webcrypto.CryptoKey) {
    this.certificate = `${issuer.toString('pem')}\n`
    this.key = key
    this.#issuer = issuer
    this.#signingKey = signingKey
  }

  /** A new self-signed authority. */
  static async create(commonName: string): Promise<CertificateAuthority> {
    const keys = await newKeys()
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      name: [{ CN: [commonName] }],
      keys,
      serialNumber: serialNumber(),
      ...validity(),
      signingAlgorithm: algorithm,
      extensions: [
        new x509.BasicConstraintsExtension(true, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.digitalSignature, true),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    })
    return new CertificateAuthority(certificate, await pemKey(keys.privateKey), keys.privateKey)
  }

  /** One that somebody else made, such as kubeadm's, whose key is RSA or ECDSA P-256. */
  static async of({ certificate, key }: KeyPair): Promise<CertificateAuthority> {
    const parsed = createPrivateKey(key)
    const pkcs8 = parsed.export({ format: 'der', type: 'pkcs8' })
    const signing = parsed.asymmetricKeyType === 'rsa' ? { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' } : algorithm
    const signingKey = await webcrypto.subtle.importKey('pkcs8', pkcs8, signing, true, ['sign'])
    return new CertificateAuthority(new x509.X509Certificate(certificate), key, signingKey)
  }

  /** Issues a certificate with a key of its own. */
  async issue({
    commonName,
    organizations = [],
    hosts = [],
    client = hosts.length === 0,
  }: CertificateRequest): Promise<KeyPair> {
    const keys = await newKeys()
    const usages = [
      ...(hosts.length > 0 ? [x509.ExtendedKeyUsage.serverAuth] : []),
      ...(client ? [x509.ExtendedKeyUsage.clientAuth] : []),
    ]
    const certificate = await x509.X509CertificateGenerator.create({
      subject: [...organizations.map((name) => ({ O: [name] })), { CN: [commonName] }],
      issuer: this.#issuer.subjectName.toJSON(),
      publicKey: keys.publicKey,
      signingKey: this.#signingKey,
      serialNumber: serialNumber(),
      ...validity(),
      signingAlgorithm: { ...this.#signingKey.algorithm, hash: 'SHA-256' },
      extensions: [
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension(usages),
        await x509.AuthorityKeyIdentifierExtension.create(this.#issuer.publicKey),
        ...(hosts.length > 0 ? [new x509.SubjectAlternativeNameExtension(hosts.map(generalName))] : []),
      ],
    })
    return { certificate: `${certificate.toString('pem')}\n`, key: await pemKey(keys.privateKey) }
  }
}

/** A key pair for signing service account tokens, both PEM. */
export async function newSigningKey(): Promise<{ privateKey: string; publicKey: string }> {
  const { privateKey, publicKey } = await newKeys()
  const spki = await webcrypto.subtle.exportKey('spki', publicKey)
  return { privateKey: await pemKey(privateKey), publicKey: `${x509.PemConverter.encode(spki, 'PUBLIC KEY')}\n` }
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
}

async function pemKey(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key))
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    .export({ format: 'pem', type: 'pkcs8' })
    .toString()
}

/** Positive and not zero: RFC 5280 wants both. */
const serialNumber = (): string => `01${randomBytes(15).toString('hex')}`

/** Valid from one minute ago, for containers whose clock is a little late. */
const validity = (): { notBefore: Date; notAfter: Date } => ({
  notBefore: new Date(Date.now() - 60_000),
  notAfter: new Date(Date.now() + 365 * dayMs),
})

const generalName = (host: string): { type: 'ip' | 'dns'; value: string } => ({
  type: /^[0-9.]+$|:/.test(host) ? 'ip' : 'dns',
  value: host,
})
