import { expect } from 'chai'
import { yieldEvery } from './yield-every.ts'

describe('yieldEvery', () => {
  it('lets other tasks run during a long loop, and does not pause before the interval is over', async () => {
    let others = 0
    const timer = setInterval(() => others++, 0)
    const pause = yieldEvery(5)
    expect(pause()).to.equal(undefined)
    let pauses = 0
    for (const end = performance.now() + 60; performance.now() < end;) {
      const due = pause()
      if (due === undefined) continue
      pauses++
      await due
    }
    clearInterval(timer)
    expect(pauses).to.be.within(1, 12)
    expect(others).to.be.greaterThan(0)
  })

  it('rejects when the signal aborts', async () => {
    const stop = new AbortController()
    const pause = yieldEvery(0, stop.signal)
    stop.abort(new Error('stopped'))
    const error: unknown = await pause()?.catch((reason: unknown) => reason)
    expect((error as Error).message).to.equal('stopped')
  })
})
