import { expect } from 'chai'
import fc from 'fast-check'
import type { EndingOrdinal, PlacedOn } from '#crds/index.ts'
import { move, type MoveStep } from './move.ts'
import type { CopySeen } from './move-input.ts'

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
