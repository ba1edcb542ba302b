// Certificates with their own key, and with another one.
import { generateKeyPairSync } from 'node:crypto'
import { createCertificateAuthority, signCertificate } from '#network/certificates/index.ts'

const times = { notBefore: new Date('2025-01-01'), notAfter: new Date('2100-01-01') }
const authority = await createCertificateAuthority({ commonName: 'authority', ...times })
const client = await signCertificate(authority, { subject: { commonName: 'client' }, usage: 'client', ...times })
const pkcs8 = { type: 'pkcs8', format: 'pem' } as const
const ed25519 = generateKeyPairSync('ed25519').privateKey.export(pkcs8).toString()
const x25519 = generateKeyPairSync('x25519').privateKey.export(pkcs8).toString()
const anotherCurve = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey.export({
  type: 'sec1',
  format: 'pem',
})

const block = (type: string, bytes: string): string =>
  `-----BEGIN ${type}-----\n${Buffer.from(bytes).toString('base64')}\n-----END ${type}-----\n`

const { certificate, key } = authority

/** Description, certificate, key. */
export const keyPairs: readonly (readonly [about: string, certificate: string, key: string])[] = [
  ['its own', certificate, key],
  ['its own of RSA', client.certificate + certificate, client.key],
  ['text around', `a\n${certificate}\nb`, `a\r\n${key.replaceAll('\n', '\r\n')}`],
  ['a header', certificate, key.replace('-----\n', '-----\nA: b-c\n\n')],
  ['of another', client.certificate, key],
  ['of another curve', certificate, anotherCurve.toString()],
  ['of another kind', certificate, ed25519],
  ['of no kind for it', certificate, x25519],
  ['the other way round', key, certificate],
  ['no certificate', 'x', key],
  ['no key', certificate, 'x'],
  ['two certificates', certificate, certificate + certificate],
  ['two keys', key + key, key],
  ['other blocks', block('A B', 'x') + block('C', 'y'), key],
  ['other blocks for a key', certificate, block('A', 'x')],
  ['a certificate block with invalid content', block('CERTIFICATE', 'x'), key],
  ['a key block with invalid content', certificate, block('X PRIVATE KEY', 'y')],
  ['blocks that end otherwise', certificate.replace('END CERTIFICATE', 'END OTHER'), key],
  ['a block that is not base64', '-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n', key],
]
