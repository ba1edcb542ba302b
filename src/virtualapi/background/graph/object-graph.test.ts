import { expect } from 'chai'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clusterIdOf, type ClusterId, type ClusterName, type OwnerReference } from '#apimachinery/meta/index.ts'
import type { ObjectChange } from '#reconcile/object-graph/index.ts'
import { createWatchCache, type ClusterObjects, type WatchCache } from '#store/watch-cache/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { ClusterCatalog } from '#virtualapi/catalog/cluster-catalog.ts'
import { readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import { ObjectGraph } from './object-graph.ts'

describe('the object graph', () => {
  const { signal } = new AbortController()
  const acme: LogicalCluster = {
    name: 'acme' as ClusterName,
    id: clusterIdOf('uid of acme'),
    uid: 'uid of acme',
    creationTimestamp: '2026-01-01T00:00:00Z',
    owners: [],
    deleting: false,
  }
  const directory = {
    byName: (name: ClusterName) => (name === acme.name ? acme : undefined),
    byId: (id: ClusterId) => (id === acme.id ? acme : undefined),
    all: () => [acme],
    childrenOf: () => [],
    onChange: () => () => undefined,
  }
  let stack: AsyncDisposableStack
  let watchCache: WatchCache
  let graph: ObjectGraph
  let objects: ClusterObjects

  beforeEach(async () => {
    stack = new AsyncDisposableStack()
    const dir = await mkdtemp(join(tmpdir(), 'kcp-graph-'))
    stack.defer(() => rm(dir, { recursive: true, force: true }))
    const store = stack.use(await openSqliteStore({ file: join(dir, 'store.db') }))
    watchCache = stack.use(await createWatchCache(store, { stamp: stampRevision, readFacts, signal }))
    graph = new ObjectGraph({ watchCache, catalog: new ClusterCatalog(), directory })
    objects = await watchCache.cluster(acme.id, { signal })
  })
  afterEach(() => stack.disposeAsync())

  const keyOf = (name: string) => ({ resource: 'configmaps', namespace: 'shop', name })
  const bytesOf = (name: string, metadata: object): Buffer => {
    const all = { name, namespace: 'shop', uid: `uid-${name}`, creationTimestamp: acme.creationTimestamp, ...metadata }
    return Buffer.from(JSON.stringify({ kind: 'ConfigMap', apiVersion: 'v1', metadata: all, data: {} }))
  }
  const create = (name: string, metadata: object = {}) =>
    objects.create(keyOf(name), bytesOf(name, metadata), { signal })
  const update = (name: string, metadata: object) => {
    const { resource, namespace } = keyOf(name)
    const ifRevision = objects.get(resource, namespace, name)!.revision
    return objects.update(keyOf(name), bytesOf(name, metadata), { ifRevision, signal })
  }
  const remove = (name: string) => {
    const { resource, namespace } = keyOf(name)
    return objects.delete(keyOf(name), { ifRevision: objects.get(resource, namespace, name)!.revision, signal })
  }
  const describeChange = ({ key, exists, isNew, deleting }: ObjectChange): string =>
    [key.name, exists && 'exists', isNew && 'new', deleting && 'deleting'].filter(Boolean).join(' ')
  const ownedBy = (name: string, blockOwnerDeletion = false): { ownerReferences: OwnerReference[] } => ({
    ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name, uid: `uid-${name}`, blockOwnerDeletion }],
  })

  describe('follow', () => {
    it('reports what exists already as new, then every change in order', async () => {
      await create('a')
      const seen: string[] = []
      graph.follow('configmaps', (change) => seen.push(describeChange(change)))
      await create('b')
      await update('b', { deletionTimestamp: acme.creationTimestamp, finalizers: ['example.com/x'] })
      await remove('b')
      expect(seen).to.deep.equal(['a exists new', 'b exists new', 'b exists deleting', 'b deleting'])
    })

    it('reports one resource only, and nothing after it was ended', async () => {
      const seen: string[] = []
      graph.follow('secrets', (change) => seen.push(describeChange(change)))
      const stop = graph.follow('configmaps', (change) => seen.push(describeChange(change)))
      await create('a')
      stop()
      await create('b')
      expect(seen).to.deep.equal(['a exists new'])
    })

    it('does not report objects again when their logical cluster is loaded a second time', async () => {
      await create('a')
      const seen: string[] = []
      graph.follow('configmaps', (change) => seen.push(describeChange(change)))
      watchCache.unload(acme.id)
      objects = await watchCache.cluster(acme.id, { signal })
      expect(seen).to.deep.equal(['a exists new'])
    })

    it('gives the object, its text and its key with the id of the logical cluster', async () => {
      const seen: ObjectChange[] = []
      graph.follow('configmaps', (change) => seen.push(change))
      await create('a', { labels: { color: 'red' } })
      expect(seen[0]?.key).to.deep.equal({ cluster: acme.id, ...keyOf('a') })
      expect(seen[0]?.contains('"color":"red"')).to.equal(true)
      expect(seen[0]?.contains('"color":"blue"')).to.equal(false)
      expect(seen[0]?.object()?.metadata.labels).to.deep.equal({ color: 'red' })
    })
  })

  describe('observe', () => {
    const observed = (): string[] => {
      const seen: string[] = []
      graph.observe({
        onChanged: ({ name }) => seen.push(`changed ${name}`),
        onDeleted: ({ uid }) => seen.push(`deleted ${uid}`),
        onOwnersRemoved: (_, namespace, owners) =>
          seen.push(`owners removed ${namespace}/${owners.map(({ name }) => name).join()}`),
      })
      return seen
    }

    it('reports objects with owners or a deletion, and no other ones', async () => {
      const seen = observed()
      await create('owner')
      await create('owned', ownedBy('owner'))
      await update('owner', { labels: { any: 'label' } })
      await update('owner', { deletionTimestamp: acme.creationTimestamp, finalizers: ['foregroundDeletion'] })
      expect(seen).to.deep.equal(['changed owned', 'changed owner'])
    })

    it('reports the owners of a deleted object, and those that it no longer names', async () => {
      await create('owner')
      await create('owned', ownedBy('owner'))
      await create('other', ownedBy('owner'))
      const seen = observed()
      await remove('owned')
      await update('other', {})
      expect(seen).to.deep.equal(['deleted uid-owned', 'owners removed shop/owner', 'owners removed shop/owner'])
    })
  })

  it('finds dependents by uid, and whether one of them blocks', async () => {
    await create('owner')
    await create('free', ownedBy('owner'))
    const owner = { cluster: acme.id, ...keyOf('owner') }
    const names = async () => (await graph.dependents(acme.id, 'uid-owner', signal)).map(({ name }) => name).sort()
    expect(await names()).to.deep.equal(['free'])
    expect(await graph.isBlocked(owner, 'uid-owner', signal)).to.equal(false)
    await create('blocking', ownedBy('owner', true))
    expect(await names()).to.deep.equal(['blocking', 'free'])
    expect(await graph.isBlocked(owner, 'uid-owner', signal)).to.equal(true)
    expect(await graph.isBlocked({ ...owner, namespace: 'other' }, 'uid-owner', signal)).to.equal(false)
  })

  it('knows nothing of a logical cluster that does not exist', async () => {
    const unknown = clusterIdOf('uid of another')
    expect(graph.nameOf(unknown)).to.equal(undefined)
    expect(await graph.get({ cluster: unknown, ...keyOf('a') }, signal)).to.equal(undefined)
    expect(await graph.dependents(unknown, 'uid', signal)).to.deep.equal([])
  })
})
