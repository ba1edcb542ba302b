import { expect } from 'chai'
import { isStatusError } from '../../apimachinery/status/index.ts'
import { Fairness } from './fairness.ts'

describe('Fairness', () => {
  for (const { kind, limits } of [
    { kind: 'request', limits: { requests: 2 } },
    { kind: 'watch', limits: { watches: 2 } },
    { kind: 'large', limits: { largeRequests: 2 } },
  ] as const) {
    it(`takes two of kind ${kind} where two are allowed, refuses the third with Retry-After, and others are not affected`, () => {
      const fairness = new Fairness(limits)
      const leave = fairness.enter('acme', kind)
      fairness.enter('acme', kind)
      const refused = thrownBy(() => fairness.enter('acme', kind))
      expect(isStatusError(refused, 'TooManyRequests') && refused.headers['Retry-After']).to.equal('1')
      fairness.enter('globex', kind)
      leave()
      leave()
      fairness.enter('acme', kind)
      expect(thrownBy(() => fairness.enter('acme', kind))).to.satisfy(isStatusError)
    })
  }

  for (const kind of ['request', 'watch'] as const)
    it(`bounds what all logical clusters have of kind ${kind}`, () => {
      const fairness = new Fairness({ allRequests: 1, allWatches: 1 })
      const leave = fairness.enter('acme', kind)
      expect(thrownBy(() => fairness.enter('globex', kind))).to.satisfy(isStatusError)
      leave()
      fairness.enter('globex', kind)
    })
})

function thrownBy(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  return undefined
}
