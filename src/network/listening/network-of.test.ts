import { expect } from 'chai'
import { networkOf } from './network-of.ts'

describe('networkOf', () => {
  for (const [address, network] of [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '::ffff:192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:0DB8:1::', '2001:db8:1:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['', ''],
  ] as const)
    it(`of "${address}" is "${network}"`, () => expect(networkOf(address)).to.equal(network))
})
