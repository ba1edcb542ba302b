import { expect } from 'chai'
import { bridgeAddress, clusterAddresses, overlaps, slotCidr, slotCount } from './address-plan.ts'

describe('the address plan', () => {
  it('gives every cluster of every run networks of its own', () => {
    const cidrs = [0, 1, slotCount - 1].flatMap((slot) =>
      [0, 1, 63].flatMap((index) => {
        const { podCidr, serviceCidr } = clusterAddresses(slot, index)
        return [podCidr, serviceCidr]
      }),
    )
    for (const [i, a] of cidrs.entries()) {
      for (const b of cidrs.slice(i + 1)) expect(overlaps(a, b), `${a} and ${b}`).to.equal(false)
    }
  })

  it('keeps all addresses of a run inside its slot', () => {
    const { podCidr, serviceCidr, node } = clusterAddresses(7, 3)
    for (const net of [podCidr, serviceCidr, node, bridgeAddress(7)]) expect(overlaps(slotCidr(7), net)).to.equal(true)
  })

  for (const { a, b, shared } of [
    { a: '10.0.0.0/8', b: '10.64.0.0/16', shared: true },
    { a: '0.0.0.0/0', b: '10.64.0.0/16', shared: true },
    { a: '10.64.0.0/16', b: '10.65.0.0/16', shared: false },
    { a: '192.0.2.2', b: '192.0.2.0/24', shared: true },
    { a: '192.168.0.0/16', b: '192.0.2.0/24', shared: false },
  ]) {
    it(`finds that ${a} and ${b} ${shared ? 'overlap' : 'do not overlap'}`, () => {
      expect(overlaps(a, b)).to.equal(shared)
      expect(overlaps(b, a)).to.equal(shared)
    })
  }
})
