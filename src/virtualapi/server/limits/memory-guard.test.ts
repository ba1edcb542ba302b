import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { clusterIdOf, type ClusterId } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { createMetrics, silentLogger } from '#telemetry/index.ts'
import { MemoryGuard } from './memory-guard.ts'

const MiB = 1024 * 1024
const load = (name: string, more: { bytes?: number; watches?: number; objects?: number }) => ({
  ...{ cluster: clusterIdOf(name), objects: 1, bytes: 0, watches: 0 },
  ...more,
})
const root = load('root', { bytes: 900 * MiB, watches: 9 })
const large = load('large', { bytes: 10 * MiB, watches: 5000 })
const middle = load('middle', { bytes: 50 * MiB, watches: 1 })
const small = load('small', { bytes: MiB, watches: 1 })
const idle = load('idle', { bytes: 20 * MiB })

describe('MemoryGuard', () => {
  function guardAt(
    share: number | (() => number),
    {
      limitBytes = Infinity,
      endCalls = () => undefined,
    }: { limitBytes?: number; endCalls?: () => { cluster: string; bytes: number } | undefined } = {},
  ) {
    const done: string[] = []
    const watchCache = {
      loaded: () => undefined,
      loads: () => [root, small, middle, idle, large],
      release: (id: ClusterId) => done.push(`release ${id}`) > 0,
      unload: (id: ClusterId) => void done.push(`unload ${id}`),
    }
    const metrics = createMetrics()
    const guard = new MemoryGuard({
      watchCache,
      exempt: root.cluster,
      log: silentLogger,
      metrics,
      limitBytes,
      endCalls,
      usedShare: () => (typeof share === 'number' ? share : share()),
    })
    const isRefused = ({ cluster }: { cluster: ClusterId }): boolean => {
      try {
        guard.requireMemory(cluster)
        return false
      } catch (error) {
        return isStatusError(error, 'TooManyRequests') && error.headers['Retry-After'] === '10'
      }
    }
    const mayWatch = ({ cluster }: { cluster: ClusterId }, open: number): boolean => {
      try {
        guard.requireMemoryForWatch(cluster, open)
        return true
      } catch (error) {
        if (!isStatusError(error, 'TooManyRequests') || error.headers['Retry-After'] !== '10') throw error
        return false
      }
    }
    return { guard, done, isRefused, mayWatch }
  }

  it('does nothing while there is memory', () => {
    const { guard, done, isRefused } = guardAt(0.79)
    using _ = guard
    expect([root, large, middle, small, idle].map(isRefused)).to.deep.equal([false, false, false, false, false])
    expect(done).to.deep.equal([])
  })

  it('ends outbound calls first, and does no more while that frees memory', () => {
    const held = [{ cluster: 'large', bytes: 30 * MiB }]
    const { guard, done, isRefused } = guardAt(0.81, { endCalls: () => held.pop() })
    using _ = guard
    expect([large, middle].map(isRefused)).to.deep.equal([false, false])
    expect(done).to.deep.equal([])
    expect(held).to.deep.equal([])
  })

  it('refuses the largest first, and unloads idle logical clusters', () => {
    const { guard, done, isRefused } = guardAt(0.82)
    using _ = guard
    expect([root, large, middle, small].map(isRefused)).to.deep.equal([false, true, false, false])
    expect(done).to.deep.equal([`release ${idle.cluster}`])
  })

  it('ends the watches of the largest close to the limit', () => {
    const { guard, done, isRefused } = guardAt(0.9)
    using _ = guard
    expect([root, large, middle, small].map(isRefused)).to.deep.equal([false, true, false, false])
    expect(done).to.deep.equal([`release ${idle.cluster}`, `unload ${large.cluster}`])
  })

  it('does not load a logical cluster again that it unloaded, until there is room for it', async () => {
    let share = 0.9
    const { guard } = guardAt(() => share, { limitBytes: 100 * MiB })
    using _ = guard
    const mustStay = ({ cluster }: { cluster: ClusterId }): boolean => guard.mustStayUnloaded(cluster)
    // Looks, and unloads the largest, of 10 MiB.
    guard.requireMemoryForWatch(root.cluster, 0)
    expect([large, middle, small].map(mustStay)).to.deep.equal([false, false, false])
    expect(() => guard.requireMemory(small.cluster)).not.to.throw()
    expect([large, middle, small].map(mustStay)).to.deep.equal([true, false, false])
    expect(() => guard.requireRoom(large.cluster))
      .to.throw()
      .with.property('reason', 'TooManyRequests')
    // Its 10 MiB would take all that is left to 0.87.
    share = 0.78
    await delay(300)
    expect(mustStay(large)).to.equal(true)
    share = 0.6
    await delay(300)
    expect(mustStay(large)).to.equal(false)
  })

  it('lets nobody with many watches open more while memory is short, and nobody at all close to the limit', () => {
    for (const { share, few, many } of [
      { share: 0.79, few: true, many: true },
      { share: 0.82, few: true, many: false },
      { share: 0.9, few: false, many: false },
    ]) {
      const { guard, mayWatch } = guardAt(share)
      using _ = guard
      expect([mayWatch(small, 99), mayWatch(small, 100)], `at ${share}`).to.deep.equal([few, many])
      expect(mayWatch(root, 5000), 'the installation').to.equal(true)
    }
  })

  it('looks again after some hundred watches, however fast they come', () => {
    let share = 0.5
    const { guard, mayWatch } = guardAt(() => share)
    using _ = guard
    const opened = Array.from({ length: 1000 }, () => {
      const isOpened = mayWatch(small, 1000)
      share += 0.001
      return isOpened
    })
    expect(opened.filter(Boolean)).to.have.length.within(300, 500)
    expect(opened.at(-1)).to.equal(false)
  })
})
