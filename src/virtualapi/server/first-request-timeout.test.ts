import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { expect } from 'chai'
import { FirstRequestTimeout } from './first-request-timeout.ts'

describe('connections without a request', () => {
  it('are closed above the limit of their peer, until one asks something', async () => {
    using timeout = new FirstRequestTimeout({ maxMs: 60_000, maxPerPeer: 2 })
    const server = createServer((socket) => timeout.add(socket)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const open = async () => {
      const socket = connect({ host: '127.0.0.1', port })
      await Promise.all([once(socket, 'connect'), once(server, 'connection')])
      return socket
    }
    const [first, second] = [await open(), await open()]
    await once((await open()).resume(), 'close')
    expect(timeout.size).to.equal(2)
    timeout.asked({ remoteAddress: '127.0.0.1', remotePort: first.localPort })
    const third = await open()
    expect(timeout.size).to.equal(2)
    for (const socket of [first, second, third]) socket.destroy()
    server.close()
    while (timeout.size > 0) await new Promise(setImmediate)
  })
})
