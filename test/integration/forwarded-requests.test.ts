import { once } from 'node:events'
import { connect, performServerHandshake, type ClientHttp2Session } from 'node:http2'
import { createServer, type AddressInfo } from 'node:net'
import { duplexPair } from 'node:stream'
import { text } from 'node:stream/consumers'
import { createServer as createTlsServer, type Server, type TLSSocket } from 'node:tls'
import { expect } from 'chai'
import { Forwarder } from '#agent/index.ts'
import { httpTransport, type Transport } from '#client/index.ts'
import { asSocket, sessionSettings } from '#network/tunnel/index.ts'
import { silentLogger, type Logger } from '#telemetry/index.ts'
import { CertificateAuthority } from '#test/support/certificates.ts'

const body = JSON.stringify({ kind: 'ConfigMap', data: { key: 'x'.repeat(500) } })
const { length } = body
/** The answers of the member's API to `/NAME`, each written at once. */
const answers: Readonly<Record<string, string>> = {
  length: `HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n\r\n${body}`,
  chunks: `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  end: `HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n${body}`,
  interim: `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n\r\n${body}`,
}

describe('the requests that an agent forwards', () => {
  const stack = new AsyncDisposableStack()
  const { signal } = new AbortController()
  let api: Server
  let ca: CertificateAuthority

  before(async () => {
    ca = await CertificateAuthority.create('member')
    const { certificate: cert, key } = await ca.issue({ commonName: 'api', hosts: ['127.0.0.1'] })
    api = createTlsServer({ cert, key }, (socket) => {
      socket.on('error', () => undefined)
      socket.on('data', (request: Buffer) => {
        const name = /^GET \/(\w+) /.exec(request.toString('latin1'))?.[1] ?? ''
        socket.write(answers[name] ?? '')
        if (name === 'end') socket.end()
      })
    })
    stack.defer(() => void api.close())
    api.listen(0, '127.0.0.1')
    await once(api, 'listening')
  })
  after(() => stack.disposeAsync())

  /** The installation's way to an API through the agent. */
  function through(port: number, log: Logger = silentLogger): Transport {
    const endpoint = { server: `https://127.0.0.1:${port}`, ca: ca.certificate }
    const forwarder = stack.use(new Forwarder({ api: { endpoint: async () => endpoint }, log }))
    const [ours, agents] = duplexPair()
    performServerHandshake(agents, sessionSettings).on('stream', (stream) => {
      stream.respond({ ':status': 200 })
      forwarder.serve(asSocket(stream))
    })
    const session: ClientHttp2Session = connect('http://agent', { createConnection: () => ours, ...sessionSettings })
    stack.defer(() => session.destroy())
    const dial = async () =>
      asSocket(session.request({ ':method': 'CONNECT', ':authority': 'api' }, { endStream: false }))
    return stack.use(httpTransport({ server: 'http://member', dial }))
  }

  it('arrive with their answers, whatever ends these', async () => {
    const transport = through((api.address() as AddressInfo).port)
    for (const round of [1, 2])
      for (const name of Object.keys(answers)) {
        const answer = await transport.request({ method: 'GET', path: `/${name}`, signal })
        expect([answer.status, await text(answer.body)], `${name}, round ${round}`).to.deep.equal([200, body])
      }
  })
  it('are no failure of the agent when the installation does not wait for their answers', async () => {
    const warnings: unknown[] = []
    const log: Logger = { ...silentLogger, warn: (message, keys) => void warnings.push([message, keys]) }
    const transport = through((api.address() as AddressInfo).port, log)
    const life = new AbortController()
    const asked = once(api, 'secureConnection')
    const answer = transport.request({ method: 'GET', path: '/silent', signal: life.signal })
    const [socket] = (await asked) as [TLSSocket]
    const closed = new Promise((resolve) => socket.once('close', resolve))
    life.abort(new Error('given up'))
    expect(String(await answer.catch((error: unknown) => error))).to.contain('given up')
    await closed
    expect(warnings).to.deep.equal([])
  })
  it('are answered with the reason when the API of the member cannot be reached', async () => {
    const closed = createServer().listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const { port } = closed.address() as AddressInfo
    await new Promise((resolve) => closed.close(resolve))
    const answer = await through(port).request({ method: 'GET', path: '/version', signal })
    const status = JSON.parse(await text(answer.body)) as { message: string }
    expect([answer.status, status.message]).to.deep.equal([
      503,
      `the agent could not reach the API of its cluster: connect ECONNREFUSED 127.0.0.1:${port}`,
    ])
  })
})
