import 'reflect-metadata'
import * as x509 from '@peculiar/x509'
import { createPrivateKey, webcrypto, X509Certificate } from 'node:crypto'
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

  it('may be issued by an authority that kubeadm has made, with an RSA key in PKCS 1', async () => {
    const signingAlgorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
    const rsa = { ...signingAlgorithm, modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) }
    const keys = await webcrypto.subtle.generateKey(rsa, true, ['sign', 'verify'])
    const name = [{ CN: ['kubernetes'] }]
    const root = await x509.X509CertificateGenerator.createSelfSigned({ name, keys, signingAlgorithm })
    const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey))
    const parsed = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    const key = parsed.export({ format: 'pem', type: 'pkcs1' }).toString()
    const ca = await CertificateAuthority.of({ certificate: root.toString('pem'), key })
    const alice = new X509Certificate((await ca.issue({ commonName: 'alice' })).certificate)
    expect(alice.verify(new X509Certificate(ca.certificate).publicKey)).to.equal(true)
    expect(alice.checkIssued(new X509Certificate(ca.certificate))).to.equal(true)
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
