import { expect } from 'chai'
import fc from 'fast-check'
import type { EndingOrdinal, PlacedOn } from '#crds/index.ts'
import { move, type MoveStep } from './move.ts'
import type { CopySeen, MoveInput, VolumesSeen } from './move-input.ts'

const start = Date.parse('2026-01-01T00:00:00Z')
const since = new Date(start).toISOString()

/** Three pods serve in east and should go to west, where one of them is already. */
function step(
  ending: EndingOrdinal | undefined,
  {
    after,
    east = {},
    west = {},
    target = 'west',
  }: { after: number } & {
    east?: Partial<CopySeen>
    west?: Partial<CopySeen>
    target?: string
  },
): MoveStep {
  const placedOn: PlacedOn = {
    east: { state: 'Serving', since, start: 0, replicas: 2, paused: true, ...(ending && { ending }) },
    west: { state: 'Serving', since, start: 2, replicas: 1, paused: true },
  }
  const serves = { observed: true, available: true, published: true, endpointsGone: false, gone: false }
  const seen: Record<string, CopySeen> = {
    east: { ...serves, pods: 2, ready: 2, updated: 2, endpoints: 2, ...east },
    west: { ...serves, pods: 1, ready: 1, updated: 1, endpoints: 1, ...west },
  }
  return move({
    now: start + after,
    placedOn,
    decision: { wanted: { kind: 'members', names: [target] }, held: [], rejected: [] },
    strategy: 'ordinalByOrdinal',
    scale: { replicas: 3, start: 0 },
    seen: (name) => seen[name]!,
    mayDrain: () => true,
    drainSeconds: 10,
    soakSeconds: 2,
  })
}

describe('the pod of a StatefulSet that goes to another member next', () => {
  const told = { ordinal: 1, since }
  const at = (ms: number): string => new Date(start + ms).toISOString()
  for (const { title, given, ending, replicas } of [
    {
      title: 'takes no new requests before it ends',
      given: step(undefined, { after: 500 }),
      ending: { ordinal: 1, since: at(500) },
      replicas: 2,
    },
    {
      title: 'is waited for while a member knows its endpoint',
      given: step(told, { after: 29_000 }),
      ending: told,
      replicas: 2,
    },
    {
      title: 'is told once no member knows it',
      given: step(told, { after: 700, east: { endpoints: 1 } }),
      ending: { ordinal: 1, since: at(700), isKnown: true },
      replicas: 2,
    },
    {
      title: 'is waited for no longer than the pods of a copy that drains',
      given: step(told, { after: 30_000 }),
      ending: { ordinal: 1, since: at(30_000), isKnown: true },
      replicas: 2,
    },
    {
      title: 'gets the soak time for its last requests',
      given: step({ ...told, isKnown: true }, { after: 1900, east: { endpoints: 1 } }),
      ending: { ...told, isKnown: true },
      replicas: 2,
    },
    {
      title: 'ends after that',
      given: step({ ...told, isKnown: true }, { after: 2000, east: { endpoints: 1 } }),
      ending: undefined,
      replicas: 1,
    },
    {
      title: 'takes requests again where it is no longer to go',
      given: step(told, { after: 500, east: { endpoints: 1 }, target: 'east' }),
      ending: undefined,
      replicas: 2,
    },
    {
      title: 'takes requests again while what went before does not serve',
      given: step(told, { after: 500, east: { endpoints: 1 }, west: { available: false } }),
      ending: undefined,
      replicas: 2,
    },
    {
      title: 'stays while another pod of its member is not ready',
      given: step({ ...told, isKnown: true }, { after: 2000, east: { endpoints: 1, ready: 1, available: false } }),
      ending: undefined,
      replicas: 2,
    },
    {
      title: 'goes where no pod of its member is ready',
      given: step({ ...told, isKnown: true }, { after: 2000, east: { endpoints: 0, ready: 0, available: false } }),
      ending: undefined,
      replicas: 1,
    },
    {
      title: 'stays while the wanted member rolls out',
      given: step({ ...told, isKnown: true }, { after: 2000, west: { updated: 0 } }),
      ending: undefined,
      replicas: 2,
    },
  ])
    it(title, () => {
      const east = given.placedOn['east']
      expect([east?.ending, east?.replicas]).to.deep.equal([ending, replicas])
    })

  it('is looked at again when the soak time is over', () => {
    const { requeueAfterMs } = step({ ...told, isKnown: true }, { after: 1900, east: { endpoints: 1 } })
    expect(requeueAfterMs).to.equal(100)
  })
})

describe('a StatefulSet that moves pod by pod while its tenant rolls out', () => {
  it('has one pod at most that is not ready, and ends in the wanted member with the present template', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.constantFrom(0, 3),
        fc.array(
          fc.record({
            steps: fc.shuffledSubarray(steps),
            event: fc.option(fc.constantFrom('rollsOut', 'goesTo'), { freq: 5, nil: undefined }),
            who: fc.constantFrom<Name>('east', 'west'),
          }),
          { maxLength: 60, size: 'max' },
        ),
        (replicas, first, story) => {
          const model = new Model(replicas, first)
          for (const { steps: taken, event, who } of story) {
            if (event !== undefined) model[event](who)
            for (const { act, of } of taken) {
              model[act](of)
              model.check()
            }
          }
          // In the end everybody does what is due, in turns.
          for (let i = 0; i < 400 && !model.isDone(); i++)
            for (const { act, of } of steps) {
              model[act](of)
              model.check()
            }
          expect(model.isDone(), model.toString()).to.equal(true)
        },
      ),
      { numRuns: 300 },
    )
  })
})

type Name = 'east' | 'west'
const steps = (['east', 'west'] as const).flatMap((of) =>
  (['observes', 'controls', 'getsReady', 'reports', 'decides'] as const).map((act) => ({ act, of })),
)
interface Pod {
  revision: number
  isReady: boolean
}
interface Spec {
  start: number
  replicas: number
  paused: boolean
  revision: number
}

/** The scheduler, and two members whose controllers learn of decisions late, and are heard of late. */
class Model {
  readonly #replicas: number
  readonly #first: number
  #now = start
  #revision = 1
  #target: Name = 'west'
  #placedOn: PlacedOn
  readonly #members: Record<
    Name,
    { spec: Spec | undefined; pods: Map<number, Pod>; report: (CopySeen & { source: string }) | undefined }
  >

  constructor(replicas: number, first: number) {
    this.#replicas = replicas
    this.#first = first
    this.#placedOn = { east: { state: 'Serving', since } }
    const pods = new Map(Array.from({ length: replicas }, (_, i) => [first + i, { revision: 1, isReady: true }]))
    this.#members = {
      east: { spec: undefined, pods, report: undefined },
      west: { spec: undefined, pods: new Map(), report: undefined },
    }
    this.observes('east')
    this.reports('east')
  }

  /** The wanted copy in the member. */
  #wanted(who: Name): Spec | undefined {
    const copy = this.#placedOn[who]
    if (copy === undefined || !['Syncing', 'Applied', 'Available', 'Serving', 'Draining'].includes(copy.state))
      return undefined
    const { start: from = this.#first, replicas = this.#replicas, paused = false } = copy
    return { start: from, replicas, paused: copy.start !== undefined && paused, revision: this.#revision }
  }

  observes(who: Name): void {
    const member = this.#members[who]
    member.spec = this.#wanted(who)
    if (member.spec === undefined) member.pods.clear()
  }

  /**
   * One step of the StatefulSet controller: ends what is not in its range, makes what is missing, or replaces an old
   * pod.
   */
  controls(who: Name): void {
    const { spec, pods } = this.#members[who]
    if (spec === undefined) return
    const ordinals = Array.from({ length: spec.replicas }, (_, i) => spec.start + i)
    const ending = [...pods.keys()].filter((ordinal) => !ordinals.includes(ordinal))
    const missing = ordinals.filter((ordinal) => !pods.has(ordinal))
    for (const ordinal of ending) pods.delete(ordinal)
    for (const ordinal of missing) pods.set(ordinal, { revision: spec.revision, isReady: false })
    if (ending.length + missing.length > 0 || spec.paused || [...pods.values()].some(({ isReady }) => !isReady)) return
    const old = ordinals.findLast((ordinal) => pods.get(ordinal)?.revision !== spec.revision)
    if (old !== undefined) pods.delete(old)
  }

  getsReady(who: Name): void {
    for (const pod of this.#members[who].pods.values()) pod.isReady = true
  }

  reports(who: Name): void {
    const member = this.#members[who]
    const pods = [...member.pods.values()]
    const ready = pods.filter(({ isReady }) => isReady).length
    const { spec } = member
    member.report = spec && {
      source: JSON.stringify(spec),
      ...{ observed: true, published: true, endpointsGone: pods.length === 0, gone: false },
      available: ready === spec.replicas && pods.length === spec.replicas,
      ...{ pods: pods.length, ready, endpoints: 0 },
      updated: pods.filter(({ revision }) => revision === spec.revision).length,
    }
  }

  decides(_who: Name): void {
    this.#now += 3000
    const seen = (name: string): CopySeen => {
      const { report, spec, pods } = this.#members[name as Name]
      const isCurrent = report !== undefined && report.source === JSON.stringify(this.#wanted(name as Name))
      const gone = spec === undefined && pods.size === 0 && report === undefined
      const nothing = { observed: false, available: false, published: false, endpointsGone: true, gone }
      return report === undefined
        ? nothing
        : { ...report, observed: isCurrent, available: isCurrent && report.available }
    }
    this.#placedOn = move({
      now: this.#now,
      placedOn: this.#placedOn,
      decision: { wanted: { kind: 'members', names: [this.#target] }, held: [], rejected: [] },
      strategy: 'ordinalByOrdinal',
      scale: { replicas: this.#replicas, start: this.#first },
      seen,
      mayDrain: () => true,
      drainSeconds: 1,
      soakSeconds: 1,
    }).placedOn
  }

  /** The tenant changes the template. */
  rollsOut(_who: Name): void {
    if (this.#revision < 4) this.#revision++
  }

  /**
   * Not while a member has not reported on the decision before: a decision that comes back within that time has the
   * same name as the one that the report is about.
   */
  goesTo(who: Name): void {
    const isReported = (['east', 'west'] as const).every((name) => {
      const { report, spec } = this.#members[name]
      const wanted = JSON.stringify(this.#wanted(name))
      return JSON.stringify(spec) === wanted && report?.source === wanted
    })
    if (isReported) this.#target = who
  }

  check(): void {
    const pods = Object.values(this.#members).flatMap((member) => [...member.pods])
    expect(new Set(pods.map(([ordinal]) => ordinal)).size, `each once: ${this.toString()}`).to.equal(pods.length)
    const ready = pods.filter(([, { isReady }]) => isReady).length
    expect(ready, this.toString()).to.be.at.least(this.#replicas - 1)
  }

  isDone(): boolean {
    const pods = [...this.#members[this.#target].pods.values()]
    return (
      Object.keys(this.#placedOn).join() === this.#target &&
      pods.length === this.#replicas &&
      pods.every(({ isReady, revision }) => isReady && revision === this.#revision)
    )
  }

  toString(): string {
    const members = Object.entries(this.#members).map(([name, { spec, pods }]) => ({ name, spec, pods: [...pods] }))
    return JSON.stringify({ target: this.#target, revision: this.#revision, placedOn: this.#placedOn, members })
  }
}

describe('a StatefulSet with volumes that moves pod by pod', () => {
  /** Two members with what they have made of the record, and the data of each pod. */
  class World {
    readonly data: string[]
    copied = new Set<number>()
    target = 'west'
    placedOn: PlacedOn = { east: { state: 'Serving', since } }
    now = start
    readonly replicas: number
    locked: { ordinal: number; member: string } | undefined
    /** The member with a claim that nobody knows. */
    unknownIn: string | undefined

    /** `claims`: how many ordinals have data, which may be more than have pods. */
    constructor(replicas: number, claims = replicas) {
      this.replicas = replicas
      this.data = Array.from({ length: claims }, () => 'east')
    }

    /** The ordinals of the pods that run there: a member makes no pod whose data is elsewhere, or on its way. */
    ordinals(member: string): number[] {
      const isHere = (ordinal: number): boolean => (this.data[ordinal] ?? member) === member
      return this.range(member).filter((ordinal) => isHere(ordinal) && this.locked?.ordinal !== ordinal)
    }

    range(member: string): number[] {
      const copy = this.placedOn[member]
      if (copy === undefined || ['Assumed', 'Terminating', 'Held', 'Fenced'].includes(copy.state)) return []
      const { start: first = 0, replicas = this.replicas } = copy
      return Array.from({ length: replicas }, (_, index) => first + index)
    }

    step(): void {
      this.now += 5000
      const seen = (member: string): CopySeen => {
        const count = this.ordinals(member).length
        const isWhole = count === this.range(member).length
        const serves = { observed: isWhole, available: isWhole, published: true, endpointsGone: count === 0 }
        const counts = { pods: count, ready: count, updated: count, endpoints: count }
        return { ...serves, ...counts, gone: this.placedOn[member]?.state === 'Terminating' }
      }
      const { placedOn } = move({ ...this.input(), seen })
      this.placedOn = placedOn
      this.check()
    }

    input(): Omit<MoveInput, 'seen'> {
      const { unknownIn } = this
      const isCopied = (ordinal: number, to: string): boolean =>
        (unknownIn ?? to) === to && (this.data[ordinal] === to || this.copied.has(ordinal))
      const members = [...new Set(this.data)]
      const volumes: VolumesSeen = {
        in: members,
        ...(unknownIn !== undefined && { unknownIn }),
        isCopied: (to) => this.data.every((_, ordinal) => isCopied(ordinal, to)),
        byOrdinal: {
          in: (ordinal) => this.data.slice(ordinal, ordinal + 1),
          isCopied,
          firstElsewhere: (member) => {
            const found = this.data.findIndex((where) => where !== member)
            return found < 0 ? undefined : found
          },
        },
      }
      return {
        now: this.now,
        placedOn: this.placedOn,
        decision: { wanted: { kind: 'members', names: [this.target] }, held: [], rejected: [] },
        strategy: 'ordinalByOrdinal',
        scale: { replicas: this.replicas, start: 0 },
        mayDrain: () => true,
        drainSeconds: 0,
        soakSeconds: 0,
        volumes,
      }
    }

    /** The claim of the pod for which a member waits is locked: its data arrives there, or the lock is given up. */
    lock(): void {
      for (const [member, { awaits }] of Object.entries(this.placedOn))
        if (awaits !== undefined && this.locked === undefined) this.locked = { ordinal: awaits, member }
    }

    unlock({ arrives }: { readonly arrives: boolean }): void {
      if (this.locked !== undefined && arrives) this.data[this.locked.ordinal] = this.locked.member
      this.locked = undefined
    }

    /** The data for which a member waits arrives. */
    arrive(): void {
      for (const [member, { awaits }] of Object.entries(this.placedOn)) {
        if (awaits === undefined || this.locked !== undefined) continue
        for (const other of ['east', 'west', 'north'])
          expect(this.ordinals(other), `${other} has a pod whose data moves`).to.not.include(awaits)
        this.data[awaits] = member
      }
    }

    check(): void {
      const running = ['east', 'west', 'north'].flatMap((member) =>
        this.ordinals(member).map((ordinal) => ({ member, ordinal })),
      )
      const ordinals = running.map(({ ordinal }) => ordinal)
      expect(new Set(ordinals).size, `a pod is in two members: ${JSON.stringify(this.placedOn)}`).to.equal(
        ordinals.length,
      )
      expect(ordinals.length, 'pods').to.be.at.least(this.replicas - 1)
      for (const { member, ordinal } of running)
        expect(this.data[ordinal], `the data of pod ${ordinal} in ${member}`).to.equal(member)
      expect(Object.values(this.placedOn).filter(({ awaits }) => awaits !== undefined).length).to.be.at.most(1)
    }
  }

  it('changes nothing until all is copied, so that rollouts go on, and has no limit of time meanwhile', () => {
    const world = new World(3)
    for (let i = 0; i < 300; i++) world.step()
    const { east, west } = world.placedOn
    expect([east?.start, east?.wait?.gate, east?.wait?.until]).to.deep.equal([undefined, 'VolumesCopied', undefined])
    expect([west?.state, west?.wait?.until]).to.deep.equal(['Assumed', undefined])
  })

  it('has one pod at most that waits for its data, and ends in the other member', () => {
    const world = new World(4)
    for (const ordinal of [0, 1, 2, 3]) world.copied.add(ordinal)
    for (let i = 0; i < 60; i++) {
      world.step()
      world.arrive()
    }
    expect(world.placedOn).to.have.keys('west')
    expect(world.placedOn['west']).to.include({ state: 'Serving' }).and.not.have.any.keys('start', 'replicas', 'awaits')
  })

  it('ends no pod while a member has a claim that nobody knows', () => {
    const world = new World(3)
    for (const ordinal of [0, 1, 2]) world.copied.add(ordinal)
    world.unknownIn = 'east'
    for (let i = 0; i < 30; i++) world.step()
    expect([world.ordinals('east'), world.ordinals('west')]).to.deep.equal([[0, 1, 2], []])
    expect(world.placedOn['east']?.wait).to.include({ gate: 'VolumesCopied', then: 'Waits' })
    world.unknownIn = undefined
    for (let i = 0; i < 60; i++) {
      world.step()
      world.arrive()
    }
    expect(world.placedOn).to.have.keys('west')
  })

  it('takes claims along that no pod has at present', () => {
    const world = new World(2, 4)
    for (const ordinal of [0, 1, 2, 3]) world.copied.add(ordinal)
    for (let i = 0; i < 60; i++) {
      world.step()
      world.arrive()
    }
    expect(world.placedOn).to.have.keys('west')
    expect(world.data).to.deep.equal(['west', 'west', 'west', 'west'])
  })

  it('does not end a pod whose data is not copied', () => {
    const world = new World(3)
    for (const ordinal of [0, 1, 2]) world.copied.add(ordinal)
    for (let i = 0; i < 60; i++) {
      world.step()
      world.arrive()
      if (world.data[2] === 'west') world.copied.delete(1)
    }
    expect([world.ordinals('east'), world.ordinals('west')]).to.deep.equal([[0, 1], [2]])
    expect(world.placedOn['east']?.wait).to.include({ gate: 'VolumesCopied', then: 'Waits' })
  })

  it('never runs a pod without its data or twice, whatever is asked for meanwhile', () => {
    const names = ['east', 'west', 'north']
    const event = fc.constantFrom(
      ...['step', 'arrive', 'copy', 'lock', 'land', 'unlock', 'step', 'arrive', 'step', ...names],
    )
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 0, max: 2 }),
        fc.array(event, { maxLength: 80, size: 'max' }),
        (replicas, more, events) => {
          const world = new World(replicas, replicas + more)
          for (const one of events) {
            if (one === 'step') world.step()
            else if (one === 'arrive') world.arrive()
            else if (one === 'lock') world.lock()
            else if (one === 'land' || one === 'unlock') world.unlock({ arrives: one === 'land' })
            else if (one === 'copy') world.data.forEach((_, ordinal) => world.copied.add(ordinal))
            else world.target = one
          }
          world.data.forEach((_, ordinal) => world.copied.add(ordinal))
          world.unlock({ arrives: true })
          for (let i = 0; i < 150; i++) {
            world.step()
            world.arrive()
          }
          expect(world.placedOn).to.have.keys(world.target)
          expect(world.ordinals(world.target)).to.have.length(replicas)
          expect(new Set(world.data)).to.deep.equal(new Set([world.target]))
        },
      ),
      { numRuns: 300 },
    )
  })
})
