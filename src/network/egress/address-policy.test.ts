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
  for (const { title, address, allow = [], deny = [], why } of [
    { title: 'a denied range of 6to4', address: '2002:808:808::1', deny: ['2002::/16'], why: 'denied' },
    { title: 'a denied range of NAT64', address: '64:ff9b::808:808', deny: ['64:ff9b::/96'], why: 'denied' },
    { title: 'a denied part of it', address: '64:ff9b::8.8.8.8', deny: ['64:ff9b::808:800/120'], why: 'denied' },
    { title: 'a denied range of mapped addresses', address: '::ffff:8.8.8.8', deny: ['::ffff:0:0/96'], why: 'denied' },
    { title: 'the same without its form', address: '8.8.8.8', deny: ['::ffff:8.8.8.0/120'], why: 'denied' },
    { title: 'a denied range of ISATAP', address: '2600::5efe:8.8.8.8', deny: ['2600::/16'], why: 'denied' },
    {
      title: 'what is allowed and denied',
      address: '2002:808:808::1',
      allow: ['2002::/16'],
      deny: ['2002::/16'],
      why: 'denied',
    },
    {
      title: 'a denied address in an allowed form',
      address: '2002:808:808::1',
      allow: ['2002::/16'],
      deny: ['8.8.8.8'],
      why: 'denied',
    },
    { title: 'a private address in an allowed form', address: '2002:a00:1::1', allow: ['2002::/16'], why: 'private' },
    {
      title: 'the metadata in an allowed NAT64',
      address: '64:ff9b::a9fe:a9fe',
      allow: ['64:ff9b::/96'],
      why: 'metadata',
    },
    ...['64:ff9b:1::a00:1', '64:ff9b:1:a00:0:100::', '64:ff9b:1:a:0:1::', '64:ff9b:1::a:0:100:0'].map((one) => ({
      ...{ title: 'a private address in an allowed NAT64 for local use', address: one },
      ...{ allow: ['64:ff9b:1::/48'], why: 'private' },
    })),
    {
      title: 'a private address in an allowed Teredo',
      address: '2001:0:808:808::f5ff:fffe',
      allow: ['2001::/32'],
      why: 'private',
    },
    { title: 'an allowed private address in 6to4', address: '2002:a00:1::1', allow: ['10.0.0.0/8'] },
    {
      title: 'a public address in an allowed NAT64 for local use',
      address: '64:ff9b:1::808:808',
      allow: ['64:ff9b:1::/48'],
    },
    { title: 'the same in a shorter prefix', address: '64:ff9b:1:808:8:800::', allow: ['64:ff9b:1::/48'] },
    { title: 'a public address in an allowed Teredo', address: '2001:0:808:808::f7f7:f7f7', allow: ['2001::/32'] },
  ] as { title: string; address: string; allow?: string[]; deny?: string[]; why?: string }[])
    it(`${why === undefined ? 'include' : 'do not include'} ${title}: ${address}`, () => {
      const refusal = createAddressPolicy({ allow, deny }).refusal(address)
      if (why === undefined) expect(refusal).to.equal(undefined)
      else expect(refusal).to.contain(why)
    })
  it('are told by CIDRs only', () => {
    for (const text of ['10.0.0.0/33', 'example.com', '10.0.0.0/8/8', '::/129', ''])
      expect(() => createAddressPolicy({ allow: [text] }), text).to.throw(TypeError)
  })
})
