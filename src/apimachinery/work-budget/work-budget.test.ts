import { expect } from 'chai'
import { isStatusError } from '#apimachinery/status/index.ts'
import { WorkBudget } from './work-budget.ts'

describe('the work budget of a request', () => {
  it('refuses with 413 once the steps are spent', () => {
    const work = new WorkBudget({ steps: 10 })
    work.spend(10, 'too much')
    try {
      work.spend(1, 'the question is too large')
      expect.fail('was not refused')
    } catch (error) {
      expect(isStatusError(error, 'RequestEntityTooLarge') && error.message).to.equal('the question is too large')
    }
    expect(work.trySpend(1)).to.equal(false)
  })

  it('counts bytes apart from steps', () => {
    const work = new WorkBudget({ steps: 1, bytes: 100 })
    expect(work.trySpendBytes(100)).to.equal(true)
    expect(work.trySpendBytes(1)).to.equal(false)
    expect(work.trySpend(1)).to.equal(true)
  })
})
