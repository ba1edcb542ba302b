// An installation that asks an agent for more than the API of its cluster: the agent refuses all else.
import { expect } from 'chai'
import { once } from 'node:events'
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2'
import { createServer as createHttpsServer, type Server } from 'node:https'
import { createServer, type AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import { Forwarder, keepTunnel } from '#agent/index.ts'
import { duplexOf } from '#network/tunnel/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { CertificateAuthority } from '#test/support/index.ts'

describe('an installation that asks its agent for more than the API', function () {
  this.timeout(30_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  let session: ClientHttp2Session
  /** Number of connections to a program beside the agent, which is not the API. */
  let reached = 0
  let beside: number
  const asked: { url: string; authorization: string | undefined }[] = []

  before(async () => {
    stack.defer(() => life.abort())
    const authority = await CertificateAuthority.create('test')
    const pair = await authority.issue({ commonName: 'localhost', hosts: ['127.0.0.1', 'localhost'] })
    const listening = async (server: Server | ReturnType<typeof createServer>): Promise<number> => {
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      stack.defer(() => void server.close())
      return (server.address() as AddressInfo).port
    }
    beside = await listening(
      createServer((socket) => {
        reached++
        socket.destroy()
      }),
    )
    const tls = { cert: pair.certificate, key: pair.key }
    const api = await listening(
      createHttpsServer(tls, ({ url = '', headers }, response) => {
        asked.push({ url, authorization: headers.authorization })
        response.end('{}')
      }),
    )
    const installation = createHttpsServer({ ...tls, requestCert: true, rejectUnauthorized: false })
    const sockets = new WebSocketServer({ server: installation })
    const opened = Promise.withResolvers<ClientHttp2Session>()
    sockets.on('connection', (webSocket, { url }) => {
      if (url?.endsWith('session=control') !== true) return
      const found = connectHttp2('http://agent', { createConnection: () => duplexOf(webSocket) })
      found.on('error', () => undefined)
      opened.resolve(found)
    })
    const url = `https://127.0.0.1:${await listening(installation)}`
    const endpoint = { server: `https://127.0.0.1:${api}`, ca: authority.certificate, token: 'own' }
    const forwarder = stack.use(
      new Forwarder({ api: { endpoint: () => Promise.resolve(endpoint) }, log: silentLogger }),
    )
    void keepTunnel({
      installation: { url, ca: authority.certificate },
      member: 'paris',
      client: () => pair,
      forwarder,
      log: silentLogger,
      signal: life.signal,
    })
    session = await opened.promise
  })
  after(() => stack.disposeAsync())

  const statusOf = async (headers: Record<string, string>): Promise<number> => {
    const stream = session.request(headers)
    stream.on('error', () => undefined)
    const [answer] = (await once(stream, 'response')) as [{ ':status'?: number }]
    stream.destroy()
    return answer[':status'] ?? 0
  }

  it('reaches no address, no host and no port through it', async () => {
    for (const authority of [`127.0.0.1:${beside}`, 'localhost:22', 'kubernetes.default.svc:443', 'api:443', 'API', ''])
      expect(await statusOf({ ':method': 'CONNECT', ':authority': authority || 'x' }), authority).to.equal(403)
    expect(await statusOf({ ':method': 'GET', ':path': '/', ':authority': `127.0.0.1:${beside}` })).to.equal(403)
    expect(reached).to.equal(0)
  })

  it('reaches the API only, whatever address its requests name', async () => {
    const stream = session.request({ ':method': 'CONNECT', ':authority': 'api' }, { endStream: false })
    const answer = once(stream, 'data')
    const target = `http://127.0.0.1:${beside}/api/v1/namespaces`
    stream.write(`GET ${target} HTTP/1.1\r\nhost: 127.0.0.1:${beside}\r\nauthorization: Bearer forged\r\n\r\n`)
    await answer
    stream.destroy()
    expect(reached).to.equal(0)
    expect(asked.map(({ authorization }) => authorization)).to.deep.equal(['Bearer own'])
  })
})
