import { expect } from 'chai'
import { Packer, valueAt } from './protocol.ts'

const KiB = 1024

describe('Packer', () => {
  it('packs values into several buffers, so that one that is kept does not keep all', () => {
    const packer = new Packer()
    const values = Array.from({ length: 40 }, (_, i) => new Uint8Array(i === 20 ? 3000 * KiB : 100 * KiB).fill(i))
    const slices = values.map((value) => packer.add(value))
    const buffers = packer.finish()
    expect(slices.map((slice) => valueAt(buffers, slice))).to.deep.equal(values)
    const sizes = buffers.map(({ byteLength }) => byteLength)
    expect(sizes.filter((size) => size > 1024 * KiB)).to.deep.equal([3000 * KiB])
    expect(sizes.length).to.be.within(4, 7)
  })

  it('packs nothing, and empty values', () => {
    expect(new Packer().finish()).to.have.length(1)
    const packer = new Packer()
    const slice = packer.add(new Uint8Array())
    expect(valueAt(packer.finish(), slice)).to.have.length(0)
  })
})
