import { expect } from 'chai'
import fc from 'fast-check'
import { divide, type Portion } from './divide.ts'

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
