import { expect } from 'chai'
import { createKeyQueue, type KeyQueue, type Timers } from './key-queue.ts'

/** Time that passes when told. */
function fakeTimers(): Timers & { pass(ms: number): void } {
  let now = 0
  const due = new Set<{ at: number; run: () => void }>()
  return {
    monotonic: () => now,
    after(ms, run) {
      const timer = { at: now + ms, run }
      due.add(timer)
      return () => void due.delete(timer)
    },
    pass(ms) {
      const end = now + ms
      for (;;) {
        const [next] = [...due].filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)
        if (next === undefined) break
        due.delete(next)
        now = next.at
        next.run()
      }
      now = end
    },
  }
}

const never = new AbortController().signal

async function takeAll(queue: KeyQueue): Promise<string[]> {
  const keys: string[] = []
  while (queue.length > 0) keys.push(await queue.take(never))
  return keys
}

describe('a key queue', () => {
  it('returns a key once even if it was added several times, in order of arrival', async () => {
    using queue = createKeyQueue()
    for (const key of ['b', 'a', 'b', 'c', 'a']) queue.add(key)
    expect(await takeAll(queue)).to.deep.equal(['b', 'a', 'c'])
  })
  it('takes urgent keys before the others of their group, and one of each group in rotation', async () => {
    using queue = createKeyQueue({ fairnessKey: (key) => key[0] ?? '', isUrgent: (key) => key.endsWith('!') })
    for (const key of ['a1', 'a2', 'a3!', 'b1', 'a4!', 'b2!']) queue.add(key)
    expect(await takeAll(queue)).to.deep.equal(['a3!', 'b2!', 'a4!', 'b1', 'a1', 'a2'])
  })
  it('takes one key of each fairness key in rotation, however many of one wait', async () => {
    using queue = createKeyQueue({ fairnessKey: (key) => key.slice(0, 1) })
    for (let i = 0; i < 1000; i++) queue.add(`a${i}`)
    queue.add('b0')
    expect([await queue.take(never), await queue.take(never), await queue.take(never)]).to.deep.equal([
      'a0',
      'b0',
      'a1',
    ])
    queue.add('c0')
    queue.add('b1')
    queue.add('c0')
    expect(queue.length).to.equal(1000)
    const taken = await takeAll(queue)
    expect(taken.slice(0, 5)).to.deep.equal(['a2', 'c0', 'b1', 'a3', 'a4'])
    expect(taken).to.have.length(1000)
    expect(taken.at(-1)).to.equal('a999')
    // What comes back waits behind the others of its turn.
    queue.add('a7')
    for (const key of ['b1', 'a2', 'a7']) queue.done(key, 'ok')
    queue.add('b1')
    queue.add('a2')
    expect(await takeAll(queue)).to.deep.equal(['a7', 'b1', 'a2'])
  })
  it('keeps a key from a second worker until it is done, then brings it back if it was added', async () => {
    using queue = createKeyQueue()
    queue.add('a')
    await queue.take(never)
    queue.add('a')
    expect(queue.length).to.equal(0)
    queue.done('a', 'ok')
    expect(await takeAll(queue)).to.deep.equal(['a'])
    queue.done('a', 'ok')
    expect(queue.length).to.equal(0)
  })
  it('gives a key to the worker that waited longest', async () => {
    using queue = createKeyQueue()
    const first = queue.take(never)
    const second = queue.take(never)
    queue.add('a')
    queue.add('b')
    expect(await Promise.all([first, second])).to.deep.equal(['a', 'b'])
  })
  it('doubles the wait with each failure up to a cap, and starts over after a success', async () => {
    const timers = fakeTimers()
    using queue = createKeyQueue({ firstMs: 10, maxMs: 50, timers, random: () => 1 })
    queue.add('a')
    for (const ms of [10, 20, 40, 50, 50]) {
      await queue.take(never)
      queue.done('a', 'failed')
      timers.pass(ms - 1)
      expect(queue.length, `before ${ms} ms`).to.equal(0)
      timers.pass(1)
      expect(queue.length, `after ${ms} ms`).to.equal(1)
    }
    await queue.take(never)
    queue.done('a', 'ok')
    expect(queue.failures('a')).to.equal(0)
    queue.add('a')
    await queue.take(never)
    queue.done('a', 'failed')
    timers.pass(10)
    expect(queue.length).to.equal(1)
  })
  it('spreads retries over half of the wait', async () => {
    const timers = fakeTimers()
    using queue = createKeyQueue({ firstMs: 100, timers, random: () => 0 })
    queue.add('a')
    await queue.take(never)
    queue.done('a', 'failed')
    timers.pass(50)
    expect(queue.length).to.equal(1)
  })
  it('reconciles a failed key at once when it changes, and drops the retry when that reconcile succeeds', async () => {
    const timers = fakeTimers()
    using queue = createKeyQueue({ firstMs: 100, timers })
    queue.add('a')
    await queue.take(never)
    queue.done('a', 'failed')
    queue.add('a')
    expect(await takeAll(queue)).to.deep.equal(['a'])
    queue.done('a', 'ok')
    timers.pass(10_000)
    expect(queue.length).to.equal(0)
  })
  it('keeps the earliest of several scheduled times', async () => {
    const timers = fakeTimers()
    using queue = createKeyQueue({ timers })
    queue.addAfter('a', 1000)
    queue.addAfter('a', 100)
    queue.addAfter('a', 500)
    timers.pass(100)
    expect(await takeAll(queue)).to.deep.equal(['a'])
    queue.done('a', 'ok')
    timers.pass(2000)
    expect(queue.length).to.equal(0)
  })
  it('stops waiting when the signal aborts, and forgets that waiter', async () => {
    using queue = createKeyQueue()
    const controller = new AbortController()
    const waiting = queue.take(controller.signal).catch((error: unknown) => (error as Error).message)
    controller.abort(new Error('stop'))
    expect(await waiting).to.equal('stop')
    queue.add('a')
    expect(await takeAll(queue)).to.deep.equal(['a'])
  })
})
