import { expect } from 'chai'
import { EventBudget } from './event-budget.ts'

describe('the budget of Events', () => {
  it('allows each logical cluster a burst, then a steady rate', () => {
    const budget = new EventBudget({ burst: 3, perSecond: 1 })
    const taken = (cluster: string, nowMs: number): boolean => budget.take(cluster, nowMs)
    expect([1, 2, 3, 4].map(() => taken('acme', 0))).to.deep.equal([true, true, true, false])
    expect(taken('globex', 0)).to.equal(true)
    expect([taken('acme', 1000), taken('acme', 1000)]).to.deep.equal([true, false])
    expect([1, 2, 3, 4].map(() => taken('acme', 100_000))).to.deep.equal([true, true, true, false])
  })
})
