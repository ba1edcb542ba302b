import { expect } from 'chai'
import { directWayTo } from './direct-way.ts'

describe('the direct way to a mover', () => {
  for (const [podIP, address] of [
    ['10.244.1.7', '10.244.1.7:8443'],
    ['100.64.0.9', '100.64.0.9:8443'],
    ['223.255.255.255', '223.255.255.255:8443'],
    ['fd00:10:244::7', '[fd00:10:244::7]:8443'],
    ['2001:db8::ffff:a00:1', '[2001:db8::ffff:a00:1]:8443'],
  ])
    it(`is ${address}`, () =>
      expect(directWayTo('kcp-move-1', 8443, { podIP, hostIP: '10.0.0.1' })).to.deep.equal({
        address,
        pod: 'kcp-move-1',
      }))
  for (const [podIP, why] of [
    ['', 'no IP'],
    ['127.1', 'no IP'],
    ['2130706433', 'no IP'],
    ['api.example.com', 'no IP'],
    ['10.0.0.1:22', 'no IP'],
    ['2001:db8::1%eth0', 'no IP'],
    [['10.244.1.7'], 'no IP'],
    [null, 'no IP'],
    ['10.0.0.1', 'that of its node'],
    ...[
      ...['0.0.0.0', '0.1.2.3', '127.0.0.1', '127.255.0.9', '169.254.169.254', '224.0.0.1', '239.1.1.1', '240.0.0.1'],
      ...['255.255.255.255', '::', '::1', '0:0:0:0:0:0:0:1', 'fe80::1', 'febf::1', 'ff02::1', 'ff0e::1'],
      ...['::ffff:127.0.0.1', '::ffff:a00:1', '0:0:0:0:0:ffff:10.244.1.7'],
    ].map((ip) => [ip, 'no pod can have'] as const),
  ] as const)
    it(`is none for ${JSON.stringify(podIP)}: ${why}`, () => {
      const way = directWayTo('kcp-move-1', 8443, { podIP, hostIP: '10.0.0.1' })
      expect(way).to.have.all.keys('whyNot')
      expect('whyNot' in way && way.whyNot)
        .to.contain(why)
        .and.contain(JSON.stringify(podIP))
    })
  it('is none for a pod without an address', () => {
    for (const status of [undefined, {}, { hostIP: '10.0.0.1' }])
      expect(directWayTo('kcp-move-1', 8443, status)).to.deep.equal({
        whyNot: 'the pod in the old member cluster has no address',
      })
  })
})
