import { expect } from 'chai'
import type { Revision } from '#apimachinery/meta/index.ts'
import { EventWindow } from './event-window.ts'

describe('EventWindow', () => {
  const event = (revision: number): { revision: Revision } => ({ revision: revision as Revision })

  it('returns the events since a count while none of them was dropped', () => {
    const window = new EventWindow<{ revision: Revision }>(10 as Revision)
    expect(window.sinceChange(0)).to.deep.equal([])
    for (let revision = 11; revision <= 300; revision++) {
      window.push(event(revision))
      if (window.size > 5) window.dropFirst()
    }
    expect(window.changes).to.equal(290)
    expect(window.sinceChange(290)).to.deep.equal([])
    expect(window.sinceChange(288)).to.deep.equal([event(299), event(300)])
    expect(window.sinceChange(285)).to.have.length(5)
    expect(window.sinceChange(284)).to.equal(undefined)
    expect(window.sinceChange(291), 'of another life').to.equal(undefined)
  })

  it('skips no change of unknown revision at the revision of the last event', () => {
    const window = new EventWindow<{ revision: Revision }>(10 as Revision)
    window.push(event(11))
    const before = window.changes
    window.clear(11 as Revision)
    expect(window.changes).to.not.equal(before)
    expect(window.sinceChange(before)).to.equal(undefined)
    window.push(event(12))
    expect(window.sinceChange(before)).to.equal(undefined)
    expect(window.sinceChange(window.changes - 1)).to.deep.equal([event(12)])
  })
})
