import { expect } from 'chai'
import { randomBytes } from 'node:crypto'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { Sessions, sessionMs, ticketMs } from './session.ts'

const minute = 60_000

function opened(key = randomBytes(32)) {
  const clock = { nowMs: Date.now(), now: () => clock.nowMs }
  return { clock, key, sessions: new Sessions({ key, clock }) }
}

describe('sealed sessions', () => {
  it('are opened by every process that has the key, and by no other', async () => {
    const { sessions, key } = opened()
    const session = sessions.begin({ as: 'token', cluster: 'abcdefghij' as ClusterId, token: 'secret' })
    const text = await sessions.seal(session)
    expect(text).not.to.include('secret')
    expect(await opened(key).sessions.open(text)).to.deep.equal(session)
    expect(await opened().sessions.open(text)).to.equal(undefined)
  })

  it('are refused after any change', async () => {
    const { sessions } = opened()
    const text = await sessions.seal(sessions.begin({ as: 'installation' }))
    for (const at of [0, 10, text.length >> 1, text.length - 3]) {
      const other = text[at] === 'A' ? 'B' : 'A'
      expect(await sessions.open(text.slice(0, at) + other + text.slice(at + 1))).to.equal(undefined)
    }
    for (const wrong of ['', '.', 'a.b.c', 'a..b.c.d', `${text}A`, 'x'.repeat(100_000)])
      expect(await sessions.open(wrong)).to.equal(undefined)
  })

  it('end after eight hours, and after one without a request', async () => {
    const { sessions, clock } = opened()
    let session = sessions.begin({ as: 'installation' })
    const text = await sessions.seal(session)
    clock.nowMs += 59 * minute
    expect(await sessions.open(text)).to.deep.equal(session)
    clock.nowMs += minute
    expect(await sessions.open(text)).to.equal(undefined)
    for (let used = 0; used < sessionMs - 60 * minute; used += 30 * minute) {
      session = sessions.used(session)
      clock.nowMs += 30 * minute
      if (clock.nowMs < session.endsMs) expect(await sessions.open(await sessions.seal(session))).to.deep.equal(session)
    }
    expect(clock.nowMs).to.be.at.least(session.endsMs)
    expect(await sessions.open(await sessions.seal(sessions.used(session)))).to.equal(undefined)
  })

  it('end with the token that began them', () => {
    const { sessions, clock } = opened()
    const endsMs = clock.nowMs + minute
    expect(sessions.begin({ as: 'hostToken', token: 't' }, { endsMs }).endsMs).to.equal(endsMs)
  })
})

describe('tickets', () => {
  it('are valid for five minutes', async () => {
    const { sessions, clock } = opened()
    const text = await sessions.issueTicket({ as: 'installation' })
    expect((await sessions.openTicket(text))?.identity).to.deep.equal({ as: 'installation' })
    clock.nowMs += ticketMs + 1000
    expect(await sessions.openTicket(text)).to.equal(undefined)
  })

  it('are no sessions, and sessions are no tickets', async () => {
    const { sessions } = opened()
    expect(await sessions.open(await sessions.issueTicket({ as: 'installation' }))).to.equal(undefined)
    expect(await sessions.openTicket(await sessions.seal(sessions.begin({ as: 'installation' })))).to.equal(undefined)
  })
})
