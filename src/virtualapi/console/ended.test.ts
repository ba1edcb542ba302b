import { expect } from 'chai'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { endedOf, isEnded, nothingEnded, withSession, withTicket, type Ended } from './ended.ts'
import type { Session, SessionIdentity } from './session.ts'

const hour = 3600_000
const session = (id: string, identity: SessionIdentity, beganMs = 0): Session => ({
  id,
  identity,
  beganMs,
  usedMs: beganMs,
  endsMs: beganMs + 8 * hour,
})
const of = (cluster: string): SessionIdentity => ({ as: 'clusterAdmin', cluster: cluster as ClusterId })
const times = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

describe('the record of what has ended', () => {
  it('takes a ticket once, and forgets it when its time is over', () => {
    const ticket = { id: 'a', identity: of('acme'), endsMs: 100 }
    const used = withTicket(nothingEnded, ticket, 1)
    expect(used).to.deep.include({ used: { a: 100 } })
    expect(withTicket(used ?? nothingEnded, ticket, 2)).to.equal(undefined)
    const later = withTicket(used ?? nothingEnded, { ...ticket, id: 'b', endsMs: 300 }, 200)
    expect(later?.used).to.deep.equal({ b: 300 })
  })

  it('refuses tickets while five hundred were used in their time', () => {
    let state: Ended = nothingEnded
    for (const i of times(500))
      state = withTicket(state, { id: `t${i}`, identity: of('acme'), endsMs: 300 }, 1) ?? state
    const next = { id: 'next', identity: of('acme'), endsMs: 300 }
    expect(() => withTicket(state, next, 2)).to.throw('too many sign-in links')
    expect(withTicket(state, { ...next, endsMs: 600 }, 400)?.used).to.deep.equal({ next: 600 })
  })

  it('ends one session, and no other', () => {
    const state = withSession(nothingEnded, session('a', of('acme')), 1)
    expect(isEnded(state, session('a', of('acme')))).to.equal(true)
    expect(isEnded(state, session('b', of('acme')))).to.equal(false)
  })

  it('ends all sessions of a logical cluster that ends more than fifty, and those of no other', () => {
    let state: Ended = nothingEnded
    for (const i of times(51)) state = withSession(state, session(`s${i}`, of('acme')), 10)
    expect(isEnded(state, session('another', of('acme'), 9))).to.equal(true)
    expect(isEnded(state, session('new', of('acme'), 10))).to.equal(false)
    expect(isEnded(state, session('other', of('globex'), 9))).to.equal(false)
    expect(state.sessions).to.deep.equal({})
  })

  it('stays below 256 KiB, whoever ends how many sessions', () => {
    const id = '01234567-89ab-cdef-0123-456789abcdef'
    const endedOnes = Object.fromEntries(times(50).map((i) => [`${id}-${i}`, 8 * hour]))
    const full: Ended = {
      used: Object.fromEntries(times(500).map((i) => [`${id}-${i}`, hour])),
      sessions: Object.fromEntries(times(30).map((i) => [`c${i}`, endedOnes])),
      before: Object.fromEntries(times(1000).map((i) => [`d${i}`, 10])),
    }
    const state = withSession(full, session('last', of('e')), 20)
    expect(JSON.stringify(state).length).to.be.lessThan(256 * 1024)
    // The table of scopes was full, so all that began before have ended.
    expect(isEnded(state, session(`${id}-0`, of('c7')))).to.equal(true)
    expect(isEnded(state, session('any', of('d0'), 19))).to.equal(true)
    expect(isEnded(state, session('any', of('d0'), 20))).to.equal(false)
  })

  it('reads what it wrote, and refuses a damaged text', () => {
    const state = withSession(nothingEnded, session('a', of('acme')), 1)
    expect(endedOf(JSON.stringify(state))).to.deep.equal(state)
    expect(endedOf(undefined)).to.deep.equal(nothingEnded)
    expect(() => endedOf('[]')).to.throw('no JSON object')
  })
})
