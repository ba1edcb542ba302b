import { expect } from 'chai'
import fc from 'fast-check'
import { type Budget, budgetShare, divide, type Portion } from './divide.ts'

const portion = (name: string, weight = 1, parts: Partial<Portion> = {}): Portion => ({ name, weight, ...parts })

/** Webster by definition: one after the other. */
function oneByOne(replicas: number, portions: readonly Portion[]): Record<string, number> {
  const shares = Object.fromEntries(portions.map(({ name, min = 0 }) => [name, min]))
  const given = portions.reduce((sum, { min = 0 }) => sum + min, 0)
  for (let i = given; i < replicas; i++) {
    const claims = portions
      .filter(({ name, max = Infinity }) => (shares[name] ?? 0) < max)
      .map(({ name, weight }) => ({ name, claim: weight / (2 * (shares[name] ?? 0) + 1) }))
    const best = claims.reduce<(typeof claims)[number] | undefined>(
      (top, one) => (top === undefined || one.claim > top.claim * (1 + 1e-9) ? one : top),
      undefined,
    )
    if (best !== undefined) shares[best.name] = (shares[best.name] ?? 0) + 1
  }
  return shares
}

describe('the division of replicas', () => {
  for (const { title, replicas, portions, shares } of [
    {
      title: 'is even',
      replicas: 12,
      portions: [portion('a'), portion('b'), portion('c')],
      shares: { a: 4, b: 4, c: 4 },
    },
    {
      title: 'gives the rest to the first',
      replicas: 4,
      portions: [portion('a'), portion('b'), portion('c')],
      shares: { a: 2, b: 1, c: 1 },
    },
    { title: 'follows weights', replicas: 10, portions: [portion('a', 3), portion('b', 2)], shares: { a: 6, b: 4 } },
    {
      title: 'gives nothing where too little is left',
      replicas: 1,
      portions: [portion('a', 1), portion('b', 9)],
      shares: { a: 0, b: 1 },
    },
    {
      title: 'keeps a maximum',
      replicas: 10,
      portions: [portion('a', 1, { max: 2 }), portion('b')],
      shares: { a: 2, b: 8 },
    },
    {
      title: 'keeps a minimum',
      replicas: 10,
      portions: [portion('a', 1, { min: 4 }), portion('b', 9)],
      shares: { a: 4, b: 6 },
    },
    {
      title: 'divides minima that are too much together',
      replicas: 3,
      portions: [portion('a', 1, { min: 4 }), portion('b', 1, { min: 4 })],
      shares: { a: 2, b: 1 },
    },
    {
      title: 'leaves what nobody can take',
      replicas: 9,
      portions: [portion('a', 1, { max: 2 }), portion('b', 1, { max: 3 })],
      shares: { a: 2, b: 3 },
    },
    {
      title: 'of many replicas is quick',
      replicas: 2_000_000_001,
      portions: [portion('a'), portion('b')],
      shares: { a: 1_000_000_001, b: 1_000_000_000 },
    },
    { title: 'among nobody is nothing', replicas: 5, portions: [], shares: {} },
  ])
    it(title, () => expect(divide(replicas, portions)).to.deep.equal(shares))

  const portions = fc
    .array(fc.record({ weight: fc.integer({ min: 1, max: 20 }), min: fc.nat(3), more: fc.nat(20) }), {
      minLength: 1,
      maxLength: 6,
    })
    .map((list) => list.map(({ weight, min, more }, i) => ({ name: `m${i}`, weight, min, max: min + more })))

  it('is what giving one replica after the other comes to, and takes none away when there are more', () => {
    fc.assert(
      fc.property(portions, fc.nat(60), (list, more) => {
        const least = list.reduce((sum, { min }) => sum + min, 0)
        const [few, many] = [divide(least + more, list), divide(least + more + 1, list)]
        expect(few).to.deep.equal(oneByOne(least + more, list))
        for (const { name } of list) expect(many[name]).to.be.at.least(few[name]!)
      }),
      { numRuns: 2000 },
    )
  })
})

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
