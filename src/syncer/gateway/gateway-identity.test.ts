import { createPrivateKey, X509Certificate } from 'node:crypto'
import { expect } from 'chai'
import { identityOf, nextIdentity, secretData, type GatewayIdentity } from './gateway-identity.ts'

const day = 86_400_000
const start = Date.parse('2026-01-01T00:00:00Z')

describe('the identity of a gateway', () => {
  let first: GatewayIdentity
  before(async () => {
    first = await nextIdentity({}, 'east', start)
  })

  it('is a certificate with its key', () => {
    const certificate = new X509Certificate(first.current.certificate)
    expect(certificate.checkPrivateKey(createPrivateKey(first.current.key))).to.equal(true)
    expect(certificate.subject).to.equal('CN=kcp-gateway east')
    expect(first.next).to.equal(undefined)
  })

  it('stays while it is good, through its Secret too', async () => {
    expect(identityOf(secretData(first))).to.deep.equal(first)
    expect(await nextIdentity(first, 'east', start + 300 * day)).to.equal(first)
  })

  it('is renewed in time: the next certificate is told for an hour before it is used', async () => {
    const due = start + 310 * day
    const told = await nextIdentity(first, 'east', due)
    expect(told.current).to.equal(first.current)
    expect(told.next).to.not.equal(undefined)
    expect(await nextIdentity(identityOf(secretData(told)), 'east', due + 3_500_000)).to.deep.equal(told)
    expect(await nextIdentity(told, 'east', due + 3_600_000)).to.deep.equal({ current: told.next })
  })

  it('is made anew where it has expired or cannot be read', async () => {
    const late = await nextIdentity(first, 'east', start + 366 * day)
    expect(late.current.certificate).to.not.equal(first.current.certificate)
    expect(identityOf({ 'tls.crt': 'eA==', 'tls.key': 'eA==' })).to.deep.equal({})
  })
})
