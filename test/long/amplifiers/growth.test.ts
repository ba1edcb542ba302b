import { expect } from 'chai'
import { growthExponent } from './growth.ts'

const sizes = [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]
const points = (cost: (n: number) => number) => sizes.map((n) => ({ n, cpuMs: cost(n) }))

describe('growthExponent', () => {
  for (const { title, cost, low, high } of [
    { title: 'is about 1 for a linear cost', cost: (n: number) => 2 + n / 50, low: 0.95, high: 1.05 },
    { title: 'is below 1.25 for n log n', cost: (n: number) => 2 + (n * Math.log2(n)) / 500, low: 1, high: 1.25 },
    { title: 'is about 2 for a quadratic cost', cost: (n: number) => 5 + (n * n) / 1e5, low: 1.9, high: 2.1 },
    {
      title: 'is above 1.5 where a quadratic part overtakes a linear one',
      cost: (n: number) => n / 100 + (n * n) / 4e5,
      low: 1.5,
      high: 2,
    },
  ])
    it(title, () => expect(growthExponent(points(cost))).to.be.within(low, high))

  it('is that of the last doublings where the cost rose once', () => {
    expect(growthExponent(points((n) => (n < 4096 ? n / 400 : 60 + n / 100)))).to.be.below(1)
    expect(growthExponent(points((n) => n / 100 + (n < 16_384 ? 0 : 300)))).to.be.below(1.2)
  })

  it('is unknown where the cost rose once, by little', () => {
    expect(growthExponent(points((n) => n / 2000 + (n < 16_384 ? 0 : 80)))).to.equal(undefined)
  })

  it('is unknown while every cost is within the noise', () => {
    expect(growthExponent(points(() => 3))).to.equal(undefined)
  })
})
