import { expect } from 'chai'
import fc from 'fast-check'
import { amountsOf, type Quantity } from '#apimachinery/quantity/index.ts'
import { noDemand, type Candidate, type Demand } from '#placement/rules/candidate.ts'
import { choose, type ChooseInput } from './choose.ts'
import { parseTarget, type Target } from '#placement/rules/target.ts'

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

  describe('for a workload that names a class', () => {
    const has = (...names: string[]): Partial<Candidate> => ({ classes: new Map([['StorageClass', new Set(names)]]) })
    const demand: Demand = { ...noDemand, classes: [{ kind: 'StorageClass', name: 'gold' }] }
    const decide = (...candidates: Candidate[]) => choose({ target: best, demand, candidates, current: [] })

    it('takes a member that has it, or whose classes are not known', () => {
      const { wanted, rejected } = decide(candidate('a', has('fast')), candidate('b', has('gold')))
      expect(wanted).to.deep.equal({ kind: 'members', names: ['b'] })
      expect(rejected.map(({ message }) => message)).to.deep.equal(['member cluster "a" has no StorageClass "gold"'])
      expect(decide(candidate('a')).wanted).to.deep.equal({ kind: 'members', names: ['a'] })
    })

    it('gives the reason ClassMissing if that alone refuses all members', () => {
      const reasons = (...candidates: Candidate[]) => decide(...candidates).held.map(({ reason }) => reason)
      expect(reasons(candidate('a', has()), candidate('b', has()))).to.deep.equal(['ClassMissing'])
      expect(reasons(candidate('a', has()), candidate('b', { ready: false }))).to.deep.equal(['NoClusterFits'])
    })
  })

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

describe('choosing the members of a divided workload', () => {
  const perPod = amountsOf({ cpu: '1' })
  const divided = (replicas: number, parts: Partial<NonNullable<Demand['divide']>> = {}): Demand => ({
    ...noDemand,
    requests: perPod,
    divide: { replicas, division: 'Balanced', bounds: [], perPod, surge: () => 0, ...parts },
  })
  const room = (cpu: string, used = '0'): Partial<Candidate> => ({
    limits: amountsOf({ cpu }),
    requested: amountsOf({ cpu: used }),
  })
  const three = [candidate('a'), candidate('b'), candidate('c')]
  for (const { title, input, shares } of [
    { title: 'takes all that fit', input: { candidates: three, demand: divided(12) }, shares: { a: 4, b: 4, c: 4 } },
    {
      title: 'takes those that are named, and leaves out one that drains',
      input: {
        target: parseTarget('a,b'),
        candidates: [candidate('a'), candidate('b', { state: 'Draining' }), candidate('c')],
        demand: divided(4),
        current: ['b'],
      },
      shares: { a: 4 },
    },
    {
      title: 'follows weights and bounds',
      input: {
        candidates: three,
        demand: divided(10, {
          division: 'Weighted',
          bounds: [
            { cluster: 'a', weight: 8, max: 2 },
            { cluster: 'b', weight: 3 },
          ],
        }),
      },
      shares: { a: 2, b: 6, c: 2 },
    },
    {
      title: 'follows what members can take in all, and gives no more than there is room for',
      input: {
        candidates: [candidate('a', room('30')), candidate('b', room('10')), candidate('c', room('20', '19'))],
        demand: divided(8, { division: 'ByCapacity' }),
      },
      shares: { a: 5, b: 2, c: 1 },
    },
    {
      title: 'does not take away what runs because others need the room',
      input: {
        candidates: [candidate('a', room('4', '4')), candidate('b', room('9'))],
        demand: divided(6),
        current: ['a'],
        present: { a: 3 },
      },
      shares: { a: 3, b: 3 },
    },
    { title: 'keeps a place for no replicas', input: { candidates: three, demand: divided(0) }, shares: { a: 0 } },
  ] as { title: string; input: Partial<ChooseInput>; shares: Record<string, number> }[])
    it(title, () => {
      const decision = choose({ target: { kind: 'best' }, candidates: [], current: [], ...input })
      expect(decision.shares).to.deep.equal(shares)
      expect(decision.wanted).to.deep.equal({ kind: 'members', names: Object.keys(shares) })
    })

  it('says how many replicas have no room', () => {
    const candidates = [candidate('a', room('2')), candidate('b', room('1'))]
    const { shares, held } = choose({ target: { kind: 'best' }, candidates, current: [], demand: divided(5) })
    expect(shares).to.deep.equal({ a: 2, b: 1 })
    expect(held).to.deep.equal([
      {
        cluster: '',
        reason: 'InsufficientCapacity',
        message: '2 of 5 replicas have no room: each needs cpu=1, and member clusters can take "a" 2, "b" 1',
      },
    ])
  })
})

describe('a workload that grows beyond what an admin lets its member have', () => {
  const pods = { replicas: 10, perPod: amountsOf({ cpu: '1' }), surge: () => 0 }
  const demand: Demand = { ...noDemand, requests: amountsOf({ cpu: '10' }), pods }
  const small = candidate('a', { limits: amountsOf({ cpu: '8' }), requested: amountsOf({ cpu: '2' }), isBounded: true })
  const best: Target = { kind: 'best' }
  const here = { demand, current: ['a'], serving: ['a'], present: { a: 3 } }

  it('moves to one that has room', () => {
    const { wanted, held } = choose({ target: best, candidates: [small, candidate('b')], ...here })
    expect([wanted, held]).to.deep.equal([{ kind: 'members', names: ['b'] }, []])
  })
  for (const { title, target, candidates } of [
    { title: 'stays where nothing else has room', target: best, candidates: [small] },
    { title: 'stays where it was asked for', target: parseTarget('a'), candidates: [small, candidate('b')] },
  ])
    it(`${title}, runs as many replicas as fit, and says so with the numbers`, () => {
      const { wanted, shares, held } = choose({ target, candidates, ...here })
      expect([wanted, shares]).to.deep.equal([{ kind: 'members', names: ['a'] }, { a: 6 }])
      expect(held).to.deep.equal([
        {
          cluster: 'a',
          reason: 'InsufficientCapacity',
          message: '6 of 10 replicas run there: member cluster "a" has no room: it needs cpu=10; free: cpu=6 of cpu=8',
        },
      ])
    })
  it('keeps the replicas that run already', () => {
    const { shares, held } = choose({ target: best, candidates: [small], ...here, present: { a: 10 } })
    expect([shares, held]).to.deep.equal([undefined, []])
  })
  it('is not stopped where the limits are only what the nodes can allocate', () => {
    const { shares, held } = choose({ target: best, candidates: [{ ...small, isBounded: false }], ...here })
    expect([shares, held]).to.deep.equal([undefined, []])
  })
})

describe('the filters and scores', () => {
  const best: Target = { kind: 'best' }
  const labels = (tier: string, region: string): Partial<Candidate> => ({ labels: { tier, region } })
  const cpu = (text: string): ReadonlyMap<string, Quantity> => amountsOf({ cpu: text })
  const gold = { matchLabels: { tier: 'gold' } }
  const three = [
    candidate('a', labels('gold', 'eu')),
    candidate('b', labels('gold', 'us')),
    candidate('c', labels('tin', 'us')),
  ]
  for (const {
    title,
    target = best,
    demand = {},
    candidates,
    current = [],
    serving = [],
    near = [],
    wanted,
    reasons,
  } of [
    {
      title: 'keep to the labels that a Placement requires',
      demand: { require: { placement: 'p', labelSelector: { matchLabels: { tier: 'tin' } } } },
      candidates: three,
      wanted: ['c'],
      reasons: ['a LabelsDoNotMatch', 'b LabelsDoNotMatch'],
    },
    {
      title: 'keep to what all admins allow, whoever chooses',
      target: parseTarget('a'),
      demand: {
        bounds: [
          { placement: 'gold', require: gold },
          { placement: 'us', clusters: ['b', 'c'] },
        ],
      },
      candidates: three,
      wanted: undefined,
      reasons: ['a ForbiddenByPlacement'],
    },
    {
      title: 'take what two rules of admins leave',
      demand: {
        bounds: [
          { placement: 'gold', require: gold },
          { placement: 'us', clusters: ['b', 'c'] },
        ],
      },
      candidates: three,
      wanted: ['b'],
      reasons: ['a ForbiddenByPlacement', 'c ForbiddenByPlacement'],
    },
    {
      title: 'move a copy away from a member that is forbidden now',
      demand: { bounds: [{ placement: 'us', clusters: ['b'] }] },
      candidates: three,
      current: ['a'],
      wanted: ['b'],
      reasons: ['a ForbiddenByPlacement', 'c ForbiddenByPlacement'],
    },
    {
      title: 'leave a copy where it is when admins leave nothing',
      demand: { bounds: [{ placement: 'none', clusters: [] }] },
      candidates: three,
      current: ['a'],
      wanted: undefined,
      reasons: ['a ForbiddenByPlacement', 'b ForbiddenByPlacement', 'c ForbiddenByPlacement'],
    },
    {
      title: 'prefer the larger sum of weights to fewer copies',
      demand: {
        prefer: [
          { weight: 2, labelSelector: gold },
          { weight: 1, labelSelector: { matchLabels: { region: 'us' } } },
        ],
      },
      candidates: three.map((one) => ({ ...one, load: one.name === 'b' ? 9 : 0 })),
      wanted: ['b'],
      reasons: [],
    },
    {
      title: 'place nothing new on a member with a taint',
      candidates: [candidate('a', { taints: [{ key: 'gpu', effect: 'NoSchedule' }] }), candidate('b', { load: 9 })],
      wanted: ['b'],
      reasons: ['a TaintNotTolerated'],
    },
    {
      title: 'place what tolerates a taint',
      demand: { tolerations: [{ key: 'gpu', operator: 'Exists' }] },
      candidates: [candidate('a', { taints: [{ key: 'gpu', effect: 'NoSchedule' }] }), candidate('b', { load: 9 })],
      wanted: ['a'],
      reasons: [],
    },
    {
      title: 'keep what runs under a taint of effect NoSchedule, and move it for NoExecute',
      candidates: [candidate('a', { taints: [{ key: 'x', effect: 'NoExecute' }] }), candidate('b')],
      current: ['a'],
      wanted: ['b'],
      reasons: ['a TaintNotTolerated'],
    },
    {
      title: 'take a member with a taint of effect PreferNoSchedule last',
      candidates: [candidate('a', { taints: [{ key: 'x', effect: 'PreferNoSchedule' }] }), candidate('b', { load: 9 })],
      wanted: ['b'],
      reasons: [],
    },
    {
      title: 'place only what fits into the limits',
      demand: { requests: cpu('3') },
      candidates: [
        candidate('a', { limits: cpu('4'), requested: cpu('1500m') }),
        candidate('b', { limits: cpu('4'), requested: cpu('1'), load: 9 }),
      ],
      wanted: ['b'],
      reasons: ['a InsufficientCapacity'],
    },
    {
      title: 'leave a full member although the namespace runs there',
      demand: { requests: cpu('3') },
      candidates: [candidate('a', { limits: cpu('2') }), candidate('b')],
      near: ['a'],
      wanted: ['b'],
      reasons: ['a InsufficientCapacity'],
    },
    {
      title: 'keep copies even over domains',
      demand: { spread: [{ topologyKey: 'region', maxSkew: 1 }] },
      candidates: three.map((one) => ({ ...one, ownLoad: one.name === 'a' ? 1 : 0, load: one.name === 'a' ? 1 : 5 })),
      wanted: ['b'],
      reasons: ['a SpreadUneven'],
    },
    {
      title: 'keep the copy that serves when its member is back before the new one serves',
      candidates: [candidate('a', { load: 9 }), candidate('b')],
      current: ['a', 'b'],
      serving: ['a'],
      wanted: ['a'],
      reasons: [],
    },
  ] as {
    title: string
    target?: Target
    demand?: Partial<Demand>
    candidates: Candidate[]
    current?: string[]
    serving?: string[]
    near?: string[]
    wanted?: string[]
    reasons: string[]
  }[]) {
    it(title, () => {
      const found = choose({ target, demand: { ...noDemand, ...demand }, candidates, current, serving, near })
      expect(found.wanted).to.deep.equal(wanted ? { kind: 'members', names: wanted } : { kind: 'undecided' })
      expect(found.rejected.map(({ cluster, reason }) => `${cluster} ${reason}`)).to.deep.equal(reasons)
    })
  }

  it('tell the numbers of a member without room', () => {
    const demand = { ...noDemand, requests: amountsOf({ cpu: '3', memory: '1Gi' }) }
    const full = candidate('a', { limits: amountsOf({ cpu: '4', memory: '8Gi' }), requested: cpu('1500m') })
    expect(choose({ target: best, demand, candidates: [full], current: [] }).held[0]?.message).to.equal(
      'member cluster "a" has no room: it needs cpu=3; free: cpu=2500m of cpu=4',
    )
  })
})
