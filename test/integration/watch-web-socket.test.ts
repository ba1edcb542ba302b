// Watches over a WebSocket, which Java's fabric8 client and browsers use.
import { expect } from 'chai'
import { once } from 'node:events'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import { openRawClient, type WatchEvent } from './raw-client.ts'
import { framesOf, type Frame } from './web-socket-frames.ts'

const handshake = [
  ...['Upgrade', 'websocket', 'Sec-WebSocket-Version', '13'],
  ...['Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ==', 'Origin', 'https://127.0.0.1'],
]

describe('a watch over a WebSocket', () => {
  let kcp: KcpInstance
  let acme: Tenant
  let collection: string
  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
    collection = `${acme.base}/api/v1/namespaces/default/configmaps`
  })
  after(() => kcp[Symbol.asyncDispose]())

  const create = (name: string, data: object = {}) =>
    acme.http.request('POST', collection, { body: { metadata: { name }, data } })
  const open = (query: string, headers: readonly string[] = handshake) =>
    acme.http.upgrade(`${collection}?watch=true&${query}`, headers)

  it('sends existing objects and events, one per message, of any length', async () => {
    await create('small')
    const { status, headers, socket } = await open('fieldSelector=metadata.name!%3Dkube-root-ca.crt')
    expect(status).to.equal(101)
    expect(headers['sec-websocket-accept']).to.equal('s3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
    const frames = framesOf(socket!)
    expect(await nextEvent(frames)).to.equal('ADDED small')
    await create('large', { text: 'x'.repeat(70_000) })
    await create('medium', { text: 'x'.repeat(700) })
    await acme.http.request('DELETE', `${collection}/small`)
    expect(await nextEvent(frames)).to.equal('ADDED large')
    expect(await nextEvent(frames)).to.equal('ADDED medium')
    expect(await nextEvent(frames)).to.equal('DELETED small')
    socket!.write(Buffer.from([0x89, 0x82, 0, 0, 0, 0, 0x68, 0x69])) // ping "hi", masked with a zero key
    expect(await frames.next()).to.deep.equal({ done: false, value: { opcode: 0xa, payload: Buffer.from('hi') } })
    socket!.write(Buffer.from([0x88, 0x80, 0, 0, 0, 0]))
    expect((await frames.next()).value).to.have.property('opcode', 0x8)
    expect(await frames.next()).to.have.property('done', true)
  })

  it('selects a subprotocol that the client offers, and never a token', async () => {
    const offered = 'base64url.bearer.authorization.k8s.io.c2VjcmV0, base64.binary.k8s.io'
    const { headers, socket } = await open('', [...handshake, 'Sec-WebSocket-Protocol', offered])
    expect(headers['sec-websocket-protocol']).to.equal('base64.binary.k8s.io')
    socket!.destroy()
  })

  const asAccount = async (protocols: string): Promise<number> => {
    await using nobody = openRawClient({ port: kcp.port })
    const headers = [...handshake, 'Sec-WebSocket-Protocol', protocols]
    const { status, socket } = await nobody.upgrade(`${collection}?watch=true`, headers)
    socket?.destroy()
    return status
  }

  it('with a token in its subprotocols is that of the owner of the token, or refused', async () => {
    const binding = { roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' } }
    const subjects = [{ kind: 'ServiceAccount', namespace: 'default', name: 'default' }]
    const bindings = `${acme.base}/apis/rbac.authorization.k8s.io/v1/clusterrolebindings`
    await acme.http.request('POST', bindings, { body: { metadata: { name: 'viewer' }, ...binding, subjects } })
    const accounts = `${acme.base}/api/v1/namespaces/default/serviceaccounts`
    const { json } = await acme.http.request('POST', `${accounts}/default/token`, { body: { spec: {} } })
    const { token } = json()['status'] as { token: string }
    const protocol = `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`
    expect(await asAccount(`${protocol}, base64.binary.k8s.io`)).to.equal(101)
    expect(await asAccount(protocol)).to.equal(401)
    expect(await asAccount(`${protocol.slice(0, -1)}!, base64.binary.k8s.io`)).to.equal(401)
    expect(await asAccount(`${protocol.slice(0, -20)}, base64.binary.k8s.io`)).to.equal(401)
    expect(await asAccount('base64.binary.k8s.io')).to.equal(403)
  })

  it('of a client that would rather have HTTP/2 without TLS is answered over HTTP/1.1', async () => {
    const headers = ['Connection', 'Upgrade, HTTP2-Settings', 'Upgrade', 'h2c', 'HTTP2-Settings', 'AAMAAABkAAQAAP__']
    const { status, json } = await acme.http.request('GET', `${collection}?limit=1`, { headers })
    expect(status).to.equal(200)
    expect(json()['kind']).to.equal('ConfigMapList')
  })

  it('drops what the client sends, and still sends events', async () => {
    const { socket } = await open('resourceVersion=0&fieldSelector=metadata.name%3Dlater')
    const frames = framesOf(socket!)
    socket!.write(masked(0x1, Buffer.from('hello')))
    socket!.write(masked(0x2, Buffer.alloc(300, 7)))
    for (const byte of masked(0x9, Buffer.from('split'))) socket!.write(Uint8Array.of(byte))
    expect((await frames.next()).value).to.deep.equal({ opcode: 0xa, payload: Buffer.from('split') })
    await create('later')
    expect(await nextEvent(frames)).to.equal('ADDED later')
    socket!.destroy()
  })

  for (const [what, bytes, code] of [
    ['is not masked', Buffer.from([0x89, 0x00]), 1002],
    ['is a control frame of more than 125 bytes', Buffer.from([0x89, 0xfe, 0x01, 0x00, 0, 0, 0, 0]), 1002],
    ['is longer than 64 KiB', masked(0x2, Buffer.alloc(64 * 1024 + 1)).subarray(0, 14), 1009],
  ] as const)
    it(`ends with ${code} at a frame that ${what}`, async () => {
      const { socket } = await open('resourceVersion=0&fieldSelector=metadata.name%3Dnone')
      const frames = framesOf(socket!)
      socket!.write(bytes)
      const { value } = await frames.next()
      expect(value?.opcode).to.equal(0x8)
      expect(value?.payload.readUInt16BE(0)).to.equal(code)
      socket!.destroy()
    })

  it('ends with a close frame at its timeout', async () => {
    const { socket } = await open('timeoutSeconds=1&resourceVersion=0')
    const frames = framesOf(socket!)
    let last = (await frames.next()).value
    for (let next = await frames.next(); next.done !== true; next = await frames.next()) last = next.value
    expect(last).to.deep.equal({ opcode: 0x8, payload: Buffer.from([0x03, 0xe8]) })
    socket!.destroy()
  })

  it('is refused like any watch, before the protocol changes', async () => {
    expect(await open('resourceVersion=nonsense')).to.have.property('status', 400)
    expect(await open('sendInitialEvents=true')).to.have.property('status', 422)
    expect(await open('', ['Upgrade', 'websocket', 'Sec-WebSocket-Version', '8'])).to.have.property('status', 400)
    const elsewhere = `/clusters/root/api/v1/namespaces/default/configmaps?watch=true`
    expect(await acme.http.upgrade(elsewhere, handshake)).to.have.property('status', 401)
  })

  it('ends when its client leaves, and when the server stops', async () => {
    const { socket } = await open('')
    const left = await open('')
    left.socket!.destroy()
    await kcp.process.stop()
    socket!.resume()
    if (!socket!.closed) await once(socket!, 'close')
  })
})

/** A frame as a client sends it: masked. */
function masked(opcode: number, payload: Uint8Array): Buffer {
  const mask = Uint8Array.of(1, 2, 3, 4)
  const length = payload.length
  const head = Buffer.alloc(length <= 125 ? 2 : length < 2 ** 16 ? 4 : 10)
  head[0] = 0x80 | opcode
  head[1] = 0x80 | (length <= 125 ? length : length < 2 ** 16 ? 126 : 127)
  if (head.length === 4) head.writeUInt16BE(length, 2)
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2)
  return Buffer.concat([head, mask, payload.map((byte, index) => byte ^ mask[index % 4]!)])
}

async function nextEvent(frames: AsyncGenerator<Frame, undefined>): Promise<string> {
  const { value } = await frames.next()
  expect(value?.opcode).to.equal(0x1)
  const { type, object } = JSON.parse(value!.payload.toString()) as WatchEvent
  return `${type} ${object.metadata.name ?? ''}`
}
