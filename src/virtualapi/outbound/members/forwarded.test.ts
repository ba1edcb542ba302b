import { expect } from 'chai'
import { forwardedHeaders, forwardedQuery } from './forwarded.ts'

describe('what of a request is forwarded to a member', () => {
  const sent = [
    'Authorization',
    'Bearer t',
    'Cookie',
    'c',
    'Impersonate-User',
    'admin',
    'X-Remote-User',
    'admin',
    'x-remote-group',
    'system:masters',
    'X-Forwarded-For',
    '1.2.3.4',
    'Accept',
    '*/*',
  ]
  it('excludes credentials', () => {
    expect(forwardedHeaders(sent, { upgrade: false })).to.deep.equal(['Accept', '*/*'])
    expect(forwardedHeaders(sent, { upgrade: true })).to.deep.equal(['Accept', '*/*'])
  })
  it('includes the upgrade, without other headers that Connection names', () => {
    const raw = [
      'Connection',
      'upgrade, authorization',
      'Upgrade',
      'SPDY/3.1',
      'X-Stream-Protocol-Version',
      'v5.channel.k8s.io',
      'X-Stream-Protocol-Version',
      'v4.channel.k8s.io',
    ]
    expect(forwardedHeaders(raw, { upgrade: true })).to.deep.equal(['Connection', 'Upgrade', ...raw.slice(2)])
    expect(forwardedHeaders(raw, { upgrade: false })).to.deep.equal([])
  })
  it('excludes the token among the WebSocket subprotocols', () => {
    const raw = ['Sec-WebSocket-Protocol', 'base64url.bearer.authorization.k8s.io.dG9rZW4, v5.channel.k8s.io']
    expect(forwardedHeaders(raw, { upgrade: true })).to.deep.equal(['Sec-WebSocket-Protocol', 'v5.channel.k8s.io'])
  })
  for (const [query, expected] of [
    ['', ''],
    ['?follow=true&container=a%20b', '?follow=true&container=a%20b'],
    ['?insecureSkipTLSVerifyBackend=true&follow=true', '?follow=true'],
    ['?insecureSkipTLSVerify%42ackend=true', ''],
    ['?command=a&command=%26b', '?command=a&command=%26b'],
  ] as const) {
    it(`is the query "${expected}" of "${query}"`, () => expect(forwardedQuery(query)).to.equal(expected))
  }
})
