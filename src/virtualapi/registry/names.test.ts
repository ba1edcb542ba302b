import { expect } from 'chai'
import { ipAddressName } from './names.ts'

describe('names of IPAddresses', () => {
  for (const name of ['192.168.1.5', 'fe80::42:1dff:fe84:f9e2', '::1'])
    it(`may be ${name}`, () => expect(ipAddressName(name, { prefix: false })).to.deep.equal([]))
  for (const [name, complaint] of [
    ['a.b', 'must be a valid IP address'],
    ['010.0.0.1', 'must be a valid IP address'],
    ['FE80::1', 'must be in canonical form ("fe80::1")'],
    ['fe80:0::1', 'must be in canonical form ("fe80::1")'],
  ] as const)
    it(`may not be ${name}`, () => expect(ipAddressName(name, { prefix: false })[0]).to.contain(complaint))
})
