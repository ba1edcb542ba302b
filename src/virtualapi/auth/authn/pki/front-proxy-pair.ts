// The authority and client certificate by which aggregated API servers of a logical cluster recognize requests that
// this server passes on. They are derived from a key of the installation, so nothing is stored: a logical cluster
// always has the same pair, and no other logical cluster has it.
import { AsnConvert, OctetString } from '@peculiar/asn1-schema'
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509'
import { createHash, createPrivateKey, createPublicKey, hkdfSync, sign, type KeyObject } from 'node:crypto'
import type { KeyPair } from '#network/certificates/index.ts'

/** The common name of the client certificate, as kubeadm calls it. */
const frontProxyName = 'front-proxy-client'

export interface FrontProxyPair {
  /** The authority, PEM. */
  readonly ca: string
  readonly client: KeyPair
}

const ed25519 = '1.3.101.112'
const ids = {
  commonName: '2.5.4.3',
  keyUsage: '2.5.29.15',
  basicConstraints: '2.5.29.19',
  subjectKeyIdentifier: '2.5.29.14',
  extendedKeyUsage: '2.5.29.37',
  clientAuth: '1.3.6.1.5.5.7.3.2',
}
/** The beginning of the PKCS #8 form of an Ed25519 key, before its 32 bytes (RFC 8410, 7). */
const pkcs8Head = Buffer.from('302e020100300506032b657004220420', 'hex')

/**
 * The pairs of all logical clusters. `secret`: a private key of the installation, PEM. An authority takes less than a
 * millisecond, and so does a client certificate, which is made when it is first read.
 */
export function frontProxyPairs(secret: string): (cluster: string) => FrontProxyPair {
  const material = createPrivateKey(secret).export({ type: 'pkcs8', format: 'der' })
  return (cluster) => new DerivedPair(material, cluster)
}

class DerivedPair implements FrontProxyPair {
  readonly ca: string
  readonly #material: Buffer
  readonly #cluster: string
  #client: KeyPair | undefined

  constructor(material: Buffer, cluster: string) {
    this.#material = material
    this.#cluster = cluster
    const key = this.#authorityKey()
    const issuer = this.#issuer()
    const extensions = [
      ...authorityExtensions,
      extension(ids.subjectKeyIdentifier, new SubjectKeyIdentifier(digestOf(key))),
    ]
    this.ca = signedCertificate({ issuer, subject: issuer, key, extensions }, key)
  }

  get client(): KeyPair {
    return (this.#client ??= this.#makeClient())
  }

  #makeClient(): KeyPair {
    const key = derivedKey(this.#material, `kcp.dev/front-proxy/client/${this.#cluster}`)
    const about = { issuer: this.#issuer(), subject: nameOf(frontProxyName), key, extensions: clientExtensions }
    return {
      certificate: signedCertificate(about, this.#authorityKey()),
      key: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
    }
  }

  #authorityKey(): KeyObject {
    return derivedKey(this.#material, `kcp.dev/front-proxy/authority/${this.#cluster}`)
  }

  #issuer(): Name {
    return nameOf(`kcp-front-proxy-ca-${this.#cluster}`)
  }
}

function derivedKey(material: Buffer, purpose: string): KeyObject {
  const seed = Buffer.from(hkdfSync('sha256', material, '', purpose, 32))
  return createPrivateKey({ key: Buffer.concat([pkcs8Head, seed]), format: 'der', type: 'pkcs8' })
}

function publicInfo(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: 'spki', format: 'der' })
}

function digestOf(key: KeyObject): Buffer {
  return createHash('sha256').update(publicInfo(key)).digest().subarray(0, 20)
}

function nameOf(commonName: string): Name {
  const value = new AttributeValue({ utf8String: commonName })
  return new Name([new RelativeDistinguishedName([new AttributeTypeAndValue({ type: ids.commonName, value })])])
}

function extension(extnID: string, value: unknown): Extension {
  const critical = extnID !== ids.extendedKeyUsage && extnID !== ids.subjectKeyIdentifier
  return new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) })
}

const authorityExtensions = [
  extension(ids.basicConstraints, new BasicConstraints({ cA: true })),
  extension(ids.keyUsage, new KeyUsage(KeyUsageFlags.keyCertSign)),
]
const clientExtensions = [
  extension(ids.basicConstraints, new BasicConstraints()),
  extension(ids.keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature)),
  extension(ids.extendedKeyUsage, new ExtendedKeyUsage([ids.clientAuth])),
]

function signedCertificate(
  parts: { issuer: Name; subject: Name; key: KeyObject; extensions: Extension[] },
  authorityKey: KeyObject,
): string {
  const algorithm = new AlgorithmIdentifier({ algorithm: ed25519 })
  const serial = digestOf(parts.key).subarray(0, 16)
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40
  const tbsCertificate = new TBSCertificate({
    version: Version.v3,
    serialNumber: new Uint8Array(serial).buffer,
    signature: algorithm,
    issuer: parts.issuer,
    // The validity has no end (RFC 5280, 4.1.2.5): a derived certificate cannot be renewed before its authority is.
    validity: new Validity({
      notBefore: new Date('2020-01-01T00:00:00Z'),
      notAfter: new Date('9999-12-31T23:59:59Z'),
    }),
    subject: parts.subject,
    subjectPublicKeyInfo: AsnConvert.parse(publicInfo(parts.key), SubjectPublicKeyInfo),
    extensions: new Extensions(parts.extensions),
  })
  const signature = sign(null, Buffer.from(AsnConvert.serialize(tbsCertificate)), authorityKey)
  const signatureValue = new Uint8Array(signature).buffer
  const certificate = new Certificate({ tbsCertificate, signatureAlgorithm: algorithm, signatureValue })
  const lines =
    Buffer.from(AsnConvert.serialize(certificate))
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}
