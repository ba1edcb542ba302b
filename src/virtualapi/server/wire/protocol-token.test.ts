import { expect } from 'chai'
import { withProtocolToken } from './protocol-token.ts'

const prefix = 'base64url.bearer.authorization.k8s.io.'
const upgrade = ['Connection', 'Upgrade', 'Upgrade', 'websocket']
const protocols = (text: string): string[] => [...upgrade, 'sec-websocket-protocol', text]
const abc = `${prefix}YWJj`

describe('the token in the subprotocols of a WebSocket', () => {
  for (const [title, given, expected] of [
    [
      'becomes a bearer token, and is no subprotocol any more',
      protocols(`v4.channel.k8s.io, ${abc}`),
      [...upgrade, 'Sec-WebSocket-Protocol', 'v4.channel.k8s.io', 'Authorization', 'Bearer abc'],
    ],
    ['stays if the request has a bearer token', [...protocols(`x,${abc}`), 'authorization', 'Bearer d'], undefined],
    ['stays if no WebSocket is asked for', ['Sec-WebSocket-Protocol', `x,${abc}`], undefined],
    ['may be empty', protocols(`x, ${prefix}`), undefined],
    ['is not valid alone', protocols(abc), [...upgrade, 'Authorization', 'Bearer -']],
    [
      'is not valid twice, also in two headers',
      [...protocols(`x, ${abc}`), 'Sec-WebSocket-Protocol', abc],
      [...upgrade, 'Sec-WebSocket-Protocol', 'x', 'Authorization', 'Bearer -'],
    ],
    [
      'is not valid unless it is base64url',
      protocols(`x, ${prefix}!!!`),
      [...upgrade, 'Sec-WebSocket-Protocol', 'x', 'Authorization', 'Bearer -'],
    ],
    [
      'is not valid with a line break in it',
      protocols(`x, ${prefix}YQpi`),
      [...upgrade, 'Sec-WebSocket-Protocol', 'x', 'Authorization', 'Bearer -'],
    ],
  ] as const)
    it(title, () => expect(withProtocolToken(given)).to.deep.equal(expected ?? given))
})
