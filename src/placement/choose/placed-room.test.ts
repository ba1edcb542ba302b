import { expect } from 'chai'
import { amountsOf } from '#apimachinery/quantity/index.ts'
import type { Decision } from '#placement/move/move-input.ts'
import { noDemand, type Demand } from '#placement/rules/candidate.ts'
import { withinRoom, type RoomInput } from './placed-room.ts'

const choiceWith = (parts: Partial<RoomInput>): RoomInput => ({ demand: noDemand, current: [], ...parts })
const decisionFor = (...names: string[]): Decision => ({ wanted: { kind: 'members', names }, held: [], rejected: [] })
const room = (free: Record<string, unknown>): NonNullable<RoomInput['room']> => ({
  free: amountsOf(free),
  limits: 'cpu of "acme", limited: 4',
})
const pods = (replicas: number, perPod: Record<string, string>): Demand => ({
  ...noDemand,
  pods: { replicas, perPod: amountsOf({ ...perPod, pods: '1' }), surge: () => 0 },
})

describe('a decision within the limits of its logical cluster', () => {
  for (const { title, choice, decision = decisionFor('a'), wanted, shares, held } of [
    {
      title: 'stays as it is without limits',
      choice: { demand: pods(100, { cpu: '1' }) },
      wanted: ['a'],
    },
    {
      title: 'stays as it is where there is room, to the last bit',
      choice: { demand: pods(4, { cpu: '1' }), room: room({ cpu: '4' }) },
      wanted: ['a'],
    },
    {
      title: 'has as many replicas as fit',
      choice: { demand: pods(5, { cpu: '1' }), room: room({ cpu: '3500m' }) },
      wanted: ['a'],
      shares: { a: 3 },
      held: '3 of 5 replicas run, each needs cpu=1',
    },
    {
      title: 'has no member where no replica fits',
      choice: { demand: pods(5, { cpu: '1' }), room: room({ cpu: '900m' }) },
      held: '0 of 5 replicas run, each needs cpu=1',
    },
    {
      title: 'counts the copies in all members together, those that run first',
      choice: { demand: pods(2, { cpu: '1' }), room: room({ cpu: '3' }), current: ['b'] },
      decision: decisionFor('a', 'b'),
      wanted: ['a', 'b'],
      shares: { a: 1 },
      held: '1 of 2 replicas run',
    },
    {
      title: 'keeps replicas that run beyond a limit that was lowered',
      choice: { demand: pods(5, { cpu: '1' }), room: room({ cpu: '1' }), current: ['a'], present: { a: 4 } },
      wanted: ['a'],
      shares: { a: 4 },
      held: '4 of 5 replicas run',
    },
    {
      title: 'has all of a workload without replicas, or nothing',
      choice: { demand: { ...noDemand, requests: amountsOf({ cpu: '2', memory: '1Gi' }) }, room: room({ cpu: '1' }) },
      held: 'it needs cpu=2',
    },
    {
      title: 'keeps a workload without replicas that runs',
      choice: {
        demand: { ...noDemand, requests: amountsOf({ cpu: '2' }) },
        room: room({ cpu: '1' }),
        current: ['a'],
      },
      wanted: ['a'],
    },
    {
      title: 'counts the pods that a rollout adds for a while',
      choice: {
        demand: { ...noDemand, pods: { replicas: 4, perPod: amountsOf({ pods: '1' }), surge: () => 1 } },
        room: room({ pods: '4' }),
      },
      wanted: ['a'],
      shares: { a: 3 },
      held: '3 of 4 replicas run, each needs pods=1',
    },
    {
      title: 'is not held by what has no limit',
      choice: { demand: pods(5, { cpu: '1', memory: '1Ti' }), room: room({ cpu: '5' }) },
      wanted: ['a'],
    },
  ] as {
    title: string
    choice: Partial<RoomInput>
    decision?: Decision
    wanted?: string[]
    shares?: object
    held?: string
  }[])
    it(title, () => {
      const found = withinRoom(decision, choiceWith(choice))
      expect(found.wanted).to.deep.equal(
        wanted === undefined ? { kind: 'undecided' } : { kind: 'members', names: wanted },
      )
      expect(found.shares).to.deep.equal(shares)
      expect(found.held.map(({ reason }) => reason)).to.deep.equal(held === undefined ? [] : ['LimitExceeded'])
      if (held !== undefined) expect(found.held[0]?.message).to.contain(held)
    })
})
