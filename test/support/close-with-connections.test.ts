import { expect } from 'chai'
import { once } from 'node:events'
import { createServer } from 'node:https'
import { connect, type AddressInfo } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { CertificateAuthority } from './certificates.ts'
import { closeWithConnections } from './close-with-connections.ts'

describe('closeWithConnections', () => {
  it('ends connections that have asked nothing, and those in their TLS handshake', async () => {
    const authority = await CertificateAuthority.create('authority')
    const { certificate: cert, key } = await authority.issue({ commonName: 'server', hosts: ['127.0.0.1'] })
    const server = createServer({ cert, key })
    const close = closeWithConnections(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const silent = connect(port, '127.0.0.1')
    const spare = connectTls({ port, host: '127.0.0.1', ca: authority.certificate })
    await Promise.all([once(silent, 'connect'), once(spare, 'secureConnect')])
    const ended = Promise.all(
      [silent, spare].map((socket) => once(socket.on('error', () => undefined).resume(), 'close')),
    )
    await close()
    await ended
    expect(server.listening).to.equal(false)
  })
})
