import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { timestamp } from '#async/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import type { Store } from '#store/index.ts'
import { createLogger } from '#telemetry/index.ts'
import { EventExpiry } from './event-expiry.ts'

const { signal } = new AbortController()
const minuteMs = 60_000
const ttlMs = 60 * minuteMs

describe('expiry of Events', () => {
  let dir: string
  let store: Store
  let now = Date.parse('2026-01-01T00:00:00Z')
  const expiry = (): EventExpiry =>
    new EventExpiry({
      store,
      clock: { now: () => now, monotonic: () => now },
      log: createLogger({ level: 'error' }),
      ttlMs,
    })

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'kcp-expiry-'))
    store = await openSqliteStore({ file: join(dir, 'objects.db') })
  })
  afterEach(async () => {
    await store[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true })
  })

  const keyOf = (name: string, { cluster = 'a', resource = 'events' } = {}) => ({
    cluster: cluster as ClusterId,
    resource,
    namespace: 'default',
    name,
  })
  const value = (name: string, more: object = {}): Uint8Array =>
    Buffer.from(
      JSON.stringify({
        kind: 'Event',
        apiVersion: 'v1',
        metadata: { name, namespace: 'default', creationTimestamp: timestamp(now) },
        ...more,
      }),
    )
  const names = async (): Promise<string[]> =>
    (await store.list({}, { signal })).items.map(({ key }) => `${key.cluster}/${key.resource}/${key.name}`)

  it('deletes Events an hour after their last write, in every logical cluster, and nothing else', async () => {
    const ending = expiry()
    await store.create(keyOf('old'), value('old'), { signal })
    await store.create(keyOf('old', { cluster: 'b' }), value('old'), { signal })
    await store.create(keyOf('old', { resource: 'configmaps' }), value('old'), { signal })
    const written = await store.create(keyOf('written-again'), value('written-again'), { signal })
    expect(await ending.look(signal)).to.equal(0)
    now += 30 * minuteMs
    const again = value('written-again', { lastTimestamp: timestamp(now) })
    await store.update(written.key, again, { signal, ifRevision: written.revision })
    expect(await ending.look(signal)).to.equal(0)
    now += 30 * minuteMs
    expect(await ending.look(signal)).to.equal(2)
    expect(await names()).to.deep.equal(['a/configmaps/old', 'a/events/written-again'])
    now += 30 * minuteMs
    expect(await ending.look(signal)).to.equal(1)
    expect(await names()).to.deep.equal(['a/configmaps/old'])
  })

  it('goes by the times in an Event that was written before this process began', async () => {
    await store.create(keyOf('told'), value('told', { series: { count: 2, lastObservedTime: timestamp(now) } }), {
      signal,
    })
    now += ttlMs - minuteMs
    expect(await expiry().look(signal)).to.equal(0)
    now += minuteMs
    expect(await expiry().look(signal)).to.equal(1)
  })

  it('deletes an Event with times in the future, too', async () => {
    const ending = expiry()
    await store.create(keyOf('liar'), value('liar', { lastTimestamp: '2999-01-01T00:00:00Z' }), { signal })
    expect(await ending.look(signal)).to.equal(0)
    now += ttlMs
    expect(await ending.look(signal)).to.equal(1)
  })

  it('reads many Events in pages', async () => {
    for (let i = 0; i < 450; i++) await store.create(keyOf(`e-${i}`), value(`e-${i}`), { signal })
    now += ttlMs
    expect(await expiry().look(signal)).to.equal(450)
    expect(await names()).to.deep.equal([])
  })
})
