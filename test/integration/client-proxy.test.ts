// Requests to a cluster whose kubeconfig names an HTTP proxy.
import { expect } from 'chai'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { httpTransport, type Transport } from '#client/index.ts'
import { CertificateAuthority } from '#test/support/index.ts'

const { signal } = new AbortController()
const portOf = (server: Server | TlsServer): number => (server.address() as AddressInfo).port

describe('the HTTP transport through a proxy', () => {
  let ca: string
  let server: TlsServer
  let proxy: Server
  let transport: Transport
  /** What the proxy was asked for. */
  let asked: { target: string; authorization: string | undefined }[]
  let answer: number
  const sockets = new Set<Socket>()

  before(async () => {
    const authority = await CertificateAuthority.create('behind-the-proxy')
    ca = authority.certificate
    const serving = { commonName: 'server', hosts: ['kubernetes.default.svc'] }
    const { certificate: cert, key } = await authority.issue(serving)
    server = createTlsServer({ cert, key }, (request, response) => response.end(`answer to ${request.url ?? ''}`))
    server.on('upgrade', (_, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: test\r\n\r\nhello')
      socket.end()
    })
    proxy = createServer((_, response) => response.writeHead(400).end())
    proxy.on('connect', ({ url = '', headers }, socket: Socket) => {
      asked.push({ target: url, authorization: headers['proxy-authorization'] })
      sockets.add(socket)
      socket.on('error', () => undefined)
      if (answer !== 200) {
        socket.end(`HTTP/1.1 ${answer} No\r\n\r\n`)
        return
      }
      const through = connect(portOf(server), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
        socket.pipe(through).pipe(socket)
      })
      through.on('error', () => socket.destroy())
    })
    for (const one of [server, proxy]) {
      one.listen(0, '127.0.0.1')
      await once(one, 'listening')
    }
  })
  after(() => {
    server.close()
    proxy.close()
  })
  beforeEach(() => {
    asked = []
    answer = 200
    const proxyUrl = `http://user:pass%20word@127.0.0.1:${portOf(proxy)}`
    // The name is resolved by the proxy, if at all.
    transport = httpTransport({ server: 'https://kubernetes.default.svc:7443', ca, proxyUrl })
  })
  afterEach(async () => {
    await transport[Symbol.asyncDispose]()
    for (const socket of sockets) socket.destroy()
    sockets.clear()
    server.closeAllConnections()
  })

  async function get(path: string): Promise<string> {
    const response = await transport.request({ method: 'GET', path, signal })
    const parts: Uint8Array[] = []
    for await (const part of response.body) parts.push(part)
    return Buffer.concat(parts).toString()
  }

  it('asks it for one connection, verifies the server behind it, and uses the connection again', async () => {
    expect(await get('/a')).to.equal('answer to /a')
    expect(await get('/b')).to.equal('answer to /b')
    const authorization = `Basic ${Buffer.from('user:pass word').toString('base64')}`
    expect(asked).to.deep.equal([{ target: 'kubernetes.default.svc:7443', authorization }])
  })

  it('does not take another server than the one that it was told', async () => {
    const proxyUrl = `http://127.0.0.1:${portOf(proxy)}`
    await using other = httpTransport({ server: 'https://other.example:7443', ca, proxyUrl })
    const failure = await other.request({ method: 'GET', path: '/', signal }).catch((error: unknown) => String(error))
    expect(failure).to.contain('other.example')
  })

  it('upgrades a connection', async () => {
    const result = await transport.upgrade({
      method: 'GET',
      path: '/exec',
      rawHeaders: ['connection', 'Upgrade', 'upgrade', 'test'],
      signal,
    })
    if (!('upgraded' in result)) throw new Error('not upgraded')
    const { socket, head } = result.upgraded
    const chunks = [head]
    for await (const chunk of socket) chunks.push(chunk as Buffer)
    expect(Buffer.concat(chunks).toString()).to.equal('hello')
    expect(asked).to.have.length(1)
  })

  it('says what the proxy answered where it refuses', async () => {
    answer = 407
    const failure = await get('/a').catch((error: unknown) => String(error))
    expect(failure).to.contain('refused the connection to kubernetes.default.svc:7443: 407')
  })
})
