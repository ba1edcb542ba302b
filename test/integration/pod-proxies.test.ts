// Proxies of pods and Services, without a member: one exchange over a connection, and what is refused.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect, type AddressInfo, type Server, type Socket } from 'node:net'
import { buffer, text } from 'node:stream/consumers'
import { expect } from 'chai'
import { proxiedHeaders, proxyOver, type ProxiedRequest } from '#virtualapi/endpoints/forwarded/proxy-exchange.ts'
import { CertificateAuthority } from '#test/support/certificates.ts'
import { startServedApi, type Reply, type ServedApi, type ServedTenant } from './served-api.ts'

describe('an exchange with a pod', () => {
  let plain: Server
  let secure: Server
  let handle: (request: IncomingMessage, response: ServerResponse) => void
  const sockets = new Set<Socket>()

  before(async () => {
    const authority = await CertificateAuthority.create('nobody trusts it')
    const { certificate: cert, key } = await authority.issue({ commonName: 'pod', hosts: ['pod'] })
    const listener = (request: IncomingMessage, response: ServerResponse): void => handle(request, response)
    const http = createServer(listener)
    http.on('upgrade', (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n')
      socket.pipe(socket)
    })
    plain = http
    secure = createTlsServer({ cert, key }, listener)
    for (const server of [plain, secure]) {
      server.on('connection', (socket: Socket) => {
        sockets.add(socket)
        socket.on('close', () => sockets.delete(socket))
      })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
    }
  })
  after(() => {
    for (const socket of sockets) socket.destroy()
    plain.close()
    secure.close()
  })

  const to = (server: Server): Socket => connect((server.address() as AddressInfo).port, '127.0.0.1')
  const asked = (more: Partial<ProxiedRequest> = {}): ProxiedRequest => ({
    ...{ method: 'GET', path: '/a?b=c', headers: {}, body: Buffer.alloc(0), signal: new AbortController().signal },
    ...more,
  })
  async function answered(server: Server, request: ProxiedRequest, scheme: 'http' | 'https' = 'http') {
    const result = await proxyOver(to(server), { ...request, scheme })
    if (!('answered' in result)) throw new Error('it was upgraded')
    return result.answered
  }

  it('passes method, path and body on, and closes the connection after the answer', async () => {
    handle = (request, response) => {
      void text(request).then((body) => response.end(`${request.method} ${request.url} ${body}`))
    }
    const { status, body } = await answered(plain, asked({ method: 'POST', body: Buffer.from('hello') }))
    expect(status).to.equal(200)
    expect((await buffer(body)).toString()).to.equal('POST /a?b=c hello')
    while (sockets.size > 0) await once([...sockets][0] as Socket, 'close')
  })
  it('speaks TLS to a pod whose certificate nobody knows', async () => {
    handle = (_request, response) => response.end('secure')
    const { body } = await answered(secure, asked(), 'https')
    expect((await buffer(body)).toString()).to.equal('secure')
  })
  it('streams the answer', async () => {
    let more: () => void = () => undefined
    handle = (_request, response) => {
      response.write('first')
      more = () => response.end('second')
    }
    const { body } = await answered(plain, asked())
    const chunks = body[Symbol.asyncIterator]()
    expect(String((await chunks.next()).value)).to.equal('first')
    more()
    expect(String((await chunks.next()).value)).to.equal('second')
    expect((await chunks.next()).done).to.equal(true)
  })
  it('ends with its signal', async () => {
    handle = () => undefined
    const life = new AbortController()
    const waiting = answered(plain, asked({ signal: life.signal }))
    life.abort(new Error('the client went away'))
    const error = await waiting.then(
      () => undefined,
      (thrown: unknown) => thrown as Error,
    )
    expect(error?.message).to.equal('the client went away')
  })
  it('passes an upgrade on', async () => {
    const headers = proxiedHeaders(['Connection', 'Upgrade', 'Upgrade', 'echo'], { upgrade: true })
    const result = await proxyOver(to(plain), { ...asked({ headers }), scheme: 'http' })
    if (!('upgraded' in result)) throw new Error('it was not upgraded')
    const { socket } = result.upgraded
    socket.write('ping')
    const [echo] = (await once(socket, 'data')) as [Buffer]
    expect(echo.toString()).to.equal('ping')
    socket.destroy()
  })
  it('shows the pod no credentials and nothing of the connection', () => {
    const headers = {
      ...{ Host: 'kcp', Authorization: 'Bearer s3cr3t', Connection: 'keep-alive', 'Impersonate-User': 'a' },
      ...{ 'X-Remote-User': 'b', 'X-Custom': 'c', Cookie: 'd', TE: 'trailers', 'Accept-Encoding': 'gzip' },
      'Sec-WebSocket-Protocol': 'chat, base64url.bearer.authorization.k8s.io.dG9rZW4',
    }
    expect(proxiedHeaders(Object.entries(headers).flat(), { upgrade: false })).to.deep.equal({
      ...{ host: 'kcp', 'x-custom': 'c', cookie: 'd', 'sec-websocket-protocol': 'chat' },
    })
  })
})

describe('a proxy of a logical cluster without members', () => {
  let served: ServedApi
  let acme: ServedTenant
  const services = '/api/v1/namespaces/default/services'
  const pods = '/api/v1/namespaces/default/pods'

  before(async () => {
    served = await startServedApi()
    acme = await served.tenant('acme')
    const service = { metadata: { name: 'web' }, spec: { ports: [{ name: 'http', port: 80 }] } }
    expect((await send('POST', services, service)).status).to.equal(201)
    const slice = {
      metadata: { name: 'web', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.0.0.1'], targetRef: { kind: 'Pod', name: 'web', namespace: 'default' } }],
      ports: [{ name: 'http', port: 8080 }],
    }
    const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
    expect((await send('POST', slices, slice)).status).to.equal(201)
    const pod = { metadata: { name: 'web' }, spec: { containers: [{ name: 'web', image: 'web' }] } }
    expect((await send('POST', pods, pod)).status).to.equal(201)
  })
  after(() => served[Symbol.asyncDispose]())

  const send = (method: string, path: string, body?: unknown): Promise<Reply> =>
    acme.request(method, acme.base + path, body === undefined ? {} : { body })

  for (const { title, path, code, message } of [
    // Endpoints that the tenant wrote lead nowhere: only a member's own are dialled.
    {
      ...{ title: "a Service whose endpoints are the tenant's own", path: `${services}/web/proxy/` },
      ...{ code: 503, message: 'no endpoints available for service "web"' },
    },
    {
      ...{ title: 'a port that the Service does not have', path: `${services}/web:81/proxy/` },
      ...{ code: 503, message: 'no service port 81 found for service "web"' },
    },
    {
      ...{ title: 'a Service that does not exist', path: `${services}/none/proxy/` },
      ...{ code: 404, message: 'services "none" not found' },
    },
    {
      ...{ title: 'a name with an unknown scheme', path: `${services}/ftp:web:80/proxy/` },
      ...{ code: 400, message: 'invalid service request "ftp:web:80"' },
    },
    {
      ...{ title: 'a pod that is in no member', path: `${pods}/web/proxy/` },
      ...{ code: 400, message: 'address not allowed' },
    },
    {
      ...{ title: 'a pod that does not exist', path: `${pods}/none/proxy/` },
      ...{ code: 404, message: 'pods "none" not found' },
    },
  ])
    it(`refuses ${title}`, async () => {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
        const body = ['GET', 'DELETE'].includes(method) ? undefined : {}
        const { status, text: answer, headers } = await send(method, path, body)
        expect(status, method).to.equal(code)
        expect(headers, method).to.not.have.property('retry-after')
        expect(JSON.parse(answer)).to.include({ message })
      }
    })
  it('never reaches nodes', async () => {
    expect((await send('GET', '/api/v1/nodes/a/proxy/metrics')).status).to.equal(403)
  })
  it('needs the right to it', async () => {
    const eve = await served.user(acme, 'eve')
    for (const path of [`${services}/web/proxy/`, `${pods}/web/proxy/`])
      expect((await eve.request('GET', eve.base + path)).status).to.equal(403)
  })
  it('looks for the pod before it leads a path without its slash to the one with it', async () => {
    const { status, text } = await send('GET', `${services}/web/proxy?a=b`)
    expect(status).to.equal(503)
    expect(JSON.parse(text)).to.include({ message: 'no endpoints available for service "web"' })
  })
})
