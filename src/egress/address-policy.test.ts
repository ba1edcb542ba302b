import { networkInterfaces } from 'node:os'
import { expect } from 'chai'
import { createAddressPolicy } from './address-policy.ts'

describe('the addresses that tenants may have called', () => {
  const policy = createAddressPolicy()
  for (const [address, why] of [
    ['127.0.0.1', 'a loopback address'],
    ['127.255.0.9', 'a loopback address'],
    ['::1', 'a loopback address'],
    ['0:0:0:0:0:0:0:1', 'a loopback address'],
    ['0.0.0.0', 'an unspecified address'],
    ['::', 'an unspecified address'],
    ['169.254.169.254', 'a metadata address'],
    ['fd00:ec2::254', 'a metadata address'],
    ['168.63.129.16', 'a metadata address'],
    ['169.254.1.1', 'a link-local address'],
    ['fe80::1%eth0', 'a link-local address'],
    ['224.0.0.1', 'a multicast address'],
    ['ff02::1', 'a multicast address'],
    ['255.255.255.255', 'a reserved address'],
    ['10.96.0.1', 'a private address'],
    ['172.31.255.1', 'a private address'],
    ['192.168.1.1', 'a private address'],
    ['100.100.100.200', 'a private address'],
    ['fd12::1', 'a private address'],
    ['::ffff:127.0.0.1', 'a loopback address'],
    ['::ffff:7f00:1', 'a loopback address'],
    ['::ffff:a9fe:a9fe', 'a metadata address'],
    ['::127.0.0.1', 'a loopback address'],
    ['::ffff:0:10.0.0.1', 'a private address'],
    ['64:ff9b::a9fe:a9fe', 'a metadata address'],
    ['64:ff9b:1::a00:1', 'a translated address'],
    ['2002:7f00:1::1', 'a loopback address'],
    ['2001:0:53aa:64c::1', 'a translated address'],
    ['2600::5efe:10.0.0.1', 'a private address'],
    ['localhost', 'not an IP address'],
    ['', 'not an IP address'],
  ] as const)
    it(`do not include "${address}"`, () => expect(policy.refusal(address)).to.equal(why))

  for (const address of ['8.8.8.8', '2606:4700:4700::1111', '::ffff:8.8.8.8', '64:ff9b::808:808', '2002:808:808::1'])
    it(`include ${address}`, () => expect(policy.refusal(address)).to.equal(undefined))

  it("do not include this machine's own addresses, even where their range is public", () => {
    const own = Object.values(networkInterfaces()).flatMap((found) => (found ?? []).map(({ address }) => address))
    expect(own).to.not.be.empty
    for (const address of own) expect(policy.refusal(address), address).to.be.a('string')
  })
  it('include what --egress-allow names, also within IPv6, and not what --egress-deny takes back', () => {
    const opened = createAddressPolicy({ allow: ['10.0.0.0/8', '::1'], deny: ['10.96.0.0/12'] })
    expect(opened.refusal('10.1.2.3')).to.equal(undefined)
    expect(opened.refusal('::ffff:10.1.2.3')).to.equal(undefined)
    expect(opened.refusal('::1')).to.equal(undefined)
    expect(opened.refusal('10.96.0.1')).to.equal('an address in a range denied by --egress-deny')
    expect(opened.refusal('::ffff:10.96.0.1')).to.equal('an address in a range denied by --egress-deny')
    expect(opened.refusal('127.0.0.1')).to.equal('a loopback address')
  })
  it('are told by CIDRs only', () => {
    for (const text of ['10.0.0.0/33', 'example.com', '10.0.0.0/8/8', '::/129', ''])
      expect(() => createAddressPolicy({ allow: [text] }), text).to.throw(TypeError)
  })
})
