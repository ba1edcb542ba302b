// The module of outbound calls against real servers on this machine: TLS, slow and endless bodies, redirects, a name
// server that changes its answer.
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import { connect, type AddressInfo } from 'node:net'
import { expect } from 'chai'
import { createEgress, EgressError, type Egress, type EgressCall, type Tunnel } from '#network/egress/index.ts'
import { CertificateAuthority } from '#test/support/certificates.ts'

const { signal } = new AbortController()

describe('an outbound call', () => {
  let authority: CertificateAuthority
  let server: Server
  let port: number
  let handle: (request: IncomingMessage, response: ServerResponse) => void
  let connections = 0
  let egress: Egress

  before(async () => {
    authority = await CertificateAuthority.create('test')
    const { certificate: cert, key } = await authority.issue({
      commonName: 'hook',
      hosts: ['127.0.0.1', 'hook.example.com', 'hook.shop.svc'],
    })
    server = createServer({ cert, key }, (request, response) => handle(request, response))
    server.on('secureConnection', () => connections++)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  })
  beforeEach(() => {
    connections = 0
    egress = createEgress({ allow: ['127.0.0.0/8'], bounds: { perDestination: 2, perCluster: 4, waiting: 3 } })
  })
  afterEach(async () => {
    await egress[Symbol.asyncDispose]()
    server.closeAllConnections()
  })
  after(() => void server.close())

  const call = (more: Partial<EgressCall> = {}): EgressCall => ({
    cluster: 'a',
    url: new URL(`https://127.0.0.1:${port}/x?timeout=1s`),
    method: 'POST',
    body: Buffer.from('hello'),
    caBundle: authority.certificate,
    timeoutMs: 5000,
    signal,
    ...more,
  })
  const failure = async (made: EgressCall, by = egress): Promise<string> => {
    try {
      const { status } = await by.call(made)
      return `answered with ${status}`
    } catch (error) {
      return (error as Error).message
    }
  }

  it('sends the body and reads the answer, over one connection for one call after the other', async () => {
    handle = (request, response) => void request.pipe(response.writeHead(201, { 'x-path': request.url ?? '' }))
    for (let i = 0; i < 5; i++) {
      const { status, headers, body } = await egress.call(call())
      expect([status, headers['x-path'], body.toString()]).to.deep.equal([201, '/x?timeout=1s', 'hello'])
    }
    expect(connections).to.equal(1)
  })
  it('is denied to loopback unless that is allowed', async () => {
    await using strict = createEgress()
    handle = (_, response) => response.end()
    for (const host of ['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '0x7f.1', '2130706433'])
      expect(await failure(call({ url: new URL(`https://${host}:${port}/`) }), strict)).to.contain('a loopback address')
    expect(connections).to.equal(0)
  })
  it('is denied to an endpoint address that is denied', async () => {
    const url = new URL('https://hook.shop.svc:443/')
    const dial = { address: '169.254.169.254', port: 443 }
    expect(await failure(call({ url, dial }))).to.equal(
      'dialing hook.shop.svc is not permitted: it is a metadata address',
    )
  })
  it('connects to an endpoint address with TLS for the name of the Service', async () => {
    handle = (request, response) => response.end(request.headers.host)
    const url = new URL('https://hook.shop.svc:443/')
    const { body } = await egress.call(call({ url, dial: { address: '127.0.0.1', port } }))
    expect(body.toString()).to.equal('hook.shop.svc')
  })
  it('verifies the certificate: by the bundle, and for the name', async () => {
    handle = (_, response) => response.end()
    const other = await CertificateAuthority.create('other')
    expect(await failure(call({ caBundle: other.certificate }))).to.equal(
      'tls: failed to verify certificate: x509: certificate signed by unknown authority',
    )
    const url = new URL(`https://other.example.com/`)
    expect(await failure(call({ url, dial: { address: '127.0.0.1', port } }))).to.contain(
      'certificate is not valid for other.example.com',
    )
  })
  it('does not follow a redirect', async () => {
    const asked: string[] = []
    handle = (request, response) => {
      asked.push(request.url ?? '')
      response.writeHead(307, { location: 'https://169.254.169.254/latest' }).end()
    }
    const { status } = await egress.call(call())
    expect(status).to.equal(307)
    expect(asked).to.deep.equal(['/x?timeout=1s'])
  })
  it('ends at its timeout when nothing is answered, and when the body drips', async () => {
    handle = () => undefined
    expect(await failure(call({ timeoutMs: 200 }))).to.equal('context deadline exceeded')
    handle = (_, response) => {
      response.writeHead(200)
      const timer = setInterval(() => response.write('.'), 20)
      response.on('close', () => clearInterval(timer))
    }
    expect(await failure(call({ timeoutMs: 300 }))).to.equal('context deadline exceeded')
  })
  it('cuts off an endless body', async () => {
    handle = (_, response) => {
      const fill = (): void => {
        while (response.write(Buffer.alloc(64 * 1024)));
      }
      response.on('drain', fill)
      fill()
    }
    expect(await failure(call({ maxResponseBytes: 1024 * 1024 }))).to.equal('the answer is longer than 1048576 bytes')
  })
  it('refuses an upgrade and a broken answer', async () => {
    handle = (request) =>
      request.socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n')
    expect(await failure(call())).to.equal('net/http: the server switched protocols')
    handle = (request) => request.socket.end('what?\r\n\r\n')
    expect(await failure(call())).to.equal('net/http: malformed HTTP response')
  })
  it('says that nobody listens', async () => {
    const url = new URL('https://127.0.0.1:1/')
    expect(await failure(call({ url }))).to.equal('dial tcp 127.0.0.1:1: connect: connection refused')
  })
  it('waits for a hanging destination alone: neither others nor other logical clusters wait', async () => {
    handle = (request, response) => {
      if (request.url === '/ok') response.end('ok')
    }
    const hang = { timeoutMs: 3000 }
    const stuck = [1, 2, 3, 4, 5].map(() => failure(call(hang)))
    expect(await failure(call(hang))).to.equal('too many calls of this logical cluster wait for their answers')
    const url = new URL('https://hook.example.com/ok')
    const dial = { address: '127.0.0.1', port }
    expect(await failure(call({ url, dial, timeoutMs: 2500 }))).to.equal('answered with 200')
    expect(await failure(call({ url, dial, cluster: 'b', timeoutMs: 2500 }))).to.equal('answered with 200')
    expect(new Set(await Promise.all(stuck))).to.deep.equal(new Set(['context deadline exceeded']))
  })
  it('takes the places of ended calls', async () => {
    handle = (_, response) => setTimeout(() => response.end('ok'), 20)
    const all = await Promise.all([1, 2, 3, 4, 5].map(() => failure(call())))
    expect(all).to.deep.equal(new Array<string>(5).fill('answered with 200'))
  })
  it('ends where memory is short, if its logical cluster holds the most of unfinished answers', async () => {
    handle = (request, response) => response.write(Buffer.alloc(request.url === '/large' ? 6_000_000 : 5_000_000))
    await using one = createEgress({ allow: ['127.0.0.0/8'] })
    const ask = (cluster: string, path: string) =>
      failure(call({ cluster, url: new URL(`https://127.0.0.1:${port}${path}`), timeoutMs: 20_000 }), one)
    const ended: string[] = []
    const small = ask('small', '/small').then((why) => ended.push(`small: ${why}`))
    const large = ask('large', '/large').then((why) => ended.push(`large: ${why}`))
    let shed = one.shed()
    // Until both answers are there as far as they were sent, the other one may hold more.
    for (const end = performance.now() + 10_000; shed === undefined && performance.now() < end; shed = one.shed())
      await new Promise((resolve) => setTimeout(resolve, 200))
    expect(shed?.bytes).to.be.greaterThan(4 * 1024 * 1024)
    await Promise.race([small, large])
    expect(ended).to.deep.equal([`${shed?.cluster}: the answers of this logical cluster take too much memory`])
  })
  it('reads only the oldest answer further if all of a logical cluster hold too much, and all of them in the end', async () => {
    const mib = 1024 * 1024
    handle = (_, response) => response.end(Buffer.alloc(3 * mib))
    const bounds = { perDestination: 20, perCluster: 20, responseBytesPerCluster: 4 * mib }
    await using one = createEgress({ allow: ['127.0.0.0/8'], bounds })
    let [reading, most, read] = [0, 0, 0]
    const counted = (): Promise<string> =>
      failure(
        call({
          timeoutMs: 30_000,
          async reading() {
            most = Math.max(most, ++reading)
            await new Promise((resolve) => setTimeout(resolve, 5))
            reading--
            read++
          },
        }),
        one,
      )
    const all = await Promise.all(Array.from({ length: 15 }, counted))
    expect(all).to.deep.equal(new Array<string>(15).fill('answered with 200'))
    expect([most, read]).to.deep.equal([1, 15])
  })
  it('ends if the server sends interim answers without an end', async () => {
    handle = (_, response) => {
      const { socket } = response
      const send = (): void => {
        if (socket?.destroyed === false)
          socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100), () => setImmediate(send))
      }
      send()
    }
    expect(await failure(call())).to.equal('net/http: too many 1xx informational responses')
  })
  it('ends with the signal of its caller', async () => {
    handle = () => undefined
    const gone = new AbortController()
    const ended = failure(call({ signal: gone.signal }))
    gone.abort(new Error('the client has gone'))
    expect(await ended).to.equal('the client has gone')
  })

  describe('by name', () => {
    let names: UdpSocket
    let answers: string[]
    let asked = 0

    before(async () => {
      names = createSocket('udp4')
      names.on('message', (query, peer) =>
        names.send(
          answerTo(query, () => answers[asked++]),
          peer.port,
          peer.address,
        ),
      )
      names.bind(0, '127.0.0.1')
      await once(names, 'listening')
    })
    beforeEach(() => {
      asked = 0
    })
    after(() => void names.close())
    const byName = (): Egress =>
      createEgress({ allow: ['127.0.0.1/32'], nameServers: [`127.0.0.1:${names.address().port}`] })

    it('connects to the address that it has judged, though the name server changes its answer', async () => {
      handle = (_, response) => response.end()
      answers = ['127.0.0.1', '127.0.0.2', '127.0.0.2', '127.0.0.2']
      await using one = byName()
      expect(await failure(call({ url: new URL(`https://hook.example.com:${port}/`) }), one)).to.equal(
        'answered with 200',
      )
      expect(asked).to.equal(1)
      expect(await failure(call({ url: new URL(`https://hook.example.com:${port}/`) }), one)).to.equal(
        `dialing hook.example.com:${port} is not permitted: it is a loopback address`,
      )
    })
    it('says that a name has no address', async () => {
      answers = []
      await using one = byName()
      expect(await failure(call({ url: new URL('https://nobody.example.com/') }), one)).to.equal(
        'dial tcp: lookup nobody.example.com: no such host',
      )
    })
  })

  describe('through a tunnel', () => {
    const tunnel = (more: Partial<Tunnel> = {}): Tunnel => ({
      ...{ key: 'a/uid', port: 8443 },
      open: () => Promise.resolve(connect({ host: '127.0.0.1', port })),
      ...more,
    })
    const url = new URL('https://hook.shop.svc:443/x')

    it('speaks TLS with the name of the URL to whatever the tunnel leads to, and keeps the connection', async () => {
      handle = (request, response) => response.end(request.headers.host)
      const denied = createEgress()
      for (let i = 0; i < 3; i++) {
        const { body } = await denied.call(call({ url, tunnel: tunnel() }))
        expect(body.toString()).to.equal('hook.shop.svc')
      }
      expect(connections).to.equal(1)
      await denied[Symbol.asyncDispose]()
    })
    it('does not share connections between logical clusters', async () => {
      handle = (_request, response) => response.end()
      await egress.call(call({ url, tunnel: tunnel() }))
      await egress.call(call({ cluster: 'b', url, tunnel: tunnel({ key: 'b/uid' }) }))
      expect(connections).to.equal(2)
    })
    it('refuses a certificate of another name', async () => {
      handle = (_request, response) => response.end()
      const other = new URL('https://other.shop.svc:443/x')
      expect(await failure(call({ url: other, tunnel: tunnel() }))).to.equal(
        'tls: failed to verify certificate: x509: certificate is not valid for other.shop.svc',
      )
    })
    it('tells why it could not be opened', async () => {
      const refused = tunnel({ open: () => Promise.reject(new EgressError('dialing pod "a": gone')) })
      expect(await failure(call({ url, tunnel: refused }))).to.equal('dialing pod "a": gone')
    })
    it('gives up opening it in time', async () => {
      let aborted = false
      const open = (opening: AbortSignal): Promise<never> =>
        new Promise((_resolve, reject) =>
          opening.addEventListener('abort', () => {
            aborted = true
            reject(opening.reason as Error)
          }),
        )
      expect(await failure(call({ url, tunnel: tunnel({ open }), timeoutMs: 200 }))).to.equal(
        'context deadline exceeded',
      )
      expect(aborted).to.equal(true)
    })
  })
})

/** The answer to a DNS query: one A record, or none (NXDOMAIN). AAAA queries get an empty answer. */
function answerTo(query: Buffer, nextAddress: () => string | undefined): Buffer {
  const end = query.indexOf(0, 12) + 5
  const question = query.subarray(12, end)
  const isA = query.readUInt16BE(end - 4) === 1
  const address = isA ? nextAddress() : undefined
  const header = Buffer.alloc(12)
  query.copy(header, 0, 0, 2)
  header.writeUInt16BE(isA && address === undefined ? 0x8183 : 0x8180, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(address === undefined ? 0 : 1, 6)
  if (address === undefined) return Buffer.concat([header, question])
  const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)])
  return Buffer.concat([header, question, record])
}
