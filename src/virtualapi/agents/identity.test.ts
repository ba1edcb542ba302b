import 'reflect-metadata'
import { expect } from 'chai'
import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import type { DetailedPeerCertificate } from 'node:tls'
import * as x509 from '@peculiar/x509'
import { clusterIdOf } from '#apimachinery/meta/index.ts'
import { systemClock } from '#async/index.ts'
import {
  agentUri,
  createAuthenticator,
  createCertificateAuthority,
  createPki,
  createPkiMaterial,
  signKey,
  type KeyPair,
  type Pki,
  type PkiMaterial,
} from '#virtualapi/auth/authn/index.ts'
import { createDirectory } from '#virtualapi/background/directory/informed-directory.ts'
import { parseRequest } from '#virtualapi/request/parse-request.ts'
import { createAgentIdentities, keyFingerprint, type AgentIdentity } from './identity.ts'

const uid = '11111111-2222-4333-8444-555555555555'
const agentCn = { CN: [{ utf8String: 'eu-1' }] }
const agentO = { O: [{ utf8String: 'kcp.dev:agents' }] }

describe('the identity of an agent', () => {
  let material: PkiMaterial
  let pki: Pki
  let publicKey: Uint8Array
  before(async () => {
    material = await createPkiMaterial()
    pki = createPki(material)
    publicKey = newKey()
  })

  const agentOf = (certificate: string): AgentIdentity | undefined =>
    createAgentIdentities(pki.clientCa, { clock: systemClock }).agentOf(peerOf(certificate))
  /** A certificate with these parts instead of those that an agent has. */
  const forged = (parts: {
    subject?: x509.JsonNameParams
    uris?: string[]
    dnsNames?: string[]
    usage?: 'client' | 'server'
    authority?: KeyPair
  }): Promise<string> => {
    const { subject = [agentO, agentCn], uris = [agentUri(uid)], usage = 'client', dnsNames, authority } = parts
    return signKey(authority ?? material.clientCa, {
      subject: new x509.Name(subject),
      publicKey: new x509.PublicKey(Buffer.from(publicKey)),
      usage,
      uris,
      ...(dnsNames && { dnsNames }),
      notBefore: new Date(Date.now() - 1000),
      notAfter: new Date(Date.now() + 60_000),
    })
  }

  it('is the member of its certificate, its uid, and its key', async () => {
    const certificate = await pki.signAgentKey({ member: 'eu-1', uid, publicKey, seconds: 3600 })
    const { expiresMs, fingerprint, ...agent } = agentOf(certificate) ?? {}
    expect(agent).to.deep.equal({ member: 'eu-1', uid, key: keyFingerprint(publicKey) })
    expect(fingerprint).to.equal(new X509Certificate(certificate).fingerprint256.replaceAll(':', '').toLowerCase())
    expect(expiresMs).to.be.closeTo(Date.now() + 3_600_000, 5000)
  })

  const names: readonly (readonly [string, string])[] = [
    ['upper case', 'EU-1'],
    ['a dot behind it', 'eu-1.'],
    ['a domain', 'eu-1.example.com'],
    ['a comma with another attribute', 'eu-1,CN=eu-10'],
    ['a blank behind it', 'eu-1 '],
    ['a zero byte', 'eu-1\0eu-10'],
    ['full-width digits', 'eu-\uff11'],
    ['a Cyrillic letter', '\u0435u-1'],
    ['a combining mark', 'eu-1\u0301'],
    ['nothing', ''],
    ['a path', 'eu-1/../eu-10'],
    ['64 characters', 'e'.repeat(64)],
  ]
  for (const [title, commonName] of names)
    it(`is none with ${title} as its name`, async () => {
      expect(agentOf(await forged({ subject: [agentO, { CN: [{ utf8String: commonName }] }] }))).to.equal(undefined)
    })

  it('is the whole name: eu-10 is not eu-1', async () => {
    const certificate = await forged({ subject: [agentO, { CN: [{ utf8String: 'eu-10' }] }] })
    expect(agentOf(certificate)?.member).to.equal('eu-10')
  })

  const parts: readonly (readonly [string, Parameters<typeof forged>[0]])[] = [
    ['two names', { subject: [agentO, agentCn, { CN: [{ utf8String: 'eu-10' }] }] }],
    ['two names in one part', { subject: [agentO, { CN: [{ utf8String: 'eu-1' }, { utf8String: 'eu-10' }] }] }],
    ['no organization', { subject: [agentCn] }],
    ['another organization', { subject: [{ O: [{ utf8String: 'kcp.dev:agents2' }] }, agentCn] }],
    ['an organization more', { subject: [agentO, { O: [{ utf8String: 'system:masters' }] }, agentCn] }],
    ['a unit', { subject: [agentO, { OU: [{ utf8String: 'x' }] }, agentCn] }],
    ['the realm of a logical cluster', { uris: [`kcp://clusters/${clusterIdOf('u')}`] }],
    ['the realm of the installation beside its own', { uris: [agentUri(uid), 'kcp://installation'] }],
    ['two uids', { uris: [agentUri(uid), agentUri('99999999-2222-4333-8444-555555555555')] }],
    ['a uid that is longer', { uris: [`${agentUri(uid)}0`] }],
    ['a uid in upper case', { uris: [agentUri('AAAAAAAA-2222-4333-8444-555555555555')] }],
    ['a DNS name more', { dnsNames: ['eu-10'] }],
    ['no uid', { uris: [] }],
    ['a server as its use', { usage: 'server' }],
  ]
  for (const [title, given] of parts)
    it(`is none with ${title}`, async () => {
      expect(agentOf(await forged(given))).to.equal(undefined)
    })

  it('is none of another authority, and none once the certificate has expired', async () => {
    const validity = { notBefore: new Date(Date.now() - 1000), notAfter: new Date(Date.now() + 60_000) }
    const authority = await createCertificateAuthority({ commonName: 'kcp-client-ca', ...validity })
    expect(agentOf(await forged({ authority }))).to.equal(undefined)
    expect(agentOf(await pki.signAgentKey({ member: 'eu-1', uid, publicKey, seconds: -10 }))).to.equal(undefined)
  })

  describe('at every other endpoint', () => {
    const paths = [
      '/api',
      '/clusters/root/api/v1/secrets',
      '/clusters/*/api/v1/secrets',
      '/clusters/acme/api',
      '/metrics',
    ]
    for (const path of paths)
      it(`is refused with 401 at ${path}, and is not anonymous`, async () => {
        const authenticator = createAuthenticator({ pki, directory: createDirectory({}) })
        for (const certificate of [
          await pki.signAgentKey({ member: 'eu-1', uid, publicKey, seconds: 3600 }),
          // Never issued: a certificate that is an agent's and an admin's at once.
          await forged({ uris: [agentUri(uid), 'kcp://installation'] }),
          await forged({ uris: ['kcp://agents', 'kcp://installation'] }),
        ]) {
          const asked = {
            info: parseRequest('GET', path, { hasBearerToken: false }),
            rawHeaders: ['X-Remote-User', 'admin', 'X-Remote-Group', 'system:masters'],
            peerCertificate: peerOf(certificate),
            cluster: undefined,
          }
          expect(() => authenticator.authenticate(asked, new AbortController().signal)).to.throw('Unauthorized')
        }
      })
  })
})

function newKey(): Uint8Array {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return publicKey.export({ type: 'spki', format: 'der' })
}

function peerOf(certificate: string): DetailedPeerCertificate {
  return { raw: new X509Certificate(certificate).raw } as DetailedPeerCertificate
}
