import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { expect } from 'chai'
import { sleep } from '#async/index.ts'
import { createClient } from './create-client.ts'
import { httpTransport } from './http-transport.ts'
import type { Transport, TransportResponse } from './transport.ts'

const never = new AbortController().signal

async function textOf(response: TransportResponse): Promise<string> {
  const parts: Uint8Array[] = []
  for await (const part of response.body) parts.push(part)
  return Buffer.concat(parts).toString()
}

describe('the HTTP transport', () => {
  let server: Server
  let transport: Transport
  let handle: (request: IncomingMessage, response: ServerResponse) => void
  const sockets = new Set<Socket>()
  let connections = 0

  beforeEach(async () => {
    connections = 0
    server = createServer((request, response) => handle(request, response))
    server.on('connection', (socket) => {
      connections++
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    transport = httpTransport({ server: `http://127.0.0.1:${(server.address() as AddressInfo).port}/base`, token: 't' })
  })
  afterEach(async () => {
    await transport[Symbol.asyncDispose]()
    server.closeAllConnections()
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  const get = (path = '/x', signal = never): Promise<TransportResponse> =>
    transport.request({ method: 'GET', path, signal })

  it('sends requests below the path of the server, with the token', async () => {
    handle = ({ url, headers }, response) => response.end(`${url ?? ''} ${headers.authorization ?? ''}`)
    expect(await textOf(await get('/api?limit=1'))).to.equal('/base/api?limit=1 Bearer t')
  })
  it('reuses one connection for consecutive requests', async () => {
    handle = (_, response) => response.end('ok')
    for (let i = 0; i < 20; i++) await textOf(await get())
    expect(connections).to.equal(1)
  })
  it('answers requests while hundreds of watches are open', async () => {
    handle = ({ url }, response) => {
      if (url?.includes('watch')) response.write('{}\n')
      else response.end('ok')
    }
    const watches = new AbortController()
    const open = await Promise.all(Array.from({ length: 300 }, () => get('/watch', watches.signal)))
    expect(await textOf(await get())).to.equal('ok')
    watches.abort(new Error('enough'))
    for (const response of open.slice(0, 3)) {
      const error = await textOf(response).catch((error: unknown) => error)
      expect(error).to.include({ message: 'enough' })
    }
  })
  it('rejects with signal.reason, before and during an answer', async () => {
    handle = () => undefined
    const controller = new AbortController()
    const waiting = get('/slow', controller.signal).catch((error: unknown) => error)
    const reason = new Error('changed my mind')
    controller.abort(reason)
    expect(await waiting).to.equal(reason)
    expect(await get('/x', controller.signal).catch((error: unknown) => error)).to.equal(reason)
  })
  it('rejects with ServiceUnavailable if nobody listens', async () => {
    await using nobody = httpTransport({ server: 'http://127.0.0.1:1' })
    const error = await nobody.request({ method: 'GET', path: '/x', signal: never }).catch((error: unknown) => error)
    expect(error).to.include({ code: 503, reason: 'ServiceUnavailable' })
    expect((error as Error).message).to.contain('could not GET "/x" at "127.0.0.1:1"')
  })
  it('rejects with ServiceUnavailable if no answer comes in time', async () => {
    handle = () => undefined
    const { port } = server.address() as AddressInfo
    await using hasty = httpTransport({ server: `http://127.0.0.1:${port}` }, { responseTimeoutMs: 20 })
    const error = await hasty.request({ method: 'GET', path: '/x', signal: never }).catch((error: unknown) => error)
    expect(error).to.include({ code: 503 })
  })
  it('rejects when an answer breaks off', async () => {
    handle = (_, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('half', () => response.destroy())
    }
    const error = await textOf(await get()).catch((error: unknown) => error)
    expect(error).to.include({ code: 503 })
  })
  for (const { method, outcome } of [
    { method: 'GET', outcome: 'ok' },
    { method: 'POST', outcome: 'ServiceUnavailable' },
  ]) {
    it(`on a connection the server just closed, ${method} ends with ${outcome}`, async () => {
      const seen = new Set<Socket>()
      handle = ({ socket }, response) => {
        // As a server whose idle limit ends in this very moment.
        if (seen.has(socket)) socket.destroy()
        else response.end('ok')
        seen.add(socket)
      }
      await textOf(await get())
      const asked = transport.request({ method, path: '/x', signal: never, ...(method === 'POST' && { body: '{}' }) })
      const result = await asked.then(textOf, (error: unknown) => (error as { reason: string }).reason)
      expect(result).to.equal(outcome)
    })
  }
  describe('over a connection that died without notice', () => {
    const silentAt = { method: 'GET', path: '/silent', signal: never, maxSilenceMs: 50 }
    beforeEach(() => {
      handle = ({ url = '' }, response) => {
        if (url.includes('silent')) response.write('{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n')
        else response.end('ok')
      }
    })

    it('stops reading after the stall limit', async () => {
      const error = await textOf(await transport.request(silentAt)).catch((error: unknown) => error)
      expect(error).to.include({ code: 503 })
      expect((error as Error).message).to.contain('nothing came for 50 ms')
    })
    it('discards the other idle connections too', async () => {
      await Promise.all([get().then(textOf), get().then(textOf), get().then(textOf)])
      await textOf(await transport.request(silentAt)).catch(() => undefined)
      const before = connections
      expect(await textOf(await get())).to.equal('ok')
      expect(connections).to.equal(before + 1)
    })
    it('does not end an answer that is read slowly', async () => {
      const rest = Promise.withResolvers<undefined>()
      handle = (_, response) => {
        response.write('one')
        void rest.promise.then(() => response.end('two'))
      }
      const reading = (await transport.request(silentAt)).body[Symbol.asyncIterator]()
      expect(String((await reading.next()).value)).to.equal('one')
      rest.resolve(undefined)
      // Four times as long as the server may be silent: all of it is the reader's.
      await sleep(200, never)
      expect(String((await reading.next()).value)).to.equal('two')
      expect((await reading.next()).done).to.equal(true)
    })
    it('ends a watch as if the server had ended it', async () => {
      const seen: string[] = []
      const client = createClient(transport, { maxSilenceMs: 50 })
      const gvr = { group: '', version: 'v1', resource: 'silents' }
      for await (const { object } of client.watch(gvr, { signal: never })) seen.push(object.metadata.name ?? '')
      expect(seen).to.deep.equal(['a'])
    })
    it('waits for the TLS handshake no longer than for the connection', async () => {
      const mute = createTcpServer((socket) => sockets.add(socket)).listen(0, '127.0.0.1')
      await once(mute, 'listening')
      try {
        const { port } = mute.address() as AddressInfo
        await using waiting = httpTransport({ server: `https://127.0.0.1:${port}` }, { connectTimeoutMs: 50 })
        const error = await waiting
          .request({ method: 'GET', path: '/x', signal: never })
          .catch((error: unknown) => error)
        expect(error).to.include({ code: 503 })
        expect((error as Error).message).to.contain('no connection in time')
      } finally {
        mute.close()
      }
    })
  })

  describe('with credentials that are renewed while it runs', () => {
    let give: () => Promise<string>
    let renewing: Transport
    const tokenSeen = async (): Promise<string> =>
      await renewing.request({ method: 'GET', path: '/x', signal: never }).then(
        async (response) => `${response.status} ${await textOf(response)}`,
        (error: unknown) => (error as Error).message,
      )
    beforeEach(() => {
      const { port } = server.address() as AddressInfo
      const endpoint = async () => ({ server: `http://127.0.0.1:${port}`, token: await give() })
      renewing = httpTransport({ refreshAfterMs: 0, endpoint })
    })
    afterEach(() => renewing[Symbol.asyncDispose]())

    it('keeps the old ones while new ones cannot be read, until the server refuses them', async () => {
      let taken = 'Bearer one'
      handle = ({ headers: { authorization = '' } }, response) => {
        response.statusCode = authorization === taken ? 200 : 401
        response.end(authorization)
      }
      give = () => Promise.resolve('one')
      expect(await tokenSeen()).to.equal('200 Bearer one')
      give = () => Promise.reject(new Error('the file is half written'))
      expect(await tokenSeen()).to.equal('200 Bearer one')
      taken = 'Bearer two'
      expect(await tokenSeen()).to.equal('401 Bearer one')
      expect(await tokenSeen()).to.equal('the file is half written')
      give = () => Promise.resolve('two')
      expect(await tokenSeen()).to.equal('200 Bearer two')
    })
    it('does not delay a request beyond its own signal while they are read', async () => {
      give = () => new Promise(() => undefined)
      const reason = new Error('stopped')
      const life = new AbortController()
      const asked = renewing
        .request({ method: 'GET', path: '/x', signal: life.signal })
        .catch((error: unknown) => error)
      life.abort(reason)
      expect(await asked).to.equal(reason)
    })
  })
  it('does not repeat a request on a reused connection if the answer broke off', async () => {
    const asked: string[] = []
    handle = ({ url = '' }, response) => {
      asked.push(url)
      if (asked.length !== 2) response.end('ok')
      else response.write('half', () => response.socket?.resetAndDestroy())
    }
    await textOf(await get('/first'))
    expect(await textOf(await get('/half')).catch((error: unknown) => error)).to.include({ code: 503 })
    await textOf(await get('/last'))
    expect(asked).to.deep.equal(['/base/first', '/base/half', '/base/last'])
  })
  it('bounds the body that a client reads', async () => {
    handle = (_, response) => response.end(JSON.stringify({ text: 'x'.repeat(1000) }))
    const client = createClient(transport, { maxBytes: 500 })
    const error = await client.raw('/x', { signal: never }).catch((error: unknown) => error)
    expect(error).to.include({ reason: 'RequestEntityTooLarge' })
  })

  const upgrade = (signal = never): ReturnType<Transport['upgrade']> =>
    transport.upgrade({
      method: 'POST',
      path: '/exec',
      rawHeaders: ['Connection', 'Upgrade', 'Upgrade', 'SPDY/3.1'],
      signal,
    })

  it('passes the bytes of an upgrade in both directions until each one ends', async () => {
    server.on('upgrade', (request, socket) => {
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Path: ${request.url ?? ''}\r\n\r\nearly`,
      )
      socket.on('data', (bytes: Buffer) => void socket.write(`<${bytes.toString()}>`))
      socket.on('end', () => void socket.end('bye'))
    })
    const answer = await upgrade()
    if (!('upgraded' in answer)) throw new Error('refused')
    const { socket, head, headers } = answer.upgraded
    expect(headers).to.include('/base/exec')
    let text = Buffer.from(head).toString()
    socket.on('data', (bytes: Buffer) => (text += bytes.toString()))
    socket.end('hello')
    await once(socket, 'end')
    expect(text).to.equal('early<hello>bye')
  })
  it('sends no body with an upgrade by POST: the new protocol would read it as its own bytes', async () => {
    let sent: Record<string, unknown> = {}
    server.on('upgrade', ({ headers }, socket) => {
      sent = headers
      socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n')
    })
    const answer = await upgrade()
    if ('upgraded' in answer) answer.upgraded.socket.destroy()
    expect(sent).to.have.property('content-length', '0')
    expect(sent).to.not.have.property('transfer-encoding')
  })
  it('returns the ordinary answer if an upgrade is refused', async () => {
    server.on('upgrade', (_, socket) => socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno'))
    const answer = await upgrade()
    if (!('refused' in answer)) throw new Error('upgraded')
    expect(answer.refused.status).to.equal(403)
    expect(await textOf(answer.refused)).to.equal('no')
  })
  it('ends an upgraded connection with its signal', async () => {
    server.on('upgrade', (_, socket) => {
      socket.on('error', () => undefined)
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n')
    })
    const controller = new AbortController()
    const answer = await upgrade(controller.signal)
    if (!('upgraded' in answer)) throw new Error('refused')
    const { socket } = answer.upgraded
    socket.on('error', () => undefined)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    controller.abort(new Error('enough'))
    await closed
  })
})
