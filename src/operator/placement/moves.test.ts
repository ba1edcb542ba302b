import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { CopyState, PlacedOn } from '#crds/index.ts'
import { noDemand, parseTarget, type Candidate } from '#placement/index.ts'
import { historyWith, lossEvents, moveBegun, moveEvent, settledOn, type Move } from './moves.ts'
import type { Choice } from '#placement/index.ts'

const placed = (states: Record<string, CopyState>): PlacedOn =>
  Object.fromEntries(Object.entries(states).map(([name, state]) => [name, { state }]))
const candidate = (name: string, parts: Partial<Candidate> = {}): Candidate => ({
  name,
  ready: true,
  state: 'Active',
  admits: true,
  load: 0,
  ...parts,
})
const choice = (parts: Partial<Choice>): Choice => ({
  namespace: 'shop',
  target: { kind: 'best' },
  source: 'no rule',
  placementKey: undefined,
  demand: noDemand,
  candidates: [candidate('east'), candidate('west')],
  current: [],
  serving: [],
  near: [],
  volumesIn: [],
  move: 'makeBeforeBreak',
  hasEnded: false,
  ...parts,
})

describe('the story of a workload', () => {
  const drained = choice({ candidates: [candidate('east', { state: 'Draining' }), candidate('west')] })
  const annotated = choice({ target: parseTarget('west'), source: 'annotation kcp.dev/clusters of the object' })
  for (const { title, before = {}, after, given = choice({}), message } of [
    {
      title: 'begins with its first member',
      after: { west: 'Syncing' },
      message: 'goes to member cluster "west": chosen by no rule',
    },
    {
      title: 'tells that a drain moves it',
      before: { east: 'Serving' },
      after: { east: 'Serving', west: 'Syncing' },
      given: drained,
      message: 'moves from member cluster "east" to "west" (Drain): member cluster "east" is being drained',
    },
    {
      title: 'tells who asked for another member',
      before: { east: 'Serving' },
      after: { east: 'Serving', west: 'Syncing' },
      given: annotated,
      message: 'moves from member cluster "east" to "west" (Edit): chosen by annotation kcp.dev/clusters of the object',
    },
    {
      title: 'tells that it got one more member',
      before: { east: 'Serving' },
      after: { east: 'Serving', west: 'Syncing' },
      given: choice({ target: parseTarget('east,west'), source: 'Placement "p"' }),
      message: 'also runs on "west" (Edit): chosen by Placement "p"',
    },
    {
      title: 'does not repeat a move that goes on',
      before: { east: 'Serving', west: 'Syncing' },
      after: { east: 'Serving', west: 'Serving' },
      given: drained,
      message: undefined,
    },
    { title: 'does not call a wish that is Held a move', after: { west: 'Held' }, message: undefined },
  ] as {
    title: string
    before?: Record<string, CopyState>
    after: Record<string, CopyState>
    given?: Choice
    message?: string
  }[]) {
    it(title, () => {
      const move = moveBegun(placed(before), placed(after), given)
      expect(move && moveEvent(move).message).to.equal(message)
    })
  }

  it('names the members and why they were chosen when it moves for balance', () => {
    const rebalancing = { from: 'east', to: 'west', message: 'east is full', isOver: false }
    const move = moveBegun(
      placed({ east: 'Serving' }),
      placed({ east: 'Serving', west: 'Assumed' }),
      choice({ rebalancing }),
    )
    expect(move).to.deep.equal({ from: ['east'], to: ['west'], cause: 'Rebalance', message: 'east is full' })
    expect(moveEvent(move!)).to.deep.equal({
      reason: 'Rebalanced',
      message: 'moves from member cluster "east" to "west" (Rebalance): east is full',
    })
  })

  it('tells once that it has arrived', () => {
    const moving = placed({ east: 'Draining', west: 'Serving' })
    const arrived = placed({ east: 'Terminating', west: 'Serving' })
    expect(settledOn(placed({ east: 'Serving' }), moving)).to.equal(undefined)
    expect(settledOn(moving, arrived)).to.deep.equal(['west'])
    expect(settledOn(arrived, placed({ west: 'Serving' }))).to.equal(undefined)
  })

  it('keeps the last ten moves, the newest first', () => {
    let workload: KubeObject = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: {} }
    const move: Move = { from: [], to: ['east'], cause: 'New', message: 'x'.repeat(1000) }
    for (let i = 0; i < 12; i++) {
      const annotations = { 'kcp.dev/placement-history': historyWith(workload, move, `2026-01-01T00:00:${10 + i}Z`) }
      workload = { ...workload, metadata: { annotations } }
    }
    const history = JSON.parse(workload.metadata.annotations?.['kcp.dev/placement-history'] ?? '') as { time: string }[]
    expect(history.map(({ time }) => time.slice(-3))).to.deep.equal(
      [21, 20, 19, 18, 17, 16, 15, 14, 13, 12].map((second) => `${second}Z`),
    )
    expect(JSON.stringify(history).length).to.be.lessThan(5000)
  })

  it('tells since when a member has not answered, once, and that it is back', () => {
    const now = Date.parse('2026-01-01T00:01:00Z')
    const given = choice({ candidates: [candidate('east', { ready: false, unreachableMs: 45_000 })] })
    const [serving, lost] = [placed({ east: 'Serving' }), placed({ east: 'Lost' })]
    expect(lossEvents(serving, lost, given, now)).to.deep.equal([
      {
        type: 'Warning',
        reason: 'MemberLost',
        message:
          'member cluster "east" has not answered since 2026-01-01T00:00:15Z: status and pods are as it reported them last',
      },
    ])
    expect(lossEvents(lost, lost, given, now)).to.deep.equal([])
    expect(lossEvents(lost, placed({ east: 'Fenced' }), given, now)).to.deep.equal([])
    expect(lossEvents(lost, serving, given, now)).to.deep.equal([
      { reason: 'MemberAnswers', message: 'member cluster "east" answers again' },
    ])
  })
})
