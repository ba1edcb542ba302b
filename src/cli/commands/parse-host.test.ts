import { expect } from 'chai'
import { parseHost } from './parse-host.ts'

describe('the value of --advertise-address', () => {
  for (const text of ['10.0.0.1', 'fd00::1', 'kcp.example.com', 'localhost', 'Host-1'])
    it(`may be ${text}`, () => expect(parseHost(text)).to.equal(text))
  for (const text of [
    '',
    'a b',
    'https://kcp.example.com',
    'kcp.example.com:6443',
    '10.0.0',
    '10.0.0.256',
    '-a',
    '[fd00::1]',
  ])
    it(`may not be "${text}"`, () => expect(() => parseHost(text)).to.throw('host name or an IP address'))
})
