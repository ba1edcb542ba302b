import { expect } from 'chai'
import fc from 'fast-check'
import { budgetShare, type Budget } from './budget-share.ts'

const sharesOf = fc
  .array(fc.nat(40), { minLength: 1, maxLength: 8 })
  .map((counts) => Object.fromEntries(counts.map((count, i) => [`m${i}`, count])))
  .filter((shares) => Object.values(shares).some((share) => share > 0))
const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

/** How many disruptions each member allows when all its pods are healthy, as the disruption controller counts. */
const allowedIn = (share: number, { minAvailable, maxUnavailable }: Budget): number => {
  const count = (value: number | string): number =>
    typeof value === 'number' ? value : Math.ceil((Number.parseInt(value) * share) / 100)
  const needed = minAvailable === undefined ? share - count(maxUnavailable ?? 0) : count(minAvailable)
  return Math.max(0, share - needed)
}
const allowed = (budget: Budget, shares: Record<string, number>): number =>
  sum(Object.entries(shares).map(([member, share]) => allowedIn(share, budgetShare(budget, { member, shares }))))
const values = fc.oneof(
  fc.nat(120),
  fc.nat(100).map((percent) => `${percent}%`),
)

describe('the budget of a divided workload', () => {
  it('never allows more disruptions in all members together than in one', () => {
    const property = fc.property(sharesOf, values, fc.boolean(), (shares, value, isMin) => {
      const budget = isMin ? { minAvailable: value } : { maxUnavailable: value }
      expect(allowed(budget, shares)).to.be.at.most(allowedIn(sum(Object.values(shares)), budget))
    })
    fc.assert(property, { numRuns: 2000 })
  })

  it('asks for as many available pods in all as the budget does', () => {
    const property = fc.property(sharesOf, fc.nat(200), (shares, minAvailable) => {
      const parts = Object.keys(shares).map((member) => budgetShare({ minAvailable }, { member, shares }).minAvailable)
      expect(sum(parts.map(Number))).to.be.at.least(minAvailable)
    })
    fc.assert(property, { numRuns: 2000 })
  })

  it('lets as many pods be unavailable in all as the budget does, so that no drain waits for ever', () => {
    const property = fc.property(sharesOf, fc.nat(200), (shares, maxUnavailable) => {
      expect(allowed({ maxUnavailable }, shares)).to.equal(Math.min(maxUnavailable, sum(Object.values(shares))))
    })
    fc.assert(property, { numRuns: 2000 })
  })

  it('is the budget itself where one member has all', () => {
    const shares = { east: 5 }
    expect(budgetShare({ minAvailable: 3 }, { member: 'east', shares })).to.deep.equal({ minAvailable: 3 })
    expect(budgetShare({ maxUnavailable: 2 }, { member: 'east', shares })).to.deep.equal({ maxUnavailable: 2 })
  })
})
