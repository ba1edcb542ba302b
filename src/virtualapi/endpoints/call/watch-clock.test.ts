import { expect } from 'chai'
import { WatchClock, type TimedWatch } from './watch-clock.ts'

/** A watch that resolves `bookmark` and `end` when the clock calls it. */
function newWatch(timeoutMs: number) {
  const bookmark = Promise.withResolvers<string>()
  const end = Promise.withResolvers<string>()
  const watch: TimedWatch = {
    endsAt: performance.now() + timeoutMs,
    onBookmarkDue: () => bookmark.resolve('bookmark'),
    onTimeout: () => end.resolve('end'),
  }
  return { watch, bookmark: bookmark.promise, end: end.promise }
}

describe('WatchClock', () => {
  it('tells a watch when a bookmark is due, not before an interval is over', async () => {
    using clock = new WatchClock({ intervalMs: 60 })
    const { watch, bookmark } = newWatch(60_000)
    const started = performance.now()
    clock.add(watch)
    await bookmark
    expect(performance.now() - started).to.be.at.least(50)
  })

  it('tells a watch when its timeout is over', async () => {
    using clock = new WatchClock({ intervalMs: 60_000 })
    const { watch, bookmark, end } = newWatch(20)
    clock.add(watch)
    expect(await Promise.race([bookmark, end])).to.equal('end')
    // Node may fire a timer some milliseconds early.
    expect(performance.now()).to.be.at.least(watch.endsAt - 10)
  })

  it('does not tell a watch that was removed', async () => {
    using clock = new WatchClock({ intervalMs: 60_000 })
    const [first, second] = [newWatch(10), newWatch(20)]
    clock.add(first.watch)
    clock.add(second.watch)
    clock.remove(first.watch)
    expect(await Promise.race([first.end, second.end.then(() => 'second')])).to.equal('second')
  })

  it('counts its watches, and removes one once', () => {
    using clock = new WatchClock()
    const [a, b] = [newWatch(60_000).watch, newWatch(60_000).watch]
    clock.add(a)
    clock.add(b)
    expect(clock.watches).to.equal(2)
    clock.remove(a)
    clock.remove(a)
    expect(clock.watches).to.equal(1)
    clock[Symbol.dispose]()
    expect(clock.watches).to.equal(0)
  })
})
