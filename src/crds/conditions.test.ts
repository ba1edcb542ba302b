import { expect } from 'chai'
import type { Condition } from '#apimachinery/meta/index.ts'
import { setCondition } from './conditions.ts'

const ready = { type: 'Ready', status: 'True', reason: 'Served', message: 'is served', observedGeneration: 1 } as const
const before: Condition[] = [
  { ...ready, lastTransitionTime: '2026-01-01T00:00:00Z' },
  { type: 'Other', status: 'False', reason: 'No', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
]
const now = '2026-02-02T00:00:00Z'

describe('setCondition', () => {
  it('adds a condition with the time of now', () => {
    expect(setCondition(undefined, ready, now)).to.deep.equal([{ ...ready, lastTransitionTime: now }])
  })
  it('returns the same array where nothing changed', () => {
    expect(setCondition(before, ready, now)).to.equal(before)
  })
  it('keeps the time while the status stays', () => {
    const [after] = setCondition(before, { ...ready, message: 'other', observedGeneration: 2 }, now)
    expect(after).to.deep.equal({ ...before[0], message: 'other', observedGeneration: 2 })
  })
  it('moves the time with the status, in place, and leaves its argument alone', () => {
    const after = setCondition(before, { ...ready, status: 'False' }, now)
    expect(after.map(({ type, lastTransitionTime }) => [type, lastTransitionTime])).to.deep.equal([
      ['Ready', now],
      ['Other', '2026-01-01T00:00:00Z'],
    ])
    expect(before[0]?.status).to.equal('True')
  })
})
