import { expect } from 'chai'
import type { PlacementMove } from '#crds/index.ts'
import type { PlacementRule } from '#placement/rules/target.ts'
import { moveTimes } from './choice.ts'

describe('how long the steps of a move last', () => {
  const rule = (name: string, priority: number, move?: PlacementMove): PlacementRule => ({
    name,
    priority,
    creationTimestamp: '2026-01-01T00:00:00Z',
    ...(move && { move }),
  })
  const levels = { ofTenant: [], ofCluster: [], global: [] }

  it('is not said where no Placement speaks of it', () => {
    expect(moveTimes({ ...levels, global: [rule('a', 1)] })).to.equal(undefined)
  })

  it('is what the Placement with the highest priority says', () => {
    const global = [rule('a', 1, { drainSeconds: 20 }), rule('b', 2, { drainSeconds: 30 }), rule('c', 3)]
    expect(moveTimes({ ...levels, global })).to.deep.equal({ drainSeconds: 30 })
  })

  it('is what the tenant says, before what admins say', () => {
    const rules = {
      ofTenant: [rule('a', 0, { forwardSeconds: 300 })],
      ofCluster: [rule('b', 9, { soakSeconds: 5 })],
      global: [rule('c', 9, { soakSeconds: 6 })],
    }
    expect(moveTimes(rules)).to.deep.equal({ forwardSeconds: 300 })
    expect(moveTimes({ ...rules, ofTenant: [] })).to.deep.equal({ soakSeconds: 5 })
  })
})
