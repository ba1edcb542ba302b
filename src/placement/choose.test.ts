import { expect } from 'chai'
import fc from 'fast-check'
import { choose, type Candidate } from './choose.ts'
import { parseTarget, type Target } from './target.ts'

const candidate = (name: string, parts: Partial<Candidate> = {}): Candidate => ({
  name,
  ready: true,
  state: 'Active',
  admits: true,
  load: 0,
  ...parts,
})

describe('choosing members', () => {
  const best: Target = { kind: 'best' }
  for (const { title, target, candidates, current = [], near = [], wanted, held = [] } of [
    {
      title: 'takes the least loaded',
      target: best,
      candidates: [candidate('a', { load: 3 }), candidate('b')],
      wanted: ['b'],
    },
    {
      title: 'takes the first by name among equals',
      target: best,
      candidates: [candidate('b'), candidate('a')],
      wanted: ['a'],
    },
    {
      title: 'follows the other workloads of its namespace, even to a member that is not Ready',
      target: best,
      candidates: [candidate('a'), candidate('b', { load: 9, ready: false })],
      near: ['b'],
      wanted: ['b'],
    },
    {
      title: 'places nothing new on a cordoned member, even if its namespace runs there',
      target: best,
      candidates: [candidate('a'), candidate('b', { state: 'Cordoned' })],
      near: ['b'],
      wanted: ['a'],
    },
    {
      title: 'stays where it is',
      target: best,
      candidates: [candidate('a'), candidate('b', { load: 9 })],
      current: ['b'],
      wanted: ['b'],
    },
    {
      title: 'stays on a member that is not Ready',
      target: best,
      candidates: [candidate('a'), candidate('b', { ready: false })],
      current: ['b'],
      wanted: ['b'],
    },
    {
      title: 'leaves a member that is drained',
      target: best,
      candidates: [candidate('a'), candidate('b', { state: 'Draining' })],
      current: ['b'],
      wanted: ['a'],
    },
    {
      title: 'holds when nothing fits',
      target: best,
      candidates: [candidate('a', { state: 'Cordoned' })],
      wanted: undefined,
      held: ['NoClusterFits'],
    },
    {
      title: 'holds when there is no member',
      target: best,
      candidates: [],
      wanted: undefined,
      held: ['NoClusterFits'],
    },
    {
      title: 'takes all named members',
      target: parseTarget('a,b'),
      candidates: [candidate('a'), candidate('b')],
      wanted: ['a', 'b'],
    },
    {
      title: 'holds an unknown name',
      target: parseTarget('mars'),
      candidates: [candidate('a')],
      current: ['a'],
      wanted: undefined,
      held: ['ClusterNotFound'],
    },
    {
      title: 'takes the known and holds the unknown',
      target: parseTarget('a,mars'),
      candidates: [candidate('a')],
      wanted: ['a'],
      held: ['ClusterNotFound'],
    },
    {
      title: 'holds a member that is not Ready',
      target: parseTarget('a'),
      candidates: [candidate('a', { ready: false })],
      wanted: undefined,
      held: ['ClusterNotReady'],
    },
    {
      title: 'holds a member that does not admit the logical cluster',
      target: parseTarget('a'),
      candidates: [candidate('a', { admits: false })],
      wanted: undefined,
      held: ['NotAdmitted'],
    },
    {
      title: 'keeps a named member that was cordoned',
      target: parseTarget('a'),
      candidates: [candidate('a', { state: 'Cordoned' })],
      current: ['a'],
      wanted: ['a'],
    },
  ] as {
    title: string
    target: Target
    candidates: Candidate[]
    current?: string[]
    near?: string[]
    wanted?: string[]
    held?: string[]
  }[]) {
    it(title, () => {
      const decision = choose({ target, candidates, current, near })
      expect(decision.wanted).to.deep.equal(wanted ? { kind: 'members', names: wanted } : { kind: 'undecided' })
      expect(decision.held.map(({ reason }) => reason)).to.deep.equal(held)
    })
  }

  it('wants no member for the target none, which is not the same as undecided', () => {
    expect(choose({ target: { kind: 'none' }, candidates: [candidate('a')], current: ['a'] }).wanted).to.deep.equal({
      kind: 'none',
    })
  })

  it('does not depend on the order of candidates', () => {
    const candidates = fc.uniqueArray(
      fc.record({
        name: fc.constantFrom('a', 'b', 'c', 'd'),
        ready: fc.boolean(),
        state: fc.constantFrom('Active' as const, 'Cordoned' as const, 'Draining' as const),
        admits: fc.boolean(),
        load: fc.nat(3),
      }),
      { selector: ({ name }) => name },
    )
    fc.assert(
      fc.property(
        candidates,
        fc.subarray(['a', 'b', 'c', 'd']),
        fc.constantFrom('', 'a', 'a,b', 'c,z'),
        (list, current, text) => {
          const target: Target = text === '' ? best : parseTarget(text)
          const { wanted, held } = choose({ target, candidates: list, current })
          const reversed = choose({ target, candidates: list.toReversed(), current })
          expect([reversed.wanted, reversed.held]).to.deep.equal([wanted, held])
        },
      ),
    )
  })
  it('ignores invalid names of members, and limits their number', () => {
    const refusals = [Array.from({ length: 101 }, (_, i) => `m${i}`).join(), 'x'.repeat(100_000), '__proto__,a', 'a,B']
    for (const text of refusals) {
      const { wanted, held } = choose({ target: parseTarget(text), candidates: [candidate('a')], current: ['a'] })
      expect(wanted).to.deep.equal({ kind: 'undecided' })
      expect(held.map(({ cluster, reason }) => [cluster, reason])).to.deep.equal([['', 'WrongClusters']])
      expect(held[0]?.message.length).to.be.lessThan(200)
    }
    const hundred = Array.from({ length: 100 }, (_, i) => `m${i}`)
    const { held } = choose({ target: parseTarget(hundred.join()), candidates: [candidate('m0')], current: [] })
    expect(held).to.have.length(99)
  })
})
