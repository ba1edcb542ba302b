import { expect } from 'chai'
import { silentLogger } from '#telemetry/index.ts'
import { runController, type Reconcile } from './controller.ts'
import { createKeyQueue } from './key-queue.ts'

function start(reconcile: Reconcile, options: { workers?: number; graceMs?: number; timeoutMs?: number } = {}) {
  const stop = new AbortController()
  const queue = createKeyQueue({ firstMs: 1, maxMs: 4 })
  const ended = runController({ name: 'test', queue, reconcile, log: silentLogger, signal: stop.signal, ...options })
  return { queue, stop: () => (stop.abort(new Error('stop')), ended), ended }
}

describe('runController', () => {
  it('repeats a reconcile that failed until it succeeds', async () => {
    const succeeded = Promise.withResolvers<number>()
    let reconciles = 0
    const { queue, stop } = start(async () => {
      if (++reconciles < 4) throw new Error('not yet')
      succeeded.resolve(reconciles)
    })
    queue.add('a')
    expect(await succeeded.promise).to.equal(4)
    await stop()
    expect(queue.failures('a')).to.equal(0)
  })
  it('reconciles again after requeueAfterSeconds', async () => {
    const twice = Promise.withResolvers<undefined>()
    let reconciles = 0
    const { queue, stop } = start(async () => {
      if (++reconciles === 2) twice.resolve(undefined)
      return reconciles === 1 ? { requeueAfterSeconds: 0.001 } : {}
    })
    queue.add('a')
    await twice.promise
    await stop()
  })
  it('never reconciles one key twice at a time, and no more keys at a time than it has workers', async () => {
    const done = Promise.withResolvers<undefined>()
    const running = new Map<string, number>()
    let reconciles = 0
    let most = 0
    const { queue, stop } = start(
      async (key) => {
        running.set(key, (running.get(key) ?? 0) + 1)
        const total = [...running.values()].reduce((a, b) => a + b, 0)
        most = Math.max(most, total)
        expect(running.get(key)).to.equal(1)
        await new Promise((resolve) => setImmediate(resolve))
        running.set(key, 0)
        if (++reconciles === 40) done.resolve(undefined)
        else queue.add(key)
      },
      { workers: 3 },
    )
    for (const key of ['a', 'b', 'c', 'd', 'e']) queue.add(key)
    await done.promise
    await stop()
    expect(most).to.equal(3)
  })
  it('lets a reconcile finish when it is stopped, and takes no other key', async () => {
    const began = Promise.withResolvers<undefined>()
    const finish = Promise.withResolvers<undefined>()
    const seen: string[] = []
    const { queue, stop } = start(
      async (key) => {
        began.resolve(undefined)
        await finish.promise
        seen.push(key)
      },
      { workers: 1 },
    )
    queue.add('a')
    queue.add('b')
    await began.promise
    const ended = stop()
    finish.resolve(undefined)
    await ended
    expect(seen).to.deep.equal(['a'])
  })
  it('aborts a reconcile that continues after the grace period', async () => {
    const { queue, stop } = start(
      (_, signal) =>
        new Promise<undefined>((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error)),
        ),
      { graceMs: 5 },
    )
    queue.add('a')
    await stop()
  })
  it('aborts a reconcile that takes too long and repeats it', async () => {
    const second = Promise.withResolvers<undefined>()
    let reconciles = 0
    const { queue, stop } = start(
      async (_, signal) => {
        if (++reconciles === 2) {
          second.resolve(undefined)
          return
        }
        await new Promise<undefined>((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error)),
        )
      },
      { timeoutMs: 5 },
    )
    queue.add('a')
    await second.promise
    await stop()
  })
  it('logs repeated failures of a reconcile less and less often', async () => {
    const told: unknown[] = []
    const log = { ...silentLogger, warn: (_: string, keys?: { failures?: unknown }) => void told.push(keys?.failures) }
    const stop = new AbortController()
    const queue = createKeyQueue({ firstMs: 0.01, maxMs: 0.01 })
    const enough = Promise.withResolvers<undefined>()
    let reconciles = 0
    const reconcile = async (): Promise<void> => {
      if (++reconciles > 20) enough.resolve(undefined)
      throw new Error('the member is away')
    }
    const ended = runController({ name: 'test', queue, reconcile, log, signal: stop.signal })
    queue.add('a')
    await enough.promise
    stop.abort(new Error('stop'))
    await ended
    expect(told.slice(0, 5)).to.deep.equal([1, 2, 4, 8, 16])
  })
})
