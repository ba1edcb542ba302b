import { expect } from 'chai'
import { isWebSocketRequest, requireHandshake } from './web-socket.ts'

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

describe('a WebSocket that only sends', () => {
  it('is requested by both headers', () => {
    expect(isWebSocketRequest(headers(handshake))).to.equal(true)
    expect(isWebSocketRequest(headers({ ...handshake, upgrade: 'h2c' }))).to.equal(false)
    expect(isWebSocketRequest(headers({ upgrade: 'websocket' }))).to.equal(false)
  })

  for (const [what, change] of Object.entries({
    'another version': { 'sec-websocket-version': '8' },
    'no key': { 'sec-websocket-key': '' },
    'a key of another length': { 'sec-websocket-key': 'YQ==' },
  }))
    it(`is refused with ${what}`, () => {
      expect(() => requireHandshake(headers({ ...handshake, ...change }))).to.throw('version 13')
    })
})
