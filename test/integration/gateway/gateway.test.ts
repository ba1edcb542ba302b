import { once } from 'node:events'
import { connect as connectTls } from 'node:tls'
import { expect } from 'chai'
import type { GatewayIdentity } from '#syncer/gateway/gateway-identity.ts'
import { freePort, waitFor, type ManagedProcess } from '#test/support/index.ts'
import {
  acme,
  addNamespace,
  addPod,
  addRemoteSlice,
  responseOn,
  ask,
  bob,
  dial,
  digestOf,
  echo,
  forgetPeer,
  giveIdentity,
  listenAsPod,
  metric,
  newIdentity,
  playMember,
  readAll,
  readyz,
  removePod,
  removeRemoteSlice,
  setLocalSlice,
  someBytes,
  startGatewayOf,
  tellOfNamespaces,
  tellOfPeer,
  untilAnswer,
  type PlayedMember,
} from './played-members.ts'

const mebibyte = 1024 * 1024
/** --max-connections-per-logical-cluster of the gateway of west. */
const maxPerCluster = 6
const addresses = { acme: '127.0.12.1', bob: '127.0.12.2', late: '127.0.12.3', adopted: '127.0.12.4' }

describe('gateways of two members', function () {
  this.timeout(60_000)
  const stack = new AsyncDisposableStack()
  let east: PlayedMember
  let west: PlayedMember
  let eastIdentity: GatewayIdentity
  let westIdentity: GatewayIdentity
  let eastGateway: ManagedProcess

  /** A Service of west with one pod; resolves with the port in east. */
  async function offer(service: string, onConnection = echo, clusterId: string = acme): Promise<number> {
    const podPort = await listenAsPod(west.address, onConnection, stack)
    await setLocalSlice(west, { clusterId, service, port: podPort }, { hasPod: true })
    const port = await freePort('0.0.0.0')
    await addRemoteSlice(east, west, { clusterId, service, port })
    return port
  }

  /** Replaces what east knows of west. */
  const eastKnowsWest = (certificates: readonly string[]): Promise<void> =>
    tellOfPeer(east, west, { certificates, clusters: [acme] })

  before(async function () {
    this.timeout(300_000)
    east = await playMember('east', stack)
    west = await playMember('west', stack)
    eastIdentity = await newIdentity('east')
    westIdentity = await newIdentity('west')
    await giveIdentity(east, eastIdentity)
    await giveIdentity(west, westIdentity)
    await eastKnowsWest([westIdentity.current.certificate])
    await tellOfPeer(west, east, { certificates: [eastIdentity.current.certificate], clusters: [acme] })
    await addPod(east, { clusterId: acme, name: 'client', address: addresses.acme })
    await addPod(east, { clusterId: bob, name: 'client', address: addresses.bob })
    stack.use(await startGatewayOf(west, ['--max-connections-per-logical-cluster', String(maxPerCluster)]))
    eastGateway = stack.use(await startGatewayOf(east))
  })
  after(async () => await stack.disposeAsync())

  it('pass a mebibyte each way, and the end of each direction by itself', async () => {
    const [sent, answered] = [someBytes(mebibyte), someBytes(mebibyte)]
    const got = Promise.withResolvers<string>()
    const port = await offer('bulk', (socket) => {
      void readAll(socket).then((bytes) => {
        if (bytes.length === 0) return void socket.destroy()
        got.resolve(digestOf(bytes))
        socket.end(answered)
      }, got.reject)
    })
    await waitFor(() => ended(port), { what: 'the Service', deadlineMs: 15_000 })
    const client = dial(port, addresses.acme)
    client.end(sent)
    expect(digestOf(await readAll(client))).to.equal(digestOf(answered))
    expect(await got.promise).to.equal(digestOf(sent))
    expect(await metric(east, 'kcp_gateway_bytes_total{direction="outgoing",from="client"}')).to.be.at.least(mebibyte)
  })

  it('pass on what a client sends after the Service has ended its direction', async () => {
    const got: string[] = []
    const port = await offer('listener', (socket) => {
      socket.end('bye')
      void readAll(socket).then((bytes) => got.push(bytes.toString()))
    })
    await waitFor(() => ended(port), { what: 'the Service', deadlineMs: 15_000 })
    const client = dial(port)
    expect((await readAll(client)).toString()).to.equal('bye')
    client.end('still here')
    await waitFor(() => got.includes('still here'), { what: 'the words of the client', deadlineMs: 5000 })
  })

  it('pass on the reset of a Service', async () => {
    const port = await offer('reset', (socket) => {
      socket.once('data', () => socket.resetAndDestroy())
    })
    await untilAnswer(port, 'ECONNRESET')
  })

  it('reach adopted namespaces by their usual names, and know their pods, while the syncers say so', async () => {
    const [usual, there] = [`${acme}-blog`, 'blog']
    for (const name of [usual, 'press', 'theirs']) await addNamespace(east, name)
    await addNamespace(west, there)
    const slice = { clusterId: acme, service: 'adopted', usual }
    const podPort = await listenAsPod(west.address, echo, stack)
    await setLocalSlice(west, { ...slice, namespace: there, port: podPort }, { hasPod: true })
    const port = await freePort('0.0.0.0')
    await addRemoteSlice(east, west, { ...slice, namespace: usual, port })
    await untilAnswer(port, 'ECONNRESET')
    await tellOfNamespaces(west, { [there]: usual, 'kcp-system': 'default' })
    await untilAnswer(port, 'hello')

    // In the member of the client, too, the namespace may have another name; and it may be of another logical cluster.
    await addPod(east, { clusterId: bob, namespace: 'press', name: 'client', address: addresses.adopted })
    const own = await freePort('0.0.0.0')
    await addRemoteSlice(east, west, { ...slice, service: 'own', namespace: 'theirs', port: own })
    await setLocalSlice(west, { ...slice, service: 'own', namespace: there, port: podPort }, { hasPod: true })
    expect(await ask(port, addresses.adopted)).to.equal('hello')
    expect(await ask(own)).to.equal('ECONNREFUSED')
    await tellOfNamespaces(east, { press: `${bob}-press`, theirs: `${acme}-other` })
    await waitFor(async () => (await ask(port, addresses.adopted)) === 'ECONNRESET', {
      what: 'the pod to be known as one of another logical cluster',
      deadlineMs: 15_000,
    })
    expect(await ask(own), 'a slice that leads into another namespace').to.equal('ECONNREFUSED')
    await tellOfNamespaces(east, { press: `${bob}-press`, theirs: usual })
    await untilAnswer(own, 'hello')

    await tellOfNamespaces(east, {})
    await untilAnswer(own, 'ECONNREFUSED')
    await tellOfNamespaces(west, {})
    await untilAnswer(port, 'ECONNRESET')
  })

  it('refuse a certificate that is not pinned, on either side', async () => {
    const stranger = await newIdentity('east')
    const socket = connectTls({
      host: '127.0.0.1',
      port: west.gatewayPort,
      cert: stranger.current.certificate,
      key: stranger.current.key,
      rejectUnauthorized: false,
      ALPNProtocols: ['kcp-gateway/1'],
    })
    let response = ''
    socket.on('error', () => undefined).on('data', (chunk: Buffer) => (response += chunk.toString()))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(`{"namespace":"${acme}-shop","service":"pinned","port":"http"}\n`)
    await closed
    expect(response).to.equal('')

    const port = await offer('pinned')
    await untilAnswer(port, 'hello')
    await eastKnowsWest([stranger.current.certificate])
    await untilAnswer(port, 'ECONNRESET')
    await eastKnowsWest([stranger.current.certificate, westIdentity.current.certificate])
    await untilAnswer(port, 'hello')
  })

  it('refuse a logical cluster that has no business in the other member', async () => {
    const port = await offer('secret', echo, bob)
    await untilAnswer(port, 'ECONNRESET')
    const refused = await metric(west, 'kcp_gateway_refusals_total{direction="incoming",reason="forbidden"}')
    expect(refused).to.be.greaterThan(0)
    await tellOfPeer(west, east, { certificates: [eastIdentity.current.certificate], clusters: [acme, bob] })
    await untilAnswer(port, 'hello')
  })

  it('refuse pods of another logical cluster', async () => {
    const port = await offer('own')
    await untilAnswer(port, 'hello', addresses.acme)
    expect(await ask(port, addresses.bob)).to.equal('ECONNRESET')
    const early = dial(port, addresses.late)
    expect(await responseOn(early, 'hello')).to.equal('hello')
    const closed = new Promise((resolve) => early.once('close', resolve))
    await addPod(east, { clusterId: bob, name: 'late', address: addresses.late })
    await closed
    expect(await ask(port, addresses.late)).to.equal('ECONNRESET')
  })

  it('use the last pod of a Service until it is deleted', async () => {
    const service = { clusterId: acme, service: 'last' }
    const podPort = await listenAsPod(west.address, echo, stack)
    await addPod(west, { clusterId: acme, name: 'last', address: west.address })
    await setLocalSlice(west, { ...service, port: podPort }, { hasPod: true })
    const port = await freePort('0.0.0.0')
    await addRemoteSlice(east, west, { ...service, port })
    await untilAnswer(port, 'hello')
    await setLocalSlice(west, { ...service, port: podPort }, { hasPod: false })
    const until = performance.now() + 1000
    while (performance.now() < until) expect(await ask(port)).to.equal('hello')
    await removePod(west, { clusterId: acme, name: 'last' })
    await untilAnswer(port, 'ECONNRESET')
  })

  it('use a new identity for new connections, and end none', async () => {
    const port = await offer('renewed')
    await untilAnswer(port, 'hello')
    const open = dial(port)
    expect(await responseOn(open, 'before')).to.equal('before')
    const next = await newIdentity('west')
    await eastKnowsWest([next.current.certificate])
    await untilAnswer(port, 'ECONNRESET')
    await giveIdentity(west, next)
    westIdentity = next
    await untilAnswer(port, 'hello')
    expect(await responseOn(open, 'after')).to.equal('after')
    const renewed = await newIdentity('east')
    await giveIdentity(east, renewed)
    eastIdentity = renewed
    await untilAnswer(port, 'ECONNRESET')
    await tellOfPeer(west, east, { certificates: [renewed.current.certificate], clusters: [acme, bob] })
    await untilAnswer(port, 'hello')
    expect(await responseOn(open, 'later')).to.equal('later')
    open.destroy()
  })

  it('end the connections with a member that is no peer any more, on either side, and no others', async () => {
    const port = await offer('left')
    const know = (): Promise<void> =>
      tellOfPeer(west, east, { certificates: [eastIdentity.current.certificate], clusters: [acme, bob] })
    for (const [side, forget, remember] of [
      ['west', () => forgetPeer(west, east), know],
      ['east', () => forgetPeer(east, west), () => eastKnowsWest([westIdentity.current.certificate])],
    ] as const) {
      await untilAnswer(port, 'hello')
      const open = dial(port)
      expect(await responseOn(open, 'before')).to.equal('before')
      // Told again of a peer that it knows, a gateway ends nothing.
      await know()
      expect(await responseOn(open, 'told')).to.equal('told')
      open.on('error', () => undefined)
      await forget()
      await waitFor(() => open.closed, { what: `${side} to end the connection`, deadlineMs: 10_000 })
      await remember()
    }
    await untilAnswer(port, 'hello')
  })

  it('listen on the ports of slices while these are there', async () => {
    const port = await offer('moving')
    await untilAnswer(port, 'hello')
    const open = dial(port)
    expect(await responseOn(open, 'before')).to.equal('before')
    const other = await freePort('0.0.0.0')
    await addRemoteSlice(east, west, { clusterId: acme, service: 'moving', port: other })
    await untilAnswer(other, 'hello')
    await untilAnswer(port, 'ECONNREFUSED')
    await removeRemoteSlice(east, west, { clusterId: acme, service: 'moving' })
    await untilAnswer(other, 'ECONNREFUSED')
    expect(await responseOn(open, 'after')).to.equal('after')
    open.destroy()
  })

  it('refuse what is above the bound of a logical cluster, and go on for others', async () => {
    const port = await offer('many')
    const bobPort = await offer('others', echo, bob)
    await untilAnswer(port, 'hello')
    await untilAnswer(bobPort, 'hello')
    await waitFor(async () => (await metric(west, 'kcp_gateway_connections{direction="incoming"}')) === 0, {
      what: 'no connection',
      deadlineMs: 10_000,
    })
    const open = Array.from({ length: maxPerCluster }, () => dial(port))
    for (const socket of open) expect(await responseOn(socket, 'hello')).to.equal('hello')
    expect(await ask(port)).to.equal('ECONNRESET')
    expect(await ask(bobPort)).to.equal('hello')
    for (const socket of open) expect(await responseOn(socket, 'again')).to.equal('again')
    for (const socket of open) socket.destroy()
    await untilAnswer(port, 'hello')
  })

  it('let open connections end when they are stopped', async () => {
    const port = await offer('ending')
    await untilAnswer(port, 'hello')
    const open = dial(port)
    expect(await responseOn(open, 'before')).to.equal('before')
    const stopped = eastGateway.stop()
    await waitFor(async () => (await readyz(east)) === 503, { what: 'it to stop', deadlineMs: 5000 })
    // Nodes learn later that it is not ready.
    expect(await ask(port)).to.equal('hello')
    await untilAnswer(port, 'ECONNREFUSED')
    expect(await responseOn(open, 'after')).to.equal('after')
    open.end()
    expect((await readAll(open)).length).to.equal(0)
    expect(await stopped).to.deep.equal({ code: 0, signal: null })
  })

  async function ended(port: number): Promise<boolean> {
    const socket = dial(port)
    try {
      await once(socket, 'connect')
      return true
    } finally {
      socket.destroy()
    }
  }
})
