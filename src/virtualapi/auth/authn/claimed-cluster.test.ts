import { expect } from 'chai'
import { X509Certificate } from 'node:crypto'
import type { DetailedPeerCertificate } from 'node:tls'
import { clusterIdOf } from '#apimachinery/meta/index.ts'
import { createPki, createPkiMaterial } from './pki/index.ts'
import { clusterOfCertificate, clusterOfToken } from './claimed-cluster.ts'
import { issuerOf } from './service-account-tokens.ts'

const [a, b] = [clusterIdOf('a'), clusterIdOf('b')]
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const bearer = (claims: object): string => `Bearer ${part({ alg: 'none' })}.${part(claims)}.x`

describe('the logical cluster that a token claims', () => {
  for (const { title, authorization, claimed } of [
    { title: 'is that of our issuer', authorization: bearer({ iss: issuerOf(a), aud: `${b}.m` }), claimed: a },
    { title: 'is that of the only audience', authorization: bearer({ iss: 'x', aud: `${b}.member` }), claimed: b },
    { title: 'is that of the only audience of us', authorization: bearer({ aud: ['sts', `${b}.m`] }), claimed: b },
    { title: 'is none with several', authorization: bearer({ aud: [`${a}.m`, `${b}.m`] }), claimed: undefined },
    { title: 'is none for what is no id', authorization: bearer({ aud: 'example.com' }), claimed: undefined },
    { title: 'is none for what is no token', authorization: 'Bearer abc', claimed: undefined },
    { title: 'is none without a token', authorization: undefined, claimed: undefined },
  ])
    it(title, () => {
      expect(clusterOfToken(authorization)).to.equal(claimed)
    })
})

describe('the logical cluster that a certificate claims', () => {
  it('is that of its realm, and none for the installation, for other certificates and without one', async () => {
    const pki = createPki(await createPkiMaterial())
    const peerOf = async (realm: typeof a | 'installation') => {
      const { certificate } = await pki.issueClientCertificate({ commonName: 'x', organizations: [], realm, days: 1 })
      return { raw: new X509Certificate(certificate).raw } as DetailedPeerCertificate
    }
    expect(clusterOfCertificate(await peerOf(a))).to.equal(a)
    expect(clusterOfCertificate(await peerOf('installation'))).to.equal(undefined)
    const other = { raw: new X509Certificate(pki.servingCa).raw } as DetailedPeerCertificate
    for (const peer of [other, { raw: Buffer.from('x') }, {}, undefined])
      expect(clusterOfCertificate(peer as DetailedPeerCertificate | undefined)).to.equal(undefined)
  })
})
