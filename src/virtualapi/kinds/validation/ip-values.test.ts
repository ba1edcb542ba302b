import { expect } from 'chai'
import { cidrErrors, ipErrors, isStrictlyInside, tryCidr, tryIp } from './ip-values.ts'

describe('IP addresses', () => {
  for (const text of ['192.168.1.5', 'fe80::42:1dff:fe84:f9e2', '::1', '::', '1:0:0:2::'])
    it(`${text} is a canonical IP address`, () => expect(ipErrors(text)).to.deep.equal([]))
  for (const [text, complaint] of [
    ['a.b', 'must be a valid IP address'],
    ['1.2.3', 'must be a valid IP address'],
    ['1.2.3.256', 'must be a valid IP address'],
    ['fe80::1%eth0', 'must be a valid IP address'],
    ['010.0.0.1', 'must not have leading 0s'],
    ['::ffff:1.2.3.4', 'must not be an IPv4-mapped IPv6 address'],
    ['FE80::1', 'must be in canonical form ("fe80::1")'],
    ['fe80:0::1', 'must be in canonical form ("fe80::1")'],
  ] as const)
    it(`${text} is refused`, () => expect(ipErrors(text)[0]).to.contain(complaint))

  it('are parsed with leading zeros, which older fields accept', () => {
    expect(tryIp('010.1.2.3')?.value).to.equal(tryIp('10.1.2.3')?.value)
  })
})

describe('CIDRs', () => {
  for (const text of ['10.0.0.0/8', '2001:db8::/32', '::/0'])
    it(`${text} is a canonical CIDR`, () => expect(cidrErrors(text)).to.deep.equal([]))
  for (const [text, complaint] of [
    ['10.0.0.0', 'must be a valid CIDR value'],
    ['10.0.0.0/33', 'must be a valid CIDR value'],
    ['10.0.0.1/8', 'must not have bits set beyond the prefix length'],
    ['010.0.0.0/8', 'must not have leading 0s'],
    ['10.0.0.0/08', 'must not have leading 0s'],
    ['2001:DB8::/32', 'must be in canonical form ("2001:db8::/32")'],
  ] as const)
    it(`${text} is refused`, () => expect(cidrErrors(text)[0]).to.contain(complaint))

  for (const [inner, outer, expected] of [
    ['10.1.0.0/16', '10.0.0.0/8', true],
    ['10.0.0.0/8', '10.0.0.0/8', false],
    ['11.0.0.0/16', '10.0.0.0/8', false],
    ['2001:db8:1::/48', '2001:db8::/32', true],
    ['2001:db9::/48', '2001:db8::/32', false],
    ['2001:db9::/48', '10.0.0.0/8', false],
  ] as const)
    it(`${inner} is ${expected ? '' : 'not '}inside ${outer}`, () => {
      const [one, other] = [tryCidr(inner), tryCidr(outer)]
      if (one === undefined || other === undefined) throw new Error('no CIDR')
      expect(isStrictlyInside(one, other)).to.equal(expected)
    })
})
