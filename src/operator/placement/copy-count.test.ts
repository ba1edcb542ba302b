import { expect } from 'chai'
import { CopyCount } from './copy-count.ts'

describe('a count of copies', () => {
  it('changes as workloads are created, moved and deleted', () => {
    const count = new CopyCount()
    expect(count.isEmpty).to.equal(true)
    count.replace([], ['east'])
    count.replace([], ['east', 'west'])
    expect([count.of('east'), count.of('west'), count.of('north')]).to.deep.equal([2, 1, 0])
    count.replace(['east'], ['east', 'north'])
    expect([count.of('east'), count.of('west'), count.of('north')]).to.deep.equal([2, 1, 1])
    count.replace(['east', 'west'], [])
    count.replace(['east', 'north'], ['north'])
    expect([count.of('east'), count.of('west'), count.of('north')]).to.deep.equal([0, 0, 1])
    expect(count.isEmpty).to.equal(false)
    count.replace(['north'], [])
    expect(count.isEmpty).to.equal(true)
  })

  it('lists the members of the other workloads', () => {
    const count = new CopyCount()
    count.replace([], ['east', 'west'])
    expect(count.without(['east', 'west'])).to.deep.equal([])
    expect(count.without([])).to.deep.equal(['east', 'west'])
    count.replace([], ['west', 'north'])
    expect(count.without(['east', 'west'])).to.deep.equal(['west', 'north'])
    expect(count.without(['west', 'north'])).to.deep.equal(['east', 'west'])
  })
})
