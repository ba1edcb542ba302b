import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { expect } from 'chai'
import { pipeSockets } from './pipe-sockets.ts'

interface Pair {
  readonly near: Socket
  readonly far: Socket
}

describe('two sockets joined', () => {
  const servers: Server[] = []
  const pair = async (): Promise<Pair> => {
    const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
    servers.push(server)
    await once(server, 'listening')
    const far = connect({ port: (server.address() as { port: number }).port, host: '127.0.0.1', allowHalfOpen: true })
    const [near] = (await once(server, 'connection')) as [Socket]
    return { near, far }
  }
  const read = async (socket: Socket): Promise<string> => {
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    return text
  }
  let client: Pair
  let pod: Pair
  let life: AbortController
  let done: Promise<void>
  beforeEach(async () => {
    client = await pair()
    pod = await pair()
    life = new AbortController()
    done = pipeSockets(client.near, pod.near, { signal: life.signal, lingerMs: 50 })
  })
  afterEach(() => {
    for (const { near, far } of [client, pod]) {
      near.destroy()
      far.destroy()
    }
    for (const server of servers.splice(0)) server.close()
  })

  it('carry bytes both ways, and all of them before an end', async () => {
    const megabyte = 'x'.repeat(1 << 20)
    client.far.write('hello')
    pod.far.end(megabyte)
    const [sent, got] = await Promise.all([read(pod.far), read(client.far), done])
    expect([sent, got.length]).to.deep.equal(['hello', megabyte.length])
  })
  it('free what was sent, which the garbage collector would collect the whole heap for', async () => {
    const chunks: Buffer[] = []
    pod.near.on('data', (chunk: Buffer) => chunks.push(chunk))
    pod.far.end('x'.repeat(1 << 20))
    const [got] = await Promise.all([read(client.far), done])
    expect(got).to.have.length(1 << 20)
    expect(chunks.map(({ buffer }) => buffer.byteLength)).to.deep.equal(chunks.map(() => 0))
  })
  it('read no more from a side than the other one takes', async () => {
    const all = 64 << 20
    const sent = Buffer.alloc(1 << 20)
    const sending = (async () => {
      for (let bytes = 0; bytes < all; bytes += sent.length) if (!pod.far.write(sent)) await once(pod.far, 'drain')
      pod.far.end()
    })()
    let before = -1
    const isStalled = (): boolean => {
      const { bytesRead } = pod.near
      const isSame = bytesRead === before
      before = bytesRead
      return isSame && pod.near.isPaused()
    }
    while (!isStalled()) await delay(100)
    expect(pod.near.bytesRead).to.be.lessThan(all / 2)
    expect(client.near.writableLength).to.be.lessThan(1 << 20)
    let got = 0
    for await (const chunk of client.far as AsyncIterable<Buffer>) got += chunk.length
    await Promise.all([sending, done])
    expect(got).to.equal(all)
  })
  it("deliver a pod's last bytes even if a write to it fails with a reset", async () => {
    client.far.write('hello')
    await once(pod.far, 'data')
    pod.far.write('exit code 0')
    pod.far.resetAndDestroy()
    pod.near.write('under way')
    pod.near.write('and more')
    const [got] = await Promise.all([read(client.far), done])
    expect(got).to.equal('exit code 0')
  })
  it('close when the client closes, though the pod goes on', async () => {
    const writing = setInterval(() => pod.far.write('more'), 5)
    pod.far.on('error', () => undefined)
    client.far.destroy()
    await done
    clearInterval(writing)
    expect([client.near.destroyed, pod.near.destroyed]).to.deep.equal([true, true])
  })
  it('close when the pod closes, though the client stays and nobody reads what it sends', async () => {
    client.far.write('unread')
    pod.far.resume()
    pod.far.end()
    await done
    expect([client.near.destroyed, pod.near.destroyed]).to.deep.equal([true, true])
  })
  it('close at once with the signal', async () => {
    life.abort(new Error('the server stops'))
    await done
    expect([client.near.destroyed, pod.near.destroyed]).to.deep.equal([true, true])
  })
  it('close if one was closed before', async () => {
    const [other, third] = [await pair(), await pair()]
    other.near.destroy()
    await once(other.near, 'close')
    await pipeSockets(other.near, third.near, { signal: life.signal, lingerMs: 50 })
    expect(third.near.destroyed).to.equal(true)
    third.far.destroy()
    other.far.destroy()
  })
})
