import { expect } from 'chai'
import { acceptWebSocket, ClientFrames, closeFrame, isWebSocketRequest, textFrame } from './web-socket.ts'

const headers =
  (given: Record<string, string>) =>
  (name: string): string | undefined =>
    given[name]
const handshake = {
  connection: 'keep-alive, Upgrade',
  upgrade: 'WebSocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', // of RFC 6455, 1.3
}

/** A frame as a client sends it: masked. */
function masked(opcode: number, payload: Uint8Array): Buffer {
  const mask = Uint8Array.of(1, 2, 3, 4)
  const long = payload.length > 125
  const head = Buffer.alloc(long ? 4 : 2)
  head[0] = 0x80 | opcode
  head[1] = 0x80 | (long ? 126 : payload.length)
  if (long) head.writeUInt16BE(payload.length, 2)
  return Buffer.concat([head, mask, payload.map((byte, index) => byte ^ mask[index % 4]!)])
}

describe('a WebSocket that only sends', () => {
  it('is requested by both headers', () => {
    expect(isWebSocketRequest(headers(handshake))).to.equal(true)
    expect(isWebSocketRequest(headers({ ...handshake, upgrade: 'h2c' }))).to.equal(false)
    expect(isWebSocketRequest(headers({ upgrade: 'websocket' }))).to.equal(false)
  })

  it('is accepted with the Sec-WebSocket-Accept of RFC 6455', () => {
    expect(acceptWebSocket(headers(handshake))).to.deep.equal([
      'Upgrade: websocket',
      'Connection: Upgrade',
      'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=',
    ])
  })

  it('selects a subprotocol, and never a token', () => {
    const offered = 'base64url.bearer.authorization.k8s.io.c2VjcmV0, base64.binary.k8s.io'
    const lines = acceptWebSocket(headers({ ...handshake, 'sec-websocket-protocol': offered }))
    expect(lines.at(-1)).to.equal('Sec-WebSocket-Protocol: base64.binary.k8s.io')
  })

  for (const [what, change] of Object.entries({
    'another version': { 'sec-websocket-version': '8' },
    'no key': { 'sec-websocket-key': '' },
    'a key of another length': { 'sec-websocket-key': 'YQ==' },
  }))
    it(`is refused with ${what}`, () => {
      expect(() => acceptWebSocket(headers({ ...handshake, ...change }))).to.throw('version 13')
    })

  for (const [length, head] of [
    [3, '8103'],
    [126, '817e007e'],
    [70_000, '817f0000000000011170'],
  ] as const)
    it(`frames a text of ${length} bytes`, () => {
      const frame = textFrame(Buffer.alloc(length, 'a'))
      expect(frame.subarray(0, head.length / 2).toString('hex')).to.equal(head)
      expect(frame).to.have.length(head.length / 2 + length)
    })

  it('answers ping and close and skips all else, however the bytes are split', () => {
    const said = Buffer.concat([
      masked(0x1, Buffer.from('hello')),
      masked(0x2, Buffer.alloc(300, 7)),
      masked(0x9, Buffer.from('are you there')),
      masked(0xa, Buffer.from('yes')),
      masked(0x8, Uint8Array.of(0x03, 0xe8, 0x62)),
    ])
    const wanted = [
      { frame: Buffer.concat([Uint8Array.of(0x8a, 13), Buffer.from('are you there')]), last: false },
      { frame: closeFrame(), last: true },
    ]
    expect(new ClientFrames().read(said)).to.deep.equal(wanted)
    const frames = new ClientFrames()
    const replies = [...said].flatMap((byte) => frames.read(Uint8Array.of(byte)))
    expect(replies).to.deep.equal(wanted)
  })

  it('refuses invalid frames', () => {
    expect(() => new ClientFrames().read(Uint8Array.of(0x89, 0x00))).to.throw('masked')
    expect(() => new ClientFrames().read(Uint8Array.of(0x89, 0xfe))).to.throw('too long')
  })
})
