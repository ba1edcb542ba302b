import { once } from 'node:events'
import { Agent, createServer, request, type IncomingMessage, type Server } from 'node:http'
import { createSecureServer, type Http2SecureServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { createCertificateAuthority, signCertificate } from '#virtualapi/auth/authn/index.ts'
import { forward } from './forward.ts'
import { PeerConnections, peerServerName } from './peer-connections.ts'
import { rawRequest } from './serve.ts'

const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) }
/** More than all buffers on the way take. */
const large = Buffer.alloc(5_000_000, 'x')

describe('a request that is passed on', function () {
  this.timeout(20_000)
  let owner: Http2SecureServer
  let peers: PeerConnections
  let front: Server
  const waiting = new Set<ServerHttp2Stream>()
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })

  before(async () => {
    const authority = await createCertificateAuthority({ commonName: 'replicas', ...validity })
    const pair = await signCertificate(authority, {
      ...{ subject: { commonName: 'owner' }, usage: 'server', dnsNames: [peerServerName('owner')] },
      ...validity,
    })
    owner = createSecureServer({ cert: pair.certificate, key: pair.key })
    // As our own server answers 413: at once, and reads what still comes.
    owner.on('stream', (stream, { ':path': path }) => {
      waiting.add(stream)
      if (path !== '/') return
      stream.respond({ ':status': 413 })
      stream.end('too large')
      stream.resume()
    })
    owner.listen(0, '127.0.0.1')
    await once(owner, 'listening')
    const to = { name: 'owner', address: `127.0.0.1:${(owner.address() as AddressInfo).port}` }
    peers = new PeerConnections(() => ({ ca: authority.certificate, certificate: pair.certificate, key: pair.key }))
    const client = { address: '127.0.0.1', certificate: undefined }
    front = createServer((incoming, response) => {
      void forward({ request: rawRequest(incoming), response, client, to, stopping: undefined }, peers)
    }).listen(0, '127.0.0.1')
    await once(front, 'listening')
  })
  after(() => {
    agent.destroy()
    front.close()
    peers[Symbol.dispose]()
    owner.close()
  })

  it('leaves the connection free for the next one when it is answered before its body was read', async () => {
    const { port } = front.address() as AddressInfo
    const localPorts = new Set<number | undefined>()
    for (let n = 0; n < 20; n++) {
      const headers = { 'content-length': large.length }
      const asked = request({ port, host: '127.0.0.1', method: 'POST', path: '/', agent, headers })
      const sent = once(asked, 'finish')
      const answered = once(asked, 'response')
      asked.end(large)
      const [answer] = (await answered) as [IncomingMessage]
      expect(answer.statusCode).to.equal(413)
      answer.resume()
      await sent
      localPorts.add(asked.socket?.localPort)
    }
    expect(localPorts.size).to.equal(1)
  })
  it('is answered by a process that stops, if that does not take too long', async () => {
    for (const { answers, expected } of [
      { answers: true, expected: 201 },
      { answers: false, expected: 504 },
    ]) {
      waiting.clear()
      const { port } = front.address() as AddressInfo
      const asked = request({ port, host: '127.0.0.1', method: 'POST', path: '/later' }).end()
      const answered = once(asked, 'response')
      await once(owner, 'stream')
      peers.retain(() => false)
      for (const stream of waiting) {
        if (!answers) continue
        stream.respond({ ':status': 201 })
        stream.end()
      }
      const [answer] = (await answered) as [IncomingMessage]
      expect(answer.statusCode).to.equal(expected)
      answer.resume()
    }
  })
})
