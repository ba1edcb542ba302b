import { expect } from 'chai'
import { parseAddress } from './peer-connection.ts'

describe('the address of a source', () => {
  for (const [text, host, port] of [
    ['10.0.0.7:8443', '10.0.0.7', 8443],
    ['[fd00::7]:1', 'fd00::7', 1],
    ['[::ffff:10.0.0.7]:65535', '::ffff:10.0.0.7', 65_535],
  ] as const)
    it(`may be ${text}`, () => expect(parseAddress(text)).to.deep.equal({ host, port }))
  for (const text of [
    ...['127.1:8443', '2130706433:8443', '010.0.0.1:8443', '1.2.3.256:8443', '1.2.3.4.5:8443', '...:8443', '0:8443'],
    ...['[fd00]:8443', '[1:2]:8443', '[127.1]:8443', '[::1::]:8443', '[fe80::1%eth0]:8443', 'fd00::7:8443'],
    ...['localhost:8443', '10.0.0.7', '10.0.0.7:0', '10.0.0.7:65536', ' 10.0.0.7:8443', ''],
  ])
    it(`may not be "${text}"`, () => expect(parseAddress(text)).to.equal(undefined))
})
