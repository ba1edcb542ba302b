import { expect } from 'chai'
import { LiveSessions } from './live-sessions.ts'
import type { Session } from './session.ts'

const session = (id: string, endsMs = 1e9): Session => ({
  id,
  identity: { as: 'installation' },
  beganMs: 0,
  usedMs: 0,
  endsMs,
})

describe('requests of sessions', () => {
  it('end with their session, and with no other', () => {
    using live = new LiveSessions({ clock: { now: () => 0 } })
    const ended: string[] = []
    for (const name of ['a', 'a', 'b']) live.enter(session(name), () => ended.push(name))
    const leave = live.enter(session('a'), () => ended.push('left'))
    leave()
    live.end(({ id }) => id === 'a')
    live.end(({ id }) => id === 'a')
    expect(ended).to.deep.equal(['a', 'a'])
  })

  it('end when the time of their session is over', async () => {
    using live = new LiveSessions({ clock: { now: () => 100 } })
    await new Promise<void>((resolve) => live.enter(session('a', 120), resolve))
  })

  it('leave nothing behind', () => {
    using live = new LiveSessions({ clock: { now: () => 0 } })
    const leaves = ['a', 'a', 'b'].map((id) => live.enter(session(id), () => undefined))
    for (const leave of [...leaves, ...leaves]) leave()
    let seen = 0
    live.end(() => ++seen > 0)
    expect(seen).to.equal(0)
  })
})
