import { expect } from 'chai'
import {
  originsOf,
  requireFetched,
  requireOwnHost,
  requireOwnRead,
  requireOwnUpgrade,
  requireOwnWrite,
} from './same-origin.ts'

const origins = originsOf(['https://console.example.com'], ['kcp.example.com'])
const own = ['host', 'kcp.example.com:6443', 'origin', 'https://kcp.example.com:6443', 'x-kcp-console', '1']
const changed = (...pairs: string[]): string[] => {
  const names = pairs.filter((_, i) => i % 2 === 0)
  const kept = own.filter((_, i) => !names.includes(own[i - (i % 2)] ?? ''))
  return [...kept, ...pairs.flatMap((_, i) => (i % 2 === 0 && pairs[i + 1] !== '-' ? pairs.slice(i, i + 2) : []))]
}

describe('a write and an upgrade of the page', () => {
  for (const [title, headers] of [
    ['come from its own origin', own],
    ['come from a configured origin', changed('origin', 'https://console.example.com')],
    ['name the default port or not', changed('host', 'kcp.example.com:443', 'origin', 'https://kcp.example.com')],
    ['name the host in HTTP/2', changed('host', '-', ':authority', 'kcp.example.com:6443')],
    ['say that they are of the same origin', changed('sec-fetch-site', 'same-origin')],
  ] as const)
    it(title, () => {
      requireOwnUpgrade(headers, origins)
      requireOwnWrite(headers, origins)
    })

  for (const [title, headers] of [
    ['have no Origin', changed('origin', '-')],
    ['have the Origin null', changed('origin', 'null')],
    ['have an empty Origin', changed('origin', '')],
    ['come from another site', changed('origin', 'https://evil.example')],
    ['come from another port', changed('origin', 'https://kcp.example.com:6444')],
    ['come without TLS', changed('origin', 'http://kcp.example.com:6443')],
    ['come from a name that ends in ours', changed('origin', 'https://evilkcp.example.com:6443')],
    ['come from a name that begins with ours', changed('origin', 'https://kcp.example.com.evil.example:6443')],
    ['have our origin as a user', changed('origin', 'https://kcp.example.com:6443@evil.example')],
    ['have two origins', [...own, 'origin', 'https://evil.example']],
    ['have two hosts', [...own, 'host', 'evil.example']],
    ['are said to be cross-site', changed('sec-fetch-site', 'cross-site')],
    ['are said to be of the same site', changed('sec-fetch-site', 'same-site')],
    ['are said to come from nowhere', changed('sec-fetch-site', 'none')],
  ] as const)
    it(`are refused if they ${title}`, () => {
      expect(() => requireOwnUpgrade(headers, origins)).to.throw('does not come from the page')
      expect(() => requireOwnWrite(headers, origins)).to.throw('does not come from the page')
    })

  it('are refused as a write without the header of the page', () => {
    requireOwnUpgrade(changed('x-kcp-console', '-'), origins)
    expect(() => requireOwnWrite(changed('x-kcp-console', '-'), origins)).to.throw('does not come from the page')
    expect(() => requireOwnWrite(changed('x-kcp-console', '0'), origins)).to.throw('does not come from the page')
  })
})

describe('a read', () => {
  it('comes from the page, or from no page', () => {
    for (const site of ['same-origin', 'none']) requireOwnRead(['sec-fetch-site', site])
    requireOwnRead([])
    for (const site of ['cross-site', 'same-site', 'x'])
      expect(() => requireOwnRead(['sec-fetch-site', site])).to.throw('does not come from the page')
  })

  it('of the API is fetched, and never opened as a document, a frame or a script', () => {
    for (const destination of ['empty', 'websocket']) requireFetched(['sec-fetch-dest', destination])
    for (const destination of ['document', 'iframe', 'script', 'style', 'image', 'object', 'serviceworker'])
      expect(() => requireFetched(['sec-fetch-dest', destination])).to.throw('no page')
  })
})

describe('the host of a request', () => {
  for (const host of [
    '127.0.0.1:6443',
    '[::1]:6443',
    'localhost:1',
    'kcp.example.com',
    'KCP.example.com',
    'console.example.com',
  ])
    it(`may be ${host}`, () => requireOwnHost(['host', host], origins))
  for (const host of [
    'evil.example',
    'kcp.example.com.evil.example',
    'a.localhost.evil.example:6443',
    '127.0.0.1.evil.example',
  ])
    it(`may not be ${host}`, () => {
      expect(() => requireOwnHost(['host', host], origins)).to.throw('the console is not served as')
    })
  for (const headers of [
    [],
    ['host', ''],
    ['host', 'a@b'],
    ['host', 'a/b'],
    ['host', 'localhost', 'host', 'evil.example'],
  ])
    it(`must be one name: ${JSON.stringify(headers)}`, () => {
      expect(() => requireOwnHost(headers, origins)).to.throw('names no host')
    })
})

describe('configured origins', () => {
  for (const text of ['http://a.example', 'https://a.example/path', 'a.example', 'https://a.example?x', 'null'])
    it(`may not be ${text}`, () => expect(() => originsOf([text], [])).to.throw('is no origin'))
})
