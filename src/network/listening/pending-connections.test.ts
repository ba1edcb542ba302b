import { expect } from 'chai'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { networkOf, type PendingBounds, PendingConnections } from './pending-connections.ts'

describe('pending connections', () => {
  let server: Server
  let pending: PendingConnections
  let opened: Socket[]

  async function listen(bounds: Partial<PendingBounds>): Promise<void> {
    pending = new PendingConnections({ maxMs: 60_000, maxPerNetwork: 10, max: 10, ...bounds })
    server = createServer((socket) => pending.add(socket)).listen(0, '127.0.0.1')
    await once(server, 'listening')
  }

  /** `from`: the last number of its address. */
  async function open(from: number): Promise<Socket> {
    const { port } = server.address() as AddressInfo
    const socket = connect({ host: '127.0.0.1', port, localAddress: `127.0.0.${from}` })
    socket.on('error', () => undefined)
    opened.push(socket)
    await Promise.all([once(socket, 'connect'), once(server, 'connection')])
    return socket.resume()
  }

  /** A reset is an error, too. */
  const closed = (socket: Socket): Promise<unknown> =>
    socket.closed ? Promise.resolve() : new Promise((resolve) => socket.once('close', resolve))

  const endOf = ({ localAddress = '', localPort = 0 }: Socket) => ({
    remoteAddress: localAddress,
    remotePort: localPort,
  })

  beforeEach(() => (opened = []))
  afterEach(async () => {
    for (const socket of opened) socket.destroy()
    while (pending.size > 0) await new Promise(setImmediate)
    pending[Symbol.dispose]()
    server.close()
  })

  it('of one network give way to its next one, the oldest first, until they ask something', async () => {
    await listen({ maxPerNetwork: 2 })
    const [asked, oldest, second] = [await open(2), await open(2), await open(3)]
    pending.settle(endOf(asked))
    await open(2)
    expect(pending.size).to.equal(3)
    await Promise.all([closed(oldest), open(2)])
    expect([pending.size, asked.closed, second.closed]).to.deep.equal([3, false, false])
  })

  it('of all networks give way at the network with the most', async () => {
    await listen({ max: 4 })
    const [one, oldest] = [await open(2), await open(3)]
    await open(3)
    await open(3)
    await Promise.all([closed(oldest), open(4)])
    expect([pending.size, one.closed]).to.deep.equal([4, false])
  })

  it('of a trusted network have a room of their own', async () => {
    await listen({ max: 2, maxTrusted: 3 })
    pending.trust('127.0.0.9')
    const trusted = [await open(9), await open(9), await open(9)]
    for (let from = 2; from < 8; from++) await open(from)
    expect(pending.size).to.equal(5)
    expect(trusted.some(({ closed }) => closed)).to.equal(false)
    await Promise.all([closed(trusted[0] as Socket), open(9)])
    expect(pending.size).to.equal(5)
  })

  it('are reset after their time, counted from what they asked last', async () => {
    await listen({ maxMs: 400 })
    const [silent, renewed] = [await open(2), await open(2)]
    const timer = setInterval(() => pending.renew(endOf(renewed)), 50)
    await closed(silent)
    expect(renewed.closed).to.equal(false)
    clearInterval(timer)
    await closed(renewed)
    expect(pending.size).to.equal(0)
  })
})

describe('networkOf', () => {
  for (const [address, network] of [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '::ffff:192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:0DB8:1::', '2001:db8:1:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['', ''],
  ] as const)
    it(`of "${address}" is "${network}"`, () => expect(networkOf(address)).to.equal(network))
})
