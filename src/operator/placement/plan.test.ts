import { expect } from 'chai'
import type { CopyState, PlacedOn } from '#crds/index.ts'
import { decide, noDemand, type Choice, type CopySeen, type Decision } from '#placement/index.ts'
import type { Observed } from './observe.ts'
import { plan, type Plan } from './plan.ts'

const candidate = { ready: true, state: 'Active', admits: true, load: 0 } as const
const choice = (parts: Partial<Choice>): Choice => ({
  namespace: 'shop',
  target: { kind: 'best' },
  source: 'no rule',
  placementKey: undefined,
  demand: noDemand,
  serving: [],
  candidates: [
    { name: 'east', ...candidate },
    { name: 'west', ...candidate },
  ],
  current: [],
  near: [],
  volumesIn: [],
  move: 'makeBeforeBreak',
  hasEnded: false,
  ...parts,
})
const on = (...names: string[]): Decision['wanted'] => ({ kind: 'members', names })
const west: Choice['target'] = { kind: 'members', names: ['west'] }
const both: Choice['target'] = { kind: 'members', names: ['east', 'west'] }
const drained = [{ name: 'east', ...candidate, state: 'Draining' as const }]
const free = { name: 'west', ...candidate }

describe('where a workload should run', () => {
  for (const { title, given, wanted } of [
    { title: 'a Deployment in all members that are named', given: { target: both }, wanted: on('east', 'west') },
    {
      title: 'a StatefulSet in one of them, if it can where it is',
      given: { target: both, move: 'breakBeforeMake', current: ['west'] },
      wanted: on('west'),
    },
    {
      title: 'a Job that runs where it is',
      given: { target: west, move: 'stays', current: ['east'] },
      wanted: on('east'),
    },
    {
      title: 'a Job elsewhere, if its member is fenced',
      given: {
        move: 'stays',
        current: ['east'],
        candidates: [
          { name: 'east', ...candidate, ready: false, isFenced: true },
          { name: 'west', ...candidate },
        ],
      },
      wanted: on('west'),
    },
    { title: 'a new Job where it is wanted', given: { target: west, move: 'stays' }, wanted: on('west') },
    { title: 'a Job that has ended nowhere again', given: { move: 'stays', hasEnded: true }, wanted: { kind: 'none' } },
    {
      title: 'a Job that has ended not in a member that is drained',
      given: { move: 'stays', hasEnded: true, current: ['east'], candidates: drained },
      wanted: { kind: 'none' },
    },
    {
      title: 'a Job that runs in a member that is drained until it ends',
      given: { move: 'stays', current: ['east'], candidates: drained },
      wanted: on('east'),
    },
    { title: 'what has a volume with its volume', given: { volumesIn: ['west'] }, wanted: on('west') },
    {
      title: 'what has a volume that stays not elsewhere',
      given: { volumesIn: ['east'], volumesStay: 'no rule', target: west },
      wanted: { kind: 'undecided' },
    },
    {
      title: 'what has a volume that moves where it is asked for',
      given: { volumesIn: ['east'], target: west },
      wanted: on('west'),
    },
    {
      title: 'what has a volume that moves in its member, while nobody asks for another one',
      given: { volumesIn: ['west'], current: ['west'] },
      wanted: on('west'),
    },
    {
      title: 'what has a volume that moves away from a member that is drained',
      given: { volumesIn: ['east'], current: ['east'], serving: ['east'], candidates: [...drained, free] },
      wanted: on('west'),
    },
    {
      title: 'what has a volume in a member that does not answer nowhere else',
      given: {
        volumesIn: ['east'],
        target: west,
        candidates: [{ name: 'east', ...candidate, unreachableMs: 1 }, free],
      },
      wanted: { kind: 'undecided' },
    },
  ] as { title: string; given: Partial<Choice>; wanted: Decision['wanted'] }[])
    it(title, () => expect(decide(choice(given)).wanted).to.deep.equal(wanted))

  it('tells where the volumes are that hold a workload', () => {
    expect(decide(choice({ volumesIn: ['east'], volumesStay: 'no rule', target: west })).held).to.deep.equal([
      {
        cluster: '',
        reason: 'VolumesElsewhere',
        message: 'its volumes are in member cluster "east", and do not move: no rule',
      },
    ])
  })
})

describe('the states of a copy on its way in', () => {
  const began = Date.parse('2026-01-01T00:00:00Z')
  const nothing: CopySeen = { observed: false, available: false, published: false, endpointsGone: true, gone: false }
  const planAfter = (seconds: number, states: Record<string, CopyState>, seen: Partial<CopySeen>): [PlacedOn, Plan] => {
    const since = new Date(began).toISOString()
    const placedOn = Object.fromEntries(Object.entries(states).map(([member, state]) => [member, { state, since }]))
    const members = Object.keys(states)
    const observed: Observed = {
      choice: choice({ target: { kind: 'members', names: ['east'] }, current: members, serving: [] }),
      placedOn,
      seen: () => ({ ...nothing, ...seen }),
      networkOf: () => 'Flat',
      siblings: () => [],
    }
    const times = { drainSeconds: 10, soakSeconds: 2 }
    return [placedOn, plan(observed, { nowMs: began + seconds * 1000, ...times })]
  }

  it('are not written in the first moments', () => {
    const [before, { placedOn, requeueAfterSeconds }] = planAfter(1, { east: 'Syncing' }, { observed: true })
    expect(placedOn).to.equal(before)
    expect(requeueAfterSeconds).to.equal(2)
  })
  it('are written where they last', () => {
    const [, { placedOn }] = planAfter(3, { east: 'Syncing' }, { observed: true })
    expect(placedOn['east']).to.include({ state: 'Applied', since: '2026-01-01T00:00:03.000Z' })
  })
  it('are left out when it serves', () => {
    const [, { placedOn }] = planAfter(0.1, { east: 'Syncing' }, { observed: true, available: true, published: true })
    expect(placedOn['east']?.state).to.equal('Serving')
  })
  it('are written with any change of another copy', () => {
    const [, { placedOn }] = planAfter(1, { east: 'Syncing', west: 'Terminating' }, { observed: true, gone: true })
    expect(Object.entries(placedOn).map(([member, { state }]) => `${member} ${state}`)).to.deep.equal(['east Applied'])
  })
})

describe('a workload that leaves a member which is not joined with others', () => {
  const began = Date.parse('2026-01-01T00:00:00Z')
  const since = new Date(began).toISOString()
  const served: CopySeen = { observed: true, available: true, published: true, endpointsGone: false, gone: false }
  const moved: PlacedOn = { east: { state: 'Serving', since }, west: { state: 'Serving', since } }
  const stateAfter = (siblings: readonly PlacedOn[], decided: () => Choice): string | undefined => {
    const observed: Observed = {
      choice: choice({ target: west, current: ['east', 'west'], serving: ['east', 'west'] }),
      placedOn: moved,
      seen: () => served,
      networkOf: () => 'None',
      siblings: () => siblings.map((placedOn) => ({ placedOn, choice: decided })),
    }
    const times = { drainSeconds: 10, soakSeconds: 2 }
    return plan(observed, { nowMs: began + 60_000, ...times }).placedOn['east']?.state
  }

  it('takes no decision about the others of its namespace when they serve elsewhere', () => {
    let decisions = 0
    const state = stateAfter(
      Array.from({ length: 100 }, () => moved),
      () => {
        decisions++
        return choice({ target: west })
      },
    )
    expect({ state, decisions }).to.deep.equal({ state: 'Draining', decisions: 0 })
  })
  it('waits for one that does not serve elsewhere yet, unless that one stays', () => {
    const here: PlacedOn = { east: { state: 'Serving', since } }
    expect(
      stateAfter([moved, here], () => choice({ target: west })),
      'it moves, too',
    ).to.equal('Serving')
    const stays: Choice['target'] = { kind: 'members', names: ['east'] }
    expect(
      stateAfter([moved, here], () => choice({ target: stays })),
      'it stays',
    ).to.equal('Draining')
  })
})

describe('a StatefulSet whose volumes are copied to another member', () => {
  const since = '2026-01-01T00:00:00Z'
  const serves: CopySeen = { observed: true, available: true, published: true, endpointsGone: false, gone: false }
  const volumes = { in: ['east'], isCopied: () => true, problems: [] }
  const byOrdinal = { in: () => ['east'], isCopied: () => true, firstElsewhere: () => 0 }
  const three = { replicas: 3, start: 0, hasOrdinals: true }
  const set = { target: west, move: 'breakBeforeMake', scale: three, volumesIn: ['east'], current: ['east'] } as const
  for (const { title, given = {}, network = 'Flat', seen = { ...volumes, byOrdinal }, expected } of [
    { title: 'goes pod by pod between members whose pods reach each other', expected: 'by ordinal' },
    { title: 'stops as a whole elsewhere', network: 'Gateway', expected: 'Draining' },
    { title: 'stops as a whole if its pods share a claim', seen: volumes, expected: 'Draining' },
    { title: 'stops as a whole if it has one pod', given: { scale: { ...three, replicas: 1 } }, expected: 'Draining' },
    { title: 'stops as a whole while it is asleep', given: { asleep: 'nobody uses it' }, expected: 'Draining' },
  ] as readonly {
    title: string
    given?: Partial<Choice>
    network?: ReturnType<Observed['networkOf']>
    seen?: Observed['volumes']
    expected: string
  }[])
    it(title, () => {
      const observed: Observed = {
        choice: choice({ ...set, ...given }),
        placedOn: { east: { state: 'Serving', since }, west: { state: 'Assumed', since } },
        seen: () => ({ ...serves, pods: 3, ready: 3, updated: 3 }),
        networkOf: () => network,
        volumes: seen,
        siblings: () => [],
      }
      const times = { drainSeconds: 10, soakSeconds: 2 }
      const { east } = plan(observed, { nowMs: Date.parse(since) + 60_000, ...times }).placedOn
      expect(east?.start === undefined ? east?.state : 'by ordinal').to.equal(expected)
    })
})
