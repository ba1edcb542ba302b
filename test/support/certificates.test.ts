import { X509Certificate } from 'node:crypto'
import { connect, createServer } from 'node:tls'
import { once } from 'node:events'
import { type AddressInfo } from 'node:net'
import { expect } from 'chai'
import { CertificateAuthority } from './certificates.ts'

describe('certificates for test clusters', () => {
  it('carry user and groups the way Kubernetes reads them', async () => {
    const ca = await CertificateAuthority.create('test-ca')
    const { certificate } = await ca.issue({ commonName: 'alice', organizations: ['team-a', 'team-b'] })
    const parsed = new X509Certificate(certificate)
    expect(parsed.subject.split('\n')).to.have.members(['O=team-a', 'O=team-b', 'CN=alice'])
    expect(parsed.verify(new X509Certificate(ca.certificate).publicKey)).to.equal(true)
    expect(parsed.keyUsage).to.deep.equal(['1.3.6.1.5.5.7.3.2'])
  })

  it('connect two sides over TLS, each trusting its own authority', async () => {
    const [servers, clients] = [await CertificateAuthority.create('s'), await CertificateAuthority.create('c')]
    const serving = await servers.issue({ commonName: 'server', hosts: ['127.0.0.1', 'web.shop.svc'] })
    const user = await clients.issue({ commonName: 'alice' })
    const server = createServer({
      cert: serving.certificate,
      key: serving.key,
      ca: clients.certificate,
      requestCert: true,
      rejectUnauthorized: true,
    })
    server.on('secureConnection', (socket) => socket.end(String(socket.getPeerCertificate().subject.CN)))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const client = connect({ port, host: '127.0.0.1', ca: servers.certificate, cert: user.certificate, key: user.key })
    const [greeting] = (await once(client, 'data')) as [Buffer]
    expect(greeting.toString()).to.equal('alice')
    client.destroy()
    server.close()
  })
})
