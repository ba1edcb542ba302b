import { setImmediate as nextPass } from 'node:timers/promises'
import { expect } from 'chai'
import { EventLoopShare } from './event-loop-share.ts'

/** Blocks the event loop, as a request does. */
function work(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

describe('a share of the event loop', () => {
  it('is given at once while the slice lasts', () => {
    const share = new EventLoopShare()
    expect(share.turn('a')).to.equal(undefined)
    expect(share.turn('b')).to.equal(undefined)
  })

  it('is given to a flow without a turn before a busy one gets another', async () => {
    const share = new EventLoopShare()
    const order: string[] = []
    const ask = async (flow: string): Promise<void> => {
      await share.turn(flow)
      order.push(flow)
      work(3)
    }
    void share.turn('noisy')
    work(3)
    const asked = Array.from({ length: 5 }, () => ask('noisy'))
    expect(share.waiting).to.equal(5)
    await nextPass()
    // The last to ask, after four that wait.
    expect(order).to.deep.equal(['noisy'])
    await ask('quiet')
    expect(order.slice(0, 3)).to.include('quiet')
    await Promise.all(asked)
    expect(order.filter((flow) => flow === 'noisy')).to.have.length(5)
    expect(share.waiting).to.equal(0)
  })

  it('is shorter while several flows are served', async () => {
    const share = new EventLoopShare()
    void share.turn('quiet')
    void share.turn('noisy')
    await nextPass()
    let pass = 0
    const turns: number[] = []
    const count = (): void => {
      pass++
      if (turns.length < 6) setImmediate(count)
    }
    setImmediate(count)
    const ask = async (): Promise<void> => {
      await share.turn('noisy')
      turns.push(pass)
      work(1)
    }
    void share.turn('noisy')
    work(1)
    await Promise.all(Array.from({ length: 6 }, ask))
    // One millisecond is more than a slice: each turn ends its pass.
    expect(new Set(turns).size).to.equal(6)
  })

  it('is given round robin', async () => {
    const share = new EventLoopShare()
    const order: string[] = []
    const ask = async (flow: string): Promise<void> => {
      await share.turn(flow)
      order.push(flow)
    }
    void share.turn('a')
    void share.turn('b')
    work(3)
    await Promise.all(['a', 'a', 'a', 'b', 'b', 'b'].map(ask))
    expect(order).to.deep.equal(['a', 'b', 'a', 'b', 'a', 'b'])
  })
})
