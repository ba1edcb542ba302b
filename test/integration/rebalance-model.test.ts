// A model of rebalancing around the real decisions (findRebalances, choiceOf, plan, moveBegun and MemberUsage): members
// are compared once a minute, moves take some reconciles, tenants scale, and new copies may never serve.
import { expect } from 'chai'
import fc from 'fast-check'
import { cloneJson, type KubeObject } from '#apimachinery/meta/index.ts'
import {
  clustersAnnotation,
  historyAnnotation,
  memberStatusAnnotation,
  newestMove,
  placedOn,
  placedOnAnnotation,
  placementHistory,
  rebalanceAnnotation,
  replicasOf,
  type MemberCluster,
  type PlacedOn,
  type Placement,
  type PlacementRebalance,
} from '#crds/index.ts'
import { findRebalances } from '#operator/placement/rebalancing.ts'
import { applicableRules, choiceOf, memberFacts, type CopySeen, type Rebalancing } from '#placement/index.ts'
import { MemberUsage } from '#operator/placement/member-usage.ts'
import { historyWith, moveBegun } from '#operator/placement/moves.ts'
import type { Observed } from '#operator/placement/observe.ts'
import { plan } from '#operator/placement/plan.ts'

const signal = new AbortController().signal
const minuteMs = 60_000

/** What a workload is besides a Deployment that nothing keeps from moving. */
const traits = [
  'plain',
  'plain',
  'plain',
  'stateful',
  'recreate',
  'optedOut',
  'named',
  'budget',
  'stuck',
  'young',
] as const
type Trait = (typeof traits)[number]

interface Given {
  readonly cpu: number
  readonly member: number
  readonly trait: Trait
}

interface Rule extends PlacementRebalance {
  readonly maxMoves: number
  readonly cooldownSeconds: number
}

const member = (name: string, cpu = '40'): MemberCluster => ({
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'MemberCluster',
  metadata: { name },
  spec: { capacity: { limits: { cpu } }, serviceNetwork: { type: 'Flat' } },
  status: { conditions: [{ type: 'Ready', status: 'True', reason: 'Up', message: '', lastTransitionTime: '' }] },
})

function deployment(name: string, { cpu, trait }: Given, start: number): KubeObject {
  const requests = { cpu: String(cpu) }
  const spec = {
    replicas: 1,
    strategy: trait === 'recreate' ? { type: 'Recreate' } : { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0 } },
    template: { metadata: { labels: { trait } }, spec: { containers: [{ name: 'c', resources: { requests } }] } },
  }
  const moved = [{ time: new Date(start).toISOString(), from: [], to: ['a'], cause: 'New', message: '' }]
  const annotations = {
    ...(trait === 'optedOut' && { [rebalanceAnnotation]: 'never' }),
    ...(trait === 'young' && { [historyAnnotation]: JSON.stringify(moved) }),
  }
  return {
    apiVersion: 'apps/v1',
    kind: trait === 'stateful' ? 'StatefulSet' : 'Deployment',
    metadata: { name, annotations },
    spec,
  }
}

const budget: KubeObject = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'all' },
  spec: { selector: { matchLabels: { trait: 'budget' } }, maxUnavailable: 0 },
}

class World {
  readonly start = Date.parse('2026-01-01T00:00:00Z')
  now = this.start
  readonly members: MemberCluster[]
  rule: PlacementRebalance | undefined
  readonly objects = new Map<string, KubeObject>()
  readonly usage = new MemberUsage()
  readonly begins = new Map<string, Rebalancing>()
  /** Workloads that were looked at by searches. */
  looked = 0
  /** Moves for balance: which workload, when, from where to where. */
  readonly moves: { readonly key: string; readonly at: number; readonly way: string }[] = []
  readonly #traits = new Map<string, Trait>()

  constructor(members: MemberCluster[], rule: PlacementRebalance | undefined) {
    this.members = members
    this.rule = rule
  }

  add(key: string, given: Given): void {
    const object = deployment(key, given, this.start)
    const name = this.members[given.member]!.metadata.name
    if (given.trait === 'named') object.metadata.annotations![clustersAnnotation] = name
    this.#traits.set(key, given.trait)
    this.write(key, object, { [name]: { state: 'Serving', since: new Date(0).toISOString() } })
  }

  write(key: string, object: KubeObject, placed: PlacedOn): void {
    const next = cloneJson(object)
    const reports = Object.keys(placed).map((name): [string, string] => [
      memberStatusAnnotation(name),
      JSON.stringify({ availableReplicas: placed[name]!.replicas ?? replicasOf(object) }),
    ])
    const others = Object.entries(next.metadata.annotations ?? {}).filter(([name]) => !name.startsWith('status.'))
    next.metadata.annotations = {
      ...Object.fromEntries([...others, ...reports]),
      [placedOnAnnotation]: JSON.stringify(placed),
    }
    this.objects.set(key, next)
    this.usage.observe(key, next)
  }

  placed(key: string): PlacedOn {
    return placedOn(this.objects.get(key)!)
  }

  observe(key: string): Observed {
    const workload = this.objects.get(key)!
    const begins = this.begins.get(key)
    const choice = choiceOf({
      ...{ workload, namespace: 'shop', namespaceObject: undefined, claims: [], near: [], nowMs: this.now },
      rules: applicableRules({ ofTenant: [], ofAdmins: this.placements() }, { clusterLabels: {}, namespaceLabels: {} }),
      members: () => this.members,
      candidates: this.members.map((one) => ({
        ...memberFacts(one, { clusterLabels: {}, workload }),
        ...{ state: 'Active' as const, load: 0 },
        requested: this.usage.requestedIn(one.metadata.name, { without: key }),
      })),
      keyOf: (placement) => placement,
      ...(begins && { rebalancing: begins }),
    })
    const networkOf = () => 'Flat' as const
    return {
      choice,
      placedOn: this.placed(key),
      seen: (name) => this.#seen(key, name),
      networkOf,
      siblings: () => [],
    }
  }

  #seen(key: string, name: string): CopySeen {
    const copy = this.placed(key)[name]
    // Each step of a new copy takes more than a minute, so that others are compared meanwhile.
    const isQuick = copy?.state === 'Serving' || this.now - Date.parse(copy?.since ?? '') >= 80_000
    const works = copy?.state === 'Serving' || (isQuick && this.#traits.get(key) !== 'stuck')
    const replicas = copy?.replicas ?? replicasOf(this.objects.get(key)!)
    const pods = works ? replicas : 0
    return { observed: works, available: works, published: works, endpointsGone: true, gone: true, ready: pods, pods }
  }

  placements(): Placement[] {
    const division = this.division === undefined ? {} : { replicas: this.division }
    const spec = { ...(this.rule && { rebalance: this.rule }), ...division }
    return [{ apiVersion: 'kcp.dev/v1alpha1', kind: 'Placement', metadata: { name: 'balance' }, spec }]
  }

  division: { readonly mode: 'Divide'; readonly division: 'ByCapacity' } | undefined

  reconcile(key: string): void {
    const workload = this.objects.get(key)!
    const observed = this.observe(key)
    const { placedOn: after } = plan(observed, { nowMs: this.now, drainSeconds: 10, soakSeconds: 2 })
    this.begins.delete(key)
    if (after === observed.placedOn) return
    const move = moveBegun(observed.placedOn, after, observed.choice)
    const next = cloneJson(workload)
    if (move !== undefined) {
      const time = new Date(this.now).toISOString()
      next.metadata.annotations = {
        ...next.metadata.annotations,
        [historyAnnotation]: historyWith(workload, move, time),
      }
    }
    if (move?.cause === 'Rebalance')
      this.moves.push({ key, at: this.now, way: `${move.from.join()}>${move.to.join()}` })
    this.write(key, next, after)
  }

  /** Returns the keys that were found. */
  async compare(): Promise<string[]> {
    const found: string[] = []
    const keysIn = (name: string): string[] => [...this.objects.keys()].filter((key) => name in this.placed(key))
    await findRebalances(
      {
        adminPlacements: () => this.placements(),
        members: () => this.members,
        isFailoverFrozen: false,
        networkOf: () => 'Flat' as const,
        requestedIn: (name) => this.usage.requestedIn(name, { without: '' }),
        workloadKeysIn: keysIn,
        workload: (key) => {
          this.looked++
          return this.objects.get(key)
        },
        observe: (key) => this.observe(key),
        budgetsOf: () => [budget],
        nowMs: this.now,
      },
      ({ key, rebalancing }) => {
        found.push(key)
        if (rebalancing !== undefined) this.begins.set(key, rebalancing)
      },
      signal,
    )
    return found
  }

  /** A minute: one comparison, and reconciles every few seconds. */
  async minute(): Promise<void> {
    const found = await this.compare()
    const end = this.now + minuteMs
    for (const key of found) this.reconcile(key)
    for (; this.now < end; this.now += 5000)
      for (const [key, object] of this.objects) if (Object.keys(placedOn(object)).length > 1) this.reconcile(key)
  }

  moving(): string[] {
    return [...this.objects]
      .filter(([, object]) => Object.keys(placedOn(object)).length > 1 && newestMove(object)?.cause === 'Rebalance')
      .map(([key]) => key)
  }
}

const worlds = fc.record({
  units: fc.array(
    fc.record({
      cpu: fc.integer({ min: 1, max: 6 }),
      member: fc.constantFrom(0, 0, 0, 1, 2),
      trait: fc.constantFrom(...traits),
    }),
    { minLength: 5, maxLength: 14 },
  ),
  rule: fc.record({
    thresholdPercent: fc.integer({ min: 5, max: 30 }),
    maxMoves: fc.integer({ min: 1, max: 3 }),
    cooldownSeconds: fc.constantFrom(60, 600, 3600),
  }),
  scales: fc.array(fc.record({ minute: fc.nat(29), unit: fc.nat(13), cpu: fc.integer({ min: 1, max: 6 }) }), {
    maxLength: 6,
  }),
})
type Story = (typeof worlds extends fc.Arbitrary<infer T> ? T : never) & { readonly rule: Rule }

/** Half an hour in which tenants change what they request, and one and a half in which they do not. */
async function play({ units, rule, scales }: Story): Promise<World> {
  const world = new World(
    ['a', 'b', 'c'].map((name) => member(name)),
    rule,
  )
  units.forEach((given, i) => world.add(`w${i}`, given))
  for (let minute = 0; minute < 120; minute++) {
    for (const { unit, cpu } of scales.filter((one) => one.minute === minute)) {
      const key = `w${unit % units.length}`
      const object = cloneJson(world.objects.get(key)!)
      const spec = object['spec'] as { template: { spec: { containers: { resources: object }[] } } }
      spec.template.spec.containers[0]!.resources = { requests: { cpu: String(cpu) } }
      world.write(key, object, world.placed(key))
    }
    await world.minute()
    expect(world.moving().length, 'moves under way').to.be.at.most(rule.maxMoves)
    for (const [key] of world.objects)
      expect(
        Object.values(world.placed(key)).some(({ state }) => state === 'Serving'),
        `${key} serves`,
      ).to.equal(true)
  }
  units.forEach(({ trait }, i) => {
    const own = world.moves.filter(({ key }) => key === `w${i}`)
    if (['stateful', 'recreate', 'optedOut', 'named', 'budget'].includes(trait)) expect(own, trait).to.have.length(0)
    if (trait === 'young' && own[0] !== undefined)
      expect(own[0].at - world.start).to.be.at.least(rule.cooldownSeconds * 1000)
    own.slice(1).forEach(({ at }, n) => expect(at - own[n]!.at).to.be.at.least(rule.cooldownSeconds * 1000))
  })
  return world
}

describe('rebalancing, in a model of members that are compared every minute', function () {
  this.timeout(process.env['KCP_TEST_LONG'] === '1' ? 1_800_000 : 120_000)
  const runs = process.env['KCP_TEST_LONG'] === '1' ? 1000 : 40

  it('moves few workloads at a time, none against its will and none twice within its cool-down, and ends', async () => {
    let moves = 0
    const property = fc.asyncProperty(worlds, async (story) => {
      const world = await play(story)
      moves += world.moves.length
      // What never serves elsewhere is tried again after each cool-down; everything else has come to rest.
      const stuck = new Set(story.units.flatMap(({ trait }, i) => (trait === 'stuck' ? [`w${i}`] : [])))
      if (stuck.size > 0) return
      const late = world.moves.filter(
        ({ at }) => at >= world.start + 30 * minuteMs + 2 * story.rule.cooldownSeconds * 1000,
      )
      if (story.rule.cooldownSeconds < 1800) expect(late.map(({ key, way }) => `${key} ${way}`)).to.deep.equal([])
    })
    await fc.assert(property, { numRuns: runs, endOnFailure: true })
    console.log(`      ${moves} moves in ${runs} stories of two hours`)
    expect(moves).to.be.greaterThan(runs / 4)
  })

  const crowd: readonly Given[] = Array.from({ length: 6 }, () => ({ cpu: 5, member: 0, trait: 'plain' as const }))
  const worldWith = (rule: PlacementRebalance | undefined, units: readonly Given[] = crowd): World => {
    const world = new World(
      ['a', 'b'].map((name) => member(name)),
      rule,
    )
    units.forEach((given, i) => world.add(`w${i}`, given))
    return world
  }

  it('does nothing and looks at no workload where it is off', async () => {
    for (const rule of [undefined, { mode: 'Never' as const }]) {
      const world = worldWith(rule)
      for (let i = 0; i < 5; i++) await world.minute()
      expect([world.moves.length, world.looked]).to.deep.equal([0, 0])
    }
  })

  it('moves workloads until no move gains enough, and writes why', async () => {
    const world = worldWith({ thresholdPercent: 20, maxMoves: 1 })
    for (let i = 0; i < 10; i++) await world.minute()
    // 75 % and 0 %: two go, with which 50 % and 25 % are left; the next one would gain 12.5.
    expect(world.moves.map(({ way }) => way)).to.deep.equal(['a>b', 'a>b'])
    const moved = world.objects.get(world.moves[0]!.key)!
    expect(placementHistory(moved)[0]).to.deep.include({
      cause: 'Rebalance',
      message:
        'member cluster "a" is 75 % full, "b" will be 13 % full with this workload; Placement "balance" moves workloads for a difference of 20 percentage points',
    })
    expect(Object.keys(placedOn(moved))).to.deep.equal(['b'])
  })

  it('moves no more because a copy that is about to go still counts where it is', async () => {
    const world = worldWith({ thresholdPercent: 20, maxMoves: 6 })
    await world.minute()
    expect(world.moving()).to.have.length(2)
    for (let i = 0; i < 10; i++) await world.minute()
    expect(world.moves).to.have.length(2)
  })

  it('lets one workload after the other move if no more may at a time', async () => {
    const world = worldWith({ thresholdPercent: 20, maxMoves: 1 })
    expect(await world.compare()).to.have.length(1)
    await world.minute()
    expect(world.moving()).to.have.length(1)
    expect(await world.compare(), 'while it moves').to.deep.equal([])
  })

  it('withdraws a new copy that does not serve within ten minutes; the old one serves all the time', async () => {
    const world = worldWith({ thresholdPercent: 20, maxMoves: 1, cooldownSeconds: 3600 }, [
      { cpu: 20, member: 0, trait: 'stuck' },
      { cpu: 15, member: 0, trait: 'named' },
    ])
    const states: string[] = []
    for (let i = 0; i < 15; i++) {
      await world.minute()
      const placed = world.placed('w0')
      expect(placed['a']?.state).to.equal('Serving')
      states.push(Object.keys(placed).join())
    }
    expect(states[5]).to.equal('a,b')
    expect(states[14]).to.equal('a')
    expect(world.moves).to.have.length(1)
  })

  it('withdraws what has not arrived when an admin turns it off', async () => {
    const world = worldWith({ thresholdPercent: 20, maxMoves: 1 }, [
      { cpu: 20, member: 0, trait: 'stuck' },
      { cpu: 15, member: 0, trait: 'named' },
    ])
    await world.minute()
    expect(world.moving()).to.deep.equal(['w0'])
    world.rule = undefined
    await world.minute()
    expect(Object.keys(world.placed('w0'))).to.deep.equal(['a'])
  })

  it('finds a workload divided by capacity whose members should have other parts, and no other', async () => {
    const world = worldWith({ thresholdPercent: 20 }, [])
    world.division = { mode: 'Divide', division: 'ByCapacity' }
    world.add('w0', { cpu: 1, member: 0, trait: 'plain' })
    const divided = cloneJson(world.objects.get('w0')!)
    ;(divided['spec'] as { replicas: number }).replicas = 10
    const since = new Date(0).toISOString()
    const parts = (a: number, b: number): PlacedOn => ({
      a: { state: 'Serving', since, replicas: a },
      b: { state: 'Serving', since, replicas: b },
    })
    world.write('w0', divided, parts(9, 1))
    expect(await world.compare()).to.deep.equal(['w0'])
    world.reconcile('w0')
    for (let i = 0; i < 5; i++) await world.minute()
    expect(Object.values(world.placed('w0')).map(({ replicas }) => replicas)).to.deep.equal([5, 5])
    expect(await world.compare()).to.deep.equal([])
    world.write('w0', divided, parts(6, 4))
    expect(await world.compare(), 'a tenth of the replicas').to.deep.equal([])
    world.rule = undefined
    world.write('w0', divided, parts(9, 1))
    expect(await world.compare(), 'off').to.deep.equal([])
  })
})
