import { expect } from 'chai'
import { mayTell } from './tell.ts'

describe('Events of a move that waits', () => {
  const minute = 60_000
  it('are not repeated for ten minutes', () => {
    const toldAt = new Map<string, number>()
    const at = [0, 5, 9.9, 10, 15, 20].map((minutes) => mayTell(toldAt, 'NoSpace', minutes * minute))
    expect(at).to.deep.equal([true, false, false, true, false, true])
  })

  it('are bounded, however many reasons a member invents, and so is what is kept of them', () => {
    const toldAt = new Map<string, number>()
    let told = 0
    for (let second = 0; second < 3600; second += 2) if (mayTell(toldAt, `Reason${second}`, second * 1000)) told += 1
    expect(told).to.equal(12 * 6)
    expect(toldAt.size).to.be.at.most(12)
  })
})
