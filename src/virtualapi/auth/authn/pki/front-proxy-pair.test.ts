import { expect } from 'chai'
import { X509Certificate } from 'node:crypto'
import { createSigningKey } from '#network/certificates/index.ts'
import { frontProxyPairs } from './front-proxy-pair.ts'

describe('the front proxy pair of a logical cluster', () => {
  let secret = ''
  before(async () => {
    secret = await createSigningKey()
  })

  it('has a client certificate that its authority signed', () => {
    const { ca, client } = frontProxyPairs(secret)('abc')
    const [authority, leaf] = [new X509Certificate(ca), new X509Certificate(client.certificate)]
    expect(authority.ca).to.equal(true)
    expect(authority.verify(authority.publicKey)).to.equal(true)
    expect(leaf.verify(authority.publicKey)).to.equal(true)
    expect(leaf.checkIssued(authority)).to.equal(true)
    expect([leaf.ca, leaf.subject]).to.deep.equal([false, 'CN=front-proxy-client'])
    expect(leaf.keyUsage).to.deep.equal(['1.3.6.1.5.5.7.3.2'])
  })

  it('is the same every time, and another one for another logical cluster or installation', async () => {
    const one = frontProxyPairs(secret)('abc')
    const again = frontProxyPairs(secret)('abc')
    expect([again.ca, again.client]).to.deep.equal([one.ca, one.client])
    const others = [frontProxyPairs(secret)('abd'), frontProxyPairs(await createSigningKey())('abc')]
    for (const { ca, client } of others) {
      expect(new X509Certificate(client.certificate).verify(new X509Certificate(one.ca).publicKey)).to.equal(false)
      expect(ca).to.not.equal(one.ca)
    }
  })
})
