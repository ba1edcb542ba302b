import { expect } from 'chai'
import { Deliveries, type PendingDelivery } from './deliveries.ts'
import { EventLoopShare } from './event-loop-share.ts'

/** Waits for a condition, for at most some iterations of the event loop. */
async function passes(until: () => boolean): Promise<void> {
  while (!until()) await new Promise(setImmediate)
}

describe('deliveries', () => {
  it('run after the caller, in the order of requests, and again if there is more', async () => {
    const deliveries = new Deliveries(new EventLoopShare())
    const told: string[] = []
    const teller = (name: string, parts: number): PendingDelivery => ({
      deliver() {
        told.push(`${name}${parts}`)
        if (--parts > 0) deliveries.add('acme', this)
        return 1
      },
    })
    deliveries.add('acme', teller('a', 2))
    deliveries.add('acme', teller('b', 1))
    expect(told).to.deep.equal([])
    await passes(() => told.length === 3)
    expect(told).to.deep.equal(['a2', 'b1', 'a1'])
  })

  it('of one logical cluster do not delay those of another', async () => {
    const deliveries = new Deliveries(new EventLoopShare())
    const count = 200
    let busy = 0
    let before: number | undefined
    // Together ten times what busy flows share in one iteration of the event loop.
    const deliver = (): number => {
      for (const end = performance.now() + 0.1; performance.now() < end;);
      busy++
      return 1
    }
    for (let n = 0; n < count; n++) deliveries.add('busy', { deliver })
    deliveries.add('quiet', {
      deliver: () => {
        before = busy
        return 1
      },
    })
    await passes(() => busy === count)
    expect(before).to.be.lessThan(count)
  })

  for (const { bytes, turns } of [
    { bytes: 100, turns: 4 },
    { bytes: 64 * 1024, turns: 32 },
  ]) {
    it(`of ${bytes} bytes each, 32 of them, take ${turns} turns`, async () => {
      const loopShare = new EventLoopShare()
      const turn = loopShare.turn.bind(loopShare)
      let asked = 0
      loopShare.turn = (flow) => {
        asked++
        return turn(flow)
      }
      const deliveries = new Deliveries(loopShare)
      let told = 0
      for (let n = 0; n < 32; n++) deliveries.add('acme', { deliver: () => (told++, bytes) })
      await passes(() => told === 32)
      expect(asked).to.equal(turns)
    })
  }
})
