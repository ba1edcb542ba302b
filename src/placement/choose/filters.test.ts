import { expect } from 'chai'
import { noDemand, type Candidate, type Demand } from '#placement/rules/candidate.ts'
import { choose } from './choose.ts'
import { failoverInMs, isFailoverFrozen } from './filters.ts'

const lost = (seconds: number, parts: Partial<Candidate> = {}): Candidate => ({
  name: 'east',
  ready: false,
  state: 'Active',
  admits: true,
  load: 0,
  unreachableMs: seconds * 1000,
  ...parts,
})
const west: Candidate = { name: 'west', ready: true, state: 'Active', admits: true, load: 0 }

describe('failover', () => {
  for (const { title, candidate, demand = {}, inMs } of [
    { title: 'waits for 300 s', candidate: lost(60), inMs: 240_000 },
    { title: 'happens after 300 s', candidate: lost(301), inMs: 0 },
    { title: 'happens after what the Placement says', candidate: lost(61), demand: { tolerationSeconds: 60 }, inMs: 0 },
    { title: 'waits until the member is lost', candidate: lost(10), demand: { tolerationSeconds: 0 }, inMs: 30_000 },
    { title: 'does not happen while it is frozen', candidate: lost(999, { isFailoverFrozen: true }), inMs: undefined },
    {
      title: 'never starts twice what must run once',
      candidate: lost(999),
      demand: { runsOnce: true },
      inMs: undefined,
    },
    {
      title: 'starts what must run once after the member was fenced, even if frozen',
      candidate: lost(1, { isFenced: true, isFailoverFrozen: true }),
      demand: { runsOnce: true },
      inMs: 0,
    },
  ] as { title: string; candidate: Candidate; demand?: Partial<Demand>; inMs: number | undefined }[]) {
    it(title, () => {
      const demanded = { ...noDemand, ...demand }
      expect(failoverInMs(candidate, demanded)).to.equal(inMs)
      const input = { target: { kind: 'best' }, demand: demanded, candidates: [candidate, west] } as const
      const { wanted } = choose({ ...input, current: ['east'], serving: ['east'] })
      expect(wanted).to.deep.equal({ kind: 'members', names: [inMs === 0 ? 'west' : 'east'] })
    })
  }
  it('is frozen when 55 % of the members do not answer', () => {
    const frozen = ([unreachable, all]: readonly [number, number]): boolean => isFailoverFrozen({ unreachable, all })
    expect(
      (
        [
          [1, 1],
          [1, 2],
          [2, 5],
          [3, 5],
          [11, 20],
          [10, 20],
          [0, 0],
        ] as const
      ).map(frozen),
    ).to.deep.equal([true, false, false, true, true, false, false])
  })
})
