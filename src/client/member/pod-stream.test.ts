import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { expect } from 'chai'
import { WebSocketServer, type WebSocket } from 'ws'
import { PodStream } from './pod-stream.ts'

const port = Buffer.from([0x90, 0x1f])
const data = (bytes: Uint8Array): Buffer => Buffer.concat([Buffer.of(0), bytes])

describe('a byte stream to a port of a pod', () => {
  let server: WebSocketServer
  let handle: (socket: WebSocket) => void

  before(async () => {
    server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
    server.on('connection', (socket) => {
      for (const channel of [0, 1]) socket.send(Buffer.concat([Buffer.of(channel), port]))
      handle(socket)
    })
    await once(server, 'listening')
  })
  after(() => {
    for (const client of server.clients) client.terminate()
    server.close()
  })

  async function open(): Promise<PodStream> {
    const headers = {
      ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
      'sec-websocket-key': Buffer.alloc(16, 1).toString('base64'),
    }
    const sent = request({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, headers }).end()
    const [, socket, head] = (await once(sent, 'upgrade')) as [IncomingMessage, IncomingMessage['socket'], Buffer]
    return new PodStream(socket, head)
  }

  it('carries bytes both ways, whatever their number', async () => {
    handle = (socket) =>
      socket.on('message', (message: Buffer) => {
        socket.send(message)
        if (message.includes('end of it')) socket.close()
      })
    const stream = await open()
    const sent = Buffer.concat([Buffer.alloc(1_000_000, 'abc'), Buffer.from('end of it')])
    stream.write(sent)
    expect((await buffer(stream)).equals(sent)).to.equal(true)
  })
  it('reads messages in fragments, and answers pings between them', async () => {
    let ponged = false
    handle = (socket) => {
      socket.on('pong', () => {
        ponged = true
        socket.send('ld', { fin: true })
        socket.close()
      })
      socket.send(data(Buffer.from('hello wor')), { binary: true, fin: false })
      socket.ping()
    }
    expect((await buffer(await open())).toString()).to.equal('hello world')
    expect(ponged).to.equal(true)
  })
  it('fails where the member tells of an error, without repeating it', async () => {
    handle = (socket) => socket.send(Buffer.concat([Buffer.of(1), Buffer.from('secret text')]))
    const stream = await open()
    const [error] = (await once(stream.resume(), 'error').catch((thrown: unknown) => [thrown])) as [Error]
    expect(error.message).to.equal('the member could not connect to the port of the pod')
  })
  it('refuses frames without end', async () => {
    handle = (socket) => socket.send(data(Buffer.alloc(2_000_000)))
    const stream = await open()
    const [error] = (await once(stream.resume(), 'error').catch((thrown: unknown) => [thrown])) as [Error]
    expect(error.message).to.equal('the member sent a frame that is too long')
  })
})
