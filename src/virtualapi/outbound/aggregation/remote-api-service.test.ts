import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { Store } from '#store/index.ts'
import { createWatchCache, type ClusterObjects, type WatchCache } from '#store/watch-cache/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import { apiServiceKey, remoteApiServices } from './remote-api-service.ts'

const { signal } = new AbortController()

describe('remoteApiServices', () => {
  let directory: string
  let store: Store
  let watchCache: WatchCache
  let objects: ClusterObjects
  let clusters = 0

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kcp-apiservices-'))
    store = await openSqliteStore({ file: join(directory, 'objects.db') })
    watchCache = await createWatchCache(store, { stamp: stampRevision, readFacts, signal })
  })
  beforeEach(async () => {
    objects = await watchCache.cluster(`services${++clusters}` as ClusterId, { signal })
  })
  after(async () => {
    await watchCache[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
    await rm(directory, { recursive: true })
  })

  const create = (group: string, more: object) => {
    const name = `v1.${group}`
    const spec = { group, version: 'v1', groupPriorityMinimum: 1, versionPriority: 1, ...more }
    const object = { kind: 'APIService', apiVersion: 'apiregistration.k8s.io/v1', metadata: { name }, spec }
    const bytes = Buffer.from(JSON.stringify(object))
    return objects.create({ resource: apiServiceKey, namespace: '', name }, bytes, { signal })
  }
  const service = { namespace: 'default', name: 'metrics' }

  it('are those with a Service', async () => {
    await create('a.example', { service })
    await create('b.example', {})
    expect([...remoteApiServices(objects).keys()]).to.deep.equal(['v1.a.example'])
  })

  it('are none while all APIServices are larger than 4 MiB together', async () => {
    await create('a.example', { service })
    for (const group of ['b', 'c', 'd']) await create(group, { service, caBundle: 'A'.repeat(1_500_000) })
    expect(remoteApiServices(objects).size).to.equal(0)
  })

  it('are none while there are more than 1,000 APIServices', async () => {
    await Promise.all(Array.from({ length: 1001 }, (_, i) => create(`g${i}.example`, { service })))
    expect(remoteApiServices(objects).size).to.equal(0)
  })
})
