import { expect } from 'chai'
import { remember } from './remember.ts'

describe('a memo with a bound', () => {
  it('is emptied when it is full, and goes on with what came last', () => {
    const memo = new Map<string, number>()
    const sizes = ['a', 'b', 'c', 'd'].map((key, i) => {
      expect(remember(memo, key, i, { max: 3 })).to.equal(i)
      return memo.size
    })
    expect(sizes).to.deep.equal([1, 2, 3, 1])
    expect(memo.get('d')).to.equal(3)
  })
})
