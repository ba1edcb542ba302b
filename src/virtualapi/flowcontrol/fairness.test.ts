import { expect } from 'chai'
import { isStatusError } from '#apimachinery/status/index.ts'
import { Fairness } from './fairness.ts'

describe('Fairness', () => {
  for (const { kind, limits } of [
    { kind: 'request', limits: { requests: 2 } },
    { kind: 'watch', limits: { watches: 2 } },
  ] as const) {
    it(`allows two of kind ${kind} if the limit is two, refuses the third with Retry-After, and does not affect others`, () => {
      const fairness = new Fairness(limits)
      const leave = fairness.enter('acme', kind)
      fairness.enter('acme', kind)
      const refused = thrownBy(() => fairness.enter('acme', kind))
      expect(isStatusError(refused, 'TooManyRequests') && refused.headers['Retry-After']).to.equal('1')
      fairness.enter('globex', kind)
      leave()
      leave()
      fairness.enter('acme', kind)
      expect(thrownBy(() => fairness.enter('acme', kind))).to.satisfy(isStatusError)
    })
  }

  it('counts requests without credentials by the network of their peer, apart from those of logical clusters', () => {
    const fairness = new Fairness({ requests: 1, allRequests: 1, anonymousRequests: 1, allAnonymousRequests: 2 })
    const leave = fairness.enterAnonymous('2001:db8::1')
    expect(thrownBy(() => fairness.enterAnonymous('2001:db8::2'))).to.satisfy(isStatusError)
    fairness.enterAnonymous('192.0.2.1')
    expect(thrownBy(() => fairness.enterAnonymous('192.0.2.2'))).to.satisfy(isStatusError)
    fairness.enter('acme', 'request')
    leave()
    fairness.enterAnonymous('2001:db8::2')
  })

  it('queues large bodies in the order of arrival, and skips clients that are gone', async () => {
    const fairness = new Fairness({ largeRequests: 1, waitingLarge: 3 })
    const { signal } = new AbortController()
    const leave = await fairness.admitLargeBody('acme', signal)
    await fairness.admitLargeBody('globex', signal)
    const gone = new AbortController()
    const order: string[] = []
    const first = fairness.admitLargeBody('acme', gone.signal).catch((error: unknown) => error)
    const second = fairness.admitLargeBody('acme', signal).then((end) => (order.push('second'), end))
    const third = fairness.admitLargeBody('acme', signal).then((end) => (order.push('third'), end))
    const refused = await fairness.admitLargeBody('acme', signal).catch((error: unknown) => error)
    expect(isStatusError(refused, 'TooManyRequests') && refused.headers['Retry-After']).to.equal('1')
    gone.abort(new Error('gone'))
    leave()
    leave()
    expect(await first).to.have.property('message', 'gone')
    ;(await second)()
    expect(order).to.deep.equal(['second'])
    ;(await third)()
    ;(await fairness.admitLargeBody('acme', signal))()
  })

  it('refuses a large body that waited too long, and bounds the queue of all logical clusters', async () => {
    const fairness = new Fairness({ largeRequests: 1, allWaitingLarge: 1, largeWaitMs: 1 })
    const { signal } = new AbortController()
    for (const flow of ['acme', 'globex']) await fairness.admitLargeBody(flow, signal)
    const late = fairness.admitLargeBody('acme', signal).catch((error: unknown) => error)
    const beyond = await fairness.admitLargeBody('globex', signal).catch((error: unknown) => error)
    expect(beyond).to.satisfy(isStatusError)
    expect(await late).to.satisfy(isStatusError)
    const again = await fairness.admitLargeBody('globex', signal).catch((error: unknown) => error)
    expect(again).to.satisfy(isStatusError)
  })

  for (const kind of ['request', 'watch'] as const)
    it(`bounds kind ${kind} over all logical clusters`, () => {
      const fairness = new Fairness({ allRequests: 1, allWatches: 1 })
      const leave = fairness.enter('acme', kind)
      expect(thrownBy(() => fairness.enter('globex', kind))).to.satisfy(isStatusError)
      leave()
      fairness.enter('globex', kind)
    })

  it('bounds unread answers by the memory of the process', () => {
    const fairness = new Fairness({ memoryBytes: 64 * 1024 * 1024 })
    const MiB = 1024 * 1024
    fairness.hold('a', 3 * MiB)
    expect(() => fairness.hold('a', 2 * MiB), 'a 16th for one').to.throw()
    const releases = ['b', 'c', 'd', 'e'].map((flow) => fairness.hold(flow, 3.25 * MiB))
    expect(() => fairness.hold('e', MiB / 2), 'a quarter for all').to.throw()
    for (const release of releases) release()
    expect(() => fairness.hold('e', MiB / 2)).not.to.throw()
  })

  it('lends the place of a request that waits for a webhook to others, not to its own logical cluster', () => {
    const fairness = new Fairness({ requests: 1, allRequests: 1, allLent: 1 })
    const leave = fairness.enter('acme', 'request')
    const takeBack = fairness.lendPlace()
    expect(thrownBy(() => fairness.enter('acme', 'request'))).to.satisfy(isStatusError)
    const leaveOther = fairness.enter('globex', 'request')
    // Only so many are lent.
    fairness.lendPlace()
    expect(thrownBy(() => fairness.enter('initech', 'request'))).to.satisfy(isStatusError)
    takeBack()
    takeBack()
    leaveOther()
    expect(thrownBy(() => fairness.enter('globex', 'request'))).to.satisfy(isStatusError)
    leave()
    fairness.enter('globex', 'request')
  })

  it('counts a watch with a long selector by the memory that it takes, and equal ones of a logical cluster once', () => {
    const fairness = new Fairness({ watches: 100, allWatches: 250 })
    const long = (n: number): string => Array.from({ length: 6000 }, (_, i) => `k${i * 10 + n}=v`).join(',')
    const first = fairness.enterWatch('acme', long(1))
    const units = fairness.watchesOf('acme') - 1
    expect(units).to.be.within(40, 98)
    expect(() => fairness.enterWatch('acme', long(2))).to.throw('too many watches')
    expect(fairness.watchesOf('acme')).to.equal(units + 1)
    const equal = fairness.enterWatch('acme', long(1))
    expect(fairness.watchesOf('acme')).to.equal(units + 2)
    first()
    first()
    expect(fairness.watchesOf('acme')).to.equal(units + 1)
    fairness.enterWatch('bob', long(1))
    equal()
    expect(fairness.watchesOf('acme')).to.equal(0)
    fairness.enterWatch('acme', long(2))
  })
})

function thrownBy(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  return undefined
}
