import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { CertificateAuthority, waitFor } from '#test/support/index.ts'
import { openHostileConnections } from './hostile-connections.ts'
import { expect } from 'chai'
import { systemClock } from '#async/index.ts'
import { createMetrics, silentLogger } from '#telemetry/index.ts'
import { AdoptedNamespaces } from '#gateway/adopted-namespaces.ts'
import { ConnectionLimits } from '#gateway/connection-limits.ts'
import { Connections } from '#gateway/connections.ts'
import { createGatewayMetrics } from '#gateway/gateway-metrics.ts'
import { parseIdentity, type Identity } from '#gateway/identity.ts'
import { PeerDialer } from '#gateway/peer-dialer.ts'
import { listenForPeers, type PeerServer } from '#gateway/peer-server.ts'
import { peerOf, Peers } from '#gateway/peers.ts'
import { PodAddresses, type TenantPod } from '#gateway/pod-addresses.ts'
import { ServiceEndpoints } from '#gateway/service-endpoints.ts'

const acme = 'acmeacme22'
const bob = 'bobbobbob2'
const target = { namespace: `${acme}-shop`, service: 'web', port: 'http' }

async function identityOf(name: string): Promise<Identity> {
  const { certificate, key } = await CertificateAuthority.create(name)
  const encode = (text: string): string => Buffer.from(text).toString('base64')
  return parseIdentity({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {},
    data: { 'tls.crt': encode(certificate), 'tls.key': encode(key) },
  })
}

interface Side {
  readonly connections: Connections
  readonly peers: Peers
  readonly endpoints: ServiceEndpoints
  readonly server: PeerServer
  readonly dialer: PeerDialer
  readonly pods: PodAddresses
  readonly identity: Identity
  readonly refused: string[]
}

/** A gateway without an API server: the test says what it knows. */
async function gateway(
  name: string,
  stack: AsyncDisposableStack,
  {
    maxPerCluster = 100,
    find = () => Promise.resolve(undefined),
    idleMs = 60_000,
  }: { maxPerCluster?: number; find?: (address: string) => Promise<TenantPod | undefined>; idleMs?: number } = {},
): Promise<Side> {
  const identity = await identityOf(name)
  const refused: string[] = []
  const metrics = {
    ...createGatewayMetrics(createMetrics()),
    refused: (direction: string, reason: string) => void refused.push(`${direction} ${reason}`),
  }
  const pods = new PodAddresses({ find })
  const endpoints = new ServiceEndpoints({
    clock: systemClock,
    random: Math.random,
    isOfPod: (address, pod) => pods.isOfPod(address, pod),
  })
  const dialer = new PeerDialer()
  dialer.use(identity.context)
  const peers = new Peers()
  const limits = new ConnectionLimits({ maxConnections: 1000, maxPerCluster })
  const connections = new Connections({
    limits,
    pods,
    peers,
    dialer,
    endpoints,
    namespaces: new AdoptedNamespaces(),
    metrics,
    log: silentLogger,
    idleMs,
  })
  const server = await listenForPeers({
    identity,
    port: 0,
    peerOf: (fingerprint) => peers.ofCertificate(fingerprint),
    onRequest: (leg, peer, wanted) => void connections.incoming(leg, peer, wanted),
    onRefused: (reason) => void refused.push(reason),
  })
  stack.defer(() => {
    server.close()
    connections.reset()
  })
  return { connections, peers, endpoints, server, dialer, pods, identity, refused }
}

function tell(side: Side, of: string, other: Side, clusters: string = acme): void {
  const peer = peerOf({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { annotations: { 'kcp.dev/member': of } },
    data: { address: `127.0.0.1:${other.server.port}`, certificates: other.identity.cert, clusters },
  })
  side.peers.set(of, peer)
}

describe('connections between two gateways', () => {
  let stack: AsyncDisposableStack
  let east: Side
  let west: Side
  let received: Socket[]
  /** Where pods of east reach the Service. */
  let port: number

  async function listen(onConnection: (socket: Socket) => void): Promise<number> {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, onConnection)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    stack.defer(() => void server.close())
    return (server.address() as AddressInfo).port
  }

  function serve(podPort: number): void {
    const ports = [{ name: 'http', port: podPort }]
    const endpoint = { address: '127.0.0.1', pod: '', isReady: true }
    west.endpoints.set('slice', undefined, {
      type: 'local',
      namespace: target.namespace,
      service: 'web',
      ports,
      endpoints: [endpoint],
    })
  }

  function dial(): Socket {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    stack.defer(() => void socket.destroy())
    socket.on('error', () => undefined)
    return socket
  }

  async function codeOf(socket: Socket): Promise<string> {
    const error = Promise.withResolvers<string>()
    socket.once('error', ({ code = '' }: NodeJS.ErrnoException) => error.resolve(code))
    socket.once('close', () => error.resolve('closed'))
    socket.resume()
    return await error.promise
  }

  beforeEach(async () => {
    stack = new AsyncDisposableStack()
    received = []
    east = await gateway('east', stack)
    west = await gateway('west', stack, { maxPerCluster: 2 })
    tell(east, 'west', west)
    tell(west, 'east', east)
    serve(
      await listen((socket) => {
        stack.defer(() => void socket.destroy())
        received.push(socket)
        socket.on('error', () => undefined)
        socket.pipe(socket)
      }),
    )
    port = await listen((client) => {
      client.on('error', () => undefined)
      void east.connections.outgoing(client, { member: 'west', clusterId: acme, target })
    })
  })
  afterEach(async () => await stack.disposeAsync())

  it('pass bytes, and reuse the TLS session', async () => {
    for (const word of ['one', 'two', 'three']) {
      const socket = dial()
      socket.end(word)
      expect(Buffer.concat((await socket.toArray()) as Buffer[]).toString()).to.equal(word)
    }
    expect([east.refused, west.refused]).to.deep.equal([[], []])
  })

  it('refuse another certificate at the address of a member, at once and after a good one', async () => {
    const stranger = await gateway('stranger', stack)
    const good = dial()
    good.end('x')
    expect(Buffer.concat((await good.toArray()) as Buffer[]).toString()).to.equal('x')
    tell(east, 'west', { ...west, identity: stranger.identity })
    const started = performance.now()
    expect(await codeOf(dial())).to.equal('ECONNRESET')
    expect(performance.now() - started).to.be.lessThan(2000)
    expect(east.refused).to.deep.equal(['outgoing peer-not-reached'])
    tell(east, 'west', west)
    tell(west, 'east', stranger)
    expect(await codeOf(dial())).to.equal('ECONNRESET')
    expect(west.refused.at(-1)).to.equal('unknown-peer')
  })

  it('say why a target is refused, and refuse what is no request', async () => {
    const lineOf = async (request: string): Promise<string> => {
      const { cert, key } = east.identity
      const tls = { cert, key, rejectUnauthorized: false, ALPNProtocols: ['kcp-gateway/1'] }
      const socket = connectTls({ host: '127.0.0.1', port: west.server.port, ...tls })
      let seen = ''
      socket.on('error', () => undefined).on('data', (chunk: Buffer) => (seen += chunk.toString()))
      const closed = new Promise((resolve) => socket.once('close', resolve))
      socket.write(request)
      await closed
      return seen
    }
    const foreign = JSON.stringify({ ...target, namespace: `${bob}-shop` })
    const unknown = JSON.stringify({ ...target, service: 'none' })
    expect(await lineOf(`${foreign}\n`)).to.equal('no forbidden\n')
    expect(await lineOf(`${unknown}\n`)).to.equal('no unreachable\n')
    expect(await lineOf('GET / HTTP/1.1\n')).to.equal('no malformed\n')
    expect(await lineOf('x'.repeat(1025))).to.equal('')
  })

  it('are bounded for each logical cluster on the side of the Service', async () => {
    const open = [dial(), dial()]
    for (const socket of open) {
      socket.write('x')
      await once(socket, 'data')
    }
    expect(await codeOf(dial())).to.equal('ECONNRESET')
    expect([east.refused, west.refused]).to.deep.equal([['outgoing peer-busy'], ['incoming busy', 'incoming busy']])
  })

  it('become resets when one side is reset', async () => {
    const socket = dial()
    socket.write('x')
    await once(socket, 'data')
    socket.resetAndDestroy()
    expect(await codeOf(received[0] as Socket)).to.equal('ECONNRESET')
  })

  it('are refused when no pod takes them', async () => {
    serve(1)
    expect(await codeOf(dial())).to.equal('ECONNRESET')
    expect(east.refused).to.deep.equal(['outgoing peer-unreachable'])
  })

  it('of pods of another logical cluster are closed, also where their address is known late', async () => {
    const early = dial()
    early.write('x')
    await once(early, 'data')
    const code = codeOf(early)
    east.pods.set(undefined, {
      pod: `${bob}-shop/late`,
      namespace: `${bob}-shop`,
      clusterId: bob,
      addresses: ['127.0.0.1'],
    })
    expect(await code).to.equal('ECONNRESET')
    expect(await codeOf(dial())).to.equal('ECONNRESET')
    expect(east.refused).to.deep.equal(['outgoing foreign-pod'])
  })

  /** Whether a pod of east reaches the Service in west. */
  async function passes(): Promise<boolean> {
    const socket = dial()
    socket.end('hello')
    const chunks = await socket.toArray().catch(() => [])
    return Buffer.concat(chunks as Buffer[]).toString() === 'hello'
  }

  it('pass while others hold more connections to the gateway than it waits for, from one address and from many', async function () {
    this.timeout(60_000)
    for (const localAddress of ['127.0.77.1', undefined]) {
      for (let i = 0; i < 800; i++) {
        const from = localAddress ?? `127.0.78.${1 + (i % 250)}`
        const socket = connect({ port: west.server.port, host: '127.0.0.1', localAddress: from })
        stack.defer(() => void socket.destroy())
        socket.on('error', () => undefined)
        await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve))
      }
      expect(await passes(), localAddress ?? 'many').to.equal(true)
      expect(west.server.pending).to.be.at.most(1000)
    }
  })

  it('pass while and after others open, hold, half close and reset connections in all orders', async function () {
    this.timeout(90_000)
    const before = process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length
    const attackEnds = new AbortController()
    const attack = { port: west.server.port, count: 3000, parallel: 40, isOver: () => attackEnds.signal.aborted }
    const attacked = openHostileConnections({ ...attack, seed: 20_261_126 })
    const responses: boolean[] = []
    void attacked.finally(() => attackEnds.abort())
    do responses.push(await passes())
    while (!attackEnds.signal.aborted)
    expect(responses.filter((isThere) => !isThere).length, `of ${responses.length}`).to.equal(0)
    const { open } = await attacked
    // Nothing of them stays: neither those that half closed, nor those that wait.
    await waitFor(() => open.size === 0 && west.server.pending === 0, {
      what: 'the gateway to end connections that ask for nothing',
      deadlineMs: 20_000,
    })
    const sockets = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length
    await waitFor(() => sockets() <= before, { what: 'the sockets to be closed', deadlineMs: 10_000 })
    expect(await passes()).to.equal(true)
  })
})
