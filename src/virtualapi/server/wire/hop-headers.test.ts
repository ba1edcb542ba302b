import { expect } from 'chai'
import type { DetailedPeerCertificate } from 'node:tls'
import { endToEndHeaders, hasHopHeader, hopClient, hopHeaders } from './hop-headers.ts'

const chainOf = (...raws: string[]): DetailedPeerCertificate =>
  raws.reduceRight<object>((issuerCertificate, raw) => ({ raw: Buffer.from(raw), issuerCertificate }), {}) as never

describe('the headers of a hop', () => {
  it('carry the address and the certificate chain of the client', () => {
    const headers = hopHeaders({ address: '::1', certificate: chainOf('leaf', 'intermediate') })
    const { address, certificate } = hopClient(['accept', '*/*', ...headers])
    expect(address).to.equal('::1')
    expect(certificate?.raw.toString()).to.equal('leaf')
    expect(certificate?.issuerCertificate.raw.toString()).to.equal('intermediate')
  })

  it('give one object for one certificate, because authentication remembers what it has verified by the object', () => {
    const headers = (): string[] => hopHeaders({ address: 'a', certificate: chainOf('leaf') })
    expect(hopClient(headers()).certificate).to.equal(hopClient(headers()).certificate)
  })

  it('end with a certificate that is its own issuer', () => {
    const own = { raw: Buffer.from('root') } as { raw: Buffer; issuerCertificate?: object }
    own.issuerCertificate = own
    const { certificate } = hopClient(hopHeaders({ address: undefined, certificate: own as never }))
    expect(certificate?.raw.toString()).to.equal('root')
    expect(certificate?.issuerCertificate.raw).to.equal(undefined)
  })

  it('say that there is no certificate and no address', () => {
    for (const headers of [hopHeaders({ address: undefined, certificate: undefined }), []])
      expect(hopClient(headers)).to.deep.equal({ address: undefined, certificate: undefined })
  })

  for (const { headers, found } of [
    { headers: ['x-kcp-hop-address', ''], found: true },
    { headers: ['Accept', '*/*', 'X-KCP-Hop-Certificates', 'a'], found: true },
    { headers: ['x-kcp-hopeful', 'x'], found: false },
    { headers: ['accept', 'x-kcp-hop-address'], found: false },
  ])
    it(`are ${found ? '' : 'not '}found among ${headers.join(' ')}`, () => {
      expect(hasHopHeader(headers)).to.equal(found)
    })

  it('leave out what belongs to a connection, and keep all others as they came, repeated ones too', () => {
    const kept = ['x-remote-group', 'dev, ops', 'x-remote-group', 'b', 'authorization', 'Bearer x']
    const dropped = [
      'Connection',
      'Upgrade',
      'TE',
      'trailers',
      'Host',
      'h',
      ':path',
      '/',
      'Transfer-Encoding',
      'chunked',
    ]
    expect(endToEndHeaders([...dropped, ...kept])).to.deep.equal(kept)
  })
})
