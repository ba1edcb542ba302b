// The watch cache over a real embedded store: its watches must add up to its lists after any sequence of operations.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import fc from 'fast-check'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import {
  createWatchCache,
  type BaseLayer,
  type ClusterObjects,
  type Entry,
  type WatchCache,
  type CacheEvent,
  type CacheWatch,
  type WatchCacheOptions,
} from '#store/watch-cache/index.ts'
import type { ObjectKey, Store } from '#store/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { decodeObject, readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import { waitFor } from '#test/support/index.ts'
import { freshCluster, keyOf, record, refused, revisionOf } from './store.ts'

const { signal } = new AbortController()

setFlagsFromString('--expose-gc')
/** Runs the garbage collector. References held by a finished event loop iteration are free by then. */
const collect = runInNewContext('gc') as () => void
async function collectGarbage(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
  collect()
}

function bytesOf(name: string, n: number | string, owner?: string): Buffer {
  const metadata = { name, uid: `uid-${name}`, ...(owner && { ownerReferences: [{ uid: owner }] }) }
  return Buffer.from(JSON.stringify({ kind: 'ConfigMap', apiVersion: 'v1', metadata, data: { n: String(n) } }))
}

const baseNames = ['admin', 'edit', 'view']
const baseLayer: BaseLayer = {
  resources: ['clusterroles'],
  get: (key) =>
    key.resource === 'clusterroles' && baseNames.includes(key.name)
      ? bytesOf(key.name, `base of ${key.cluster}`)
      : undefined,
  keys: (cluster, resource, namespace) =>
    resource === 'clusterroles' && (namespace === undefined || namespace === '')
      ? baseNames.map((name) => ({ cluster, resource, namespace: '', name }))
      : [],
}

const nameText = ({ key }: Entry): string => `${key.namespace}/${key.name}`
const entryText = (entry: Entry): string =>
  `${nameText(entry)}@${entry.revision} ${Buffer.from(entry.bytes).toString()}`

/** A watch read in the background, and the state that its events lead to. */
class Follower {
  readonly state = new Map<string, string>()
  readonly events: CacheEvent[] = []
  ended: 'cleanly' | Error | undefined
  readonly #life = new AbortController()

  constructor(start: readonly Entry[]) {
    for (const entry of start) this.state.set(nameText(entry), entryText(entry))
  }

  get signal(): AbortSignal {
    return this.#life.signal
  }

  /** Reads the watch until it ends, or until the follower stops. */
  async read(watch: CacheWatch): Promise<void> {
    const stop = (): void => watch[Symbol.dispose]()
    if (this.signal.aborted) stop()
    else this.signal.addEventListener('abort', stop, { once: true })
    let wake = (): void => undefined
    watch.read({ ready: () => wake() })
    try {
      for (let batch = watch.take(); batch !== undefined; batch = watch.take()) {
        // Nothing to take: wait until the reader is called.
        if (!watch.waits && batch.length === 0) await new Promise<void>((resolve) => (wake = resolve))
        for (const event of batch) {
          this.events.push(event)
          if (event.type === 'DELETED') this.state.delete(nameText(event.entry))
          else this.state.set(nameText(event.entry), entryText(event.entry))
        }
      }
      this.ended = 'cleanly'
    } catch (error) {
      this.ended = error as Error
    }
  }

  stop(): void {
    this.#life.abort()
  }
}

describe('the watch cache', function () {
  this.timeout(60_000)
  let directory: string
  let store: Store
  let watchCache: WatchCache
  const start = async (options: Partial<WatchCacheOptions> = {}): Promise<void> => {
    store = await openSqliteStore({ file: join(directory, 'kcp.db') })
    watchCache = await createWatchCache(store, { stamp: stampRevision, readFacts, baseLayer, signal, ...options })
  }
  const stop = async (): Promise<void> => {
    await watchCache[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
  }
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kcp-hub-'))
    await start()
  })
  afterEach(async () => {
    await stop()
    rmSync(directory, { recursive: true, force: true })
  })

  const local = (name: string, resource = 'configmaps', namespace = 'shop') => ({ resource, namespace, name })
  const role = (name: string) => local(name, 'clusterroles', '')

  it('reads its own write at once', async () => {
    const objects = await watchCache.cluster(freshCluster(), { signal })
    for (let n = 0; n < 50; n++) {
      const made = await objects.create(local(`n${n}`), bytesOf(`n${n}`, n), { signal })
      expect(objects.get('configmaps', 'shop', `n${n}`)).to.equal(made)
      expect(objects.revision()).to.be.at.least(made.revision)
      expect(decodeObject(made.bytes).metadata.resourceVersion).to.equal(String(made.revision))
    }
    expect(objects.count({ resource: 'configmaps' })).to.equal(50)
    expect(objects.list({ resource: 'configmaps', namespace: 'elsewhere' })).to.deep.equal([])
  })

  it('lets objects of the base layer be changed, deleted and created again', async () => {
    const cluster = freshCluster()
    const objects = await watchCache.cluster(cluster, { signal })
    const follower = new Follower(objects.list({ resource: 'clusterroles' }))
    const watch = await objects.watch(
      { resource: 'clusterroles' },
      { since: objects.revision(), signal: follower.signal },
    )
    const reading = follower.read(watch)
    expect(objects.get('clusterroles', '', 'edit')).to.include({ revision: 1, base: true })
    await refused(objects.create(role('edit'), bytesOf('edit', 1), { signal }), 'KeyExists')
    await refused(
      objects.update(role('edit'), bytesOf('edit', 1), { signal, ifRevision: 7 as Revision }),
      'RevisionMismatch',
    )
    const edited = await objects.update(role('edit'), bytesOf('edit', 1), { signal, ifRevision: 1 as Revision })
    await objects.delete(role('view'), { signal, ifRevision: 1 as Revision })
    const gone = await objects.delete(role('edit'), { signal, ifRevision: edited.revision })
    expect(Buffer.from(gone.bytes).toString())
      .to.contain(`"resourceVersion":"${gone.revision}"`)
      .and.to.contain('"n":"1"')
    await refused(objects.delete(role('edit'), { signal, ifRevision: gone.revision }), 'KeyMissing')
    await refused(objects.update(role('edit'), bytesOf('edit', 2), { signal, ifRevision: gone.revision }), 'KeyMissing')
    await objects.create(role('edit'), bytesOf('edit', 3), { signal })
    await waitFor(() => follower.events.length === 4, { what: 'four events', deadlineMs: 5000, intervalMs: 5 })
    expect(follower.events.map(({ type, entry }) => `${type} ${entry.key.name}`)).to.deep.equal([
      'MODIFIED edit',
      'DELETED view',
      'DELETED edit',
      'ADDED edit',
    ])
    const listed = objects.list({ resource: 'clusterroles' })
    expect(listed.map(({ key, base }) => `${key.name} ${base}`)).to.deep.equal(['admin true', 'edit false'])
    watchCache.unload(cluster)
    await reading
    expect(follower.ended).to.equal('cleanly')
    const again = await watchCache.cluster(cluster, { signal })
    expect(again.list({ resource: 'clusterroles' }).map(entryText)).to.deep.equal(listed.map(entryText))
    const past = async (): Promise<string[]> => {
      const objects = await watchCache.cluster(cluster, { signal })
      const watch = await objects.watch({ resource: 'clusterroles' }, { since: 1 as Revision, signal })
      const seen = new Follower([])
      seen.stop()
      await seen.read(watch)
      return seen.events.map(({ type, entry }) => `${type} ${entry.key.name}`)
    }
    expect(await past()).to.deep.equal(['MODIFIED edit', 'DELETED view', 'DELETED edit', 'ADDED edit'])
    await stop()
    await start()
    expect(await past()).to.deep.equal(['DELETED view', 'MODIFIED edit'])
  })

  it('knows where a resource has just the objects of the base layer', async () => {
    const unwritten = async (cluster: ClusterId, resource = 'clusterroles'): Promise<boolean> => {
      const found = (await watchCache.cluster(cluster, { signal })).unwritten(resource)
      if (found !== undefined) expect(found).to.equal(baseLayer)
      return found !== undefined
    }
    const [changed, deleted, created] = [freshCluster(), freshCluster(), freshCluster()]
    for (const cluster of [changed, deleted, created]) expect(await unwritten(cluster)).to.equal(true)
    const ifRevision = 1 as Revision
    await (
      await watchCache.cluster(changed, { signal })
    ).update(role('edit'), bytesOf('edit', 1), { signal, ifRevision })
    await (await watchCache.cluster(deleted, { signal })).delete(role('edit'), { signal, ifRevision })
    const made = await (
      await watchCache.cluster(created, { signal })
    ).create(role('own'), bytesOf('own', 1), { signal })
    for (const cluster of [changed, deleted, created]) {
      expect(await unwritten(cluster)).to.equal(false)
      expect(await unwritten(cluster, 'configmaps')).to.equal(true)
      watchCache.unload(cluster)
      expect(await unwritten(cluster)).to.equal(false)
    }
    await (await watchCache.cluster(created, { signal })).delete(role('own'), { signal, ifRevision: made.revision })
    expect(await unwritten(created)).to.equal(true)
  })

  it('reports the names of changed objects since the last call, per resource', async () => {
    await using few = await createWatchCache(store, {
      stamp: stampRevision,
      readFacts,
      baseLayer,
      windowEvents: 4,
      signal,
    })
    const objects = await few.cluster(freshCluster(), { signal })
    const names = (since: number): string[] | undefined =>
      objects.changedNames('clusterroles', since)?.map(({ name }) => name)
    const start = objects.changes('clusterroles')
    expect(names(start)).to.deep.equal([])
    await objects.create(local('other'), bytesOf('other', 1), { signal })
    expect(objects.changes('clusterroles')).to.equal(start)
    await objects.update(role('edit'), bytesOf('edit', 1), { signal, ifRevision: 1 as Revision })
    const edited = objects.changes('clusterroles')
    expect(edited).to.be.above(start)
    await objects.delete(role('view'), { signal, ifRevision: 1 as Revision })
    const made = await objects.create(role('own'), bytesOf('own', 1), { signal })
    expect(names(start)).to.deep.equal(['edit', 'view', 'own'])
    expect(names(edited)).to.deep.equal(['view', 'own'])
    await objects.delete(role('own'), { signal, ifRevision: made.revision })
    await objects.create(role('more'), bytesOf('more', 1), { signal })
    expect(names(start), 'more than is kept').to.equal(undefined)
    expect(names(edited)).to.deep.equal(['view', 'own', 'own', 'more'])
    expect(names(objects.changes('clusterroles'))).to.deep.equal([])
  })

  it('finds dependents by the uid of their owner', async () => {
    const objects = await watchCache.cluster(freshCluster(), { signal })
    await objects.create(local('a'), bytesOf('a', 1, 'owner-1'), { signal })
    expect(objects.dependents('owner-1').map(nameText)).to.deep.equal(['shop/a'])
    const b = await objects.create(local('b', 'secrets'), bytesOf('b', 1, 'owner-1'), { signal })
    expect(objects.dependents('owner-1').map(nameText)).to.deep.equal(['shop/a', 'shop/b'])
    await objects.update(local('b', 'secrets'), bytesOf('b', 1, 'owner-2'), { signal, ifRevision: b.revision })
    expect(objects.dependents('owner-1').map(nameText)).to.deep.equal(['shop/a'])
    expect(objects.dependents('owner-2').map(nameText)).to.deep.equal(['shop/b'])
  })

  it('finds the dependents that block the deletion of an owner', async () => {
    const objects = await watchCache.cluster(freshCluster(), { signal })
    const owned = (name: string, ...owners: { uid: string; blockOwnerDeletion?: boolean }[]): Buffer =>
      Buffer.from(
        JSON.stringify({ ...{ kind: 'ConfigMap', apiVersion: 'v1' }, metadata: { name, ownerReferences: owners } }),
      )
    const blocks = { uid: 'o', blockOwnerDeletion: true }
    const at = (): string[] => [...objects.blockers('o')].map(({ resource, namespace }) => `${resource} ${namespace}`)
    const made = await objects.create(local('a'), owned('a', blocks, blocks), { signal })
    await objects.create(local('b'), owned('b', { uid: 'o' }), { signal })
    const c = await objects.create(local('c', 'secrets'), owned('c', { uid: 'p' }, blocks), { signal })
    const d = await objects.create(local('d'), owned('d', blocks), { signal })
    expect(at().sort()).to.deep.equal(['configmaps shop', 'secrets shop'])
    const free = owned('a', { ...blocks, blockOwnerDeletion: false })
    await objects.update(local('a'), free, { signal, ifRevision: made.revision })
    expect(at().sort()).to.deep.equal(['configmaps shop', 'secrets shop'])
    await objects.delete(local('d'), { signal, ifRevision: d.revision })
    expect(at()).to.deep.equal(['secrets shop'])
    await objects.delete(local('c', 'secrets'), { signal, ifRevision: c.revision })
    expect(at()).to.deep.equal([])
    expect(objects.dependents('o').map(nameText).sort()).to.deep.equal(['shop/a', 'shop/b'])
  })

  it('ends a slow watcher instead of buffering for it, and no other watcher', async () => {
    await stop()
    await start({ watcherBufferBytes: 10_000 })
    const objects = await watchCache.cluster(freshCluster(), { signal })
    const since = objects.revision()
    const slow = await objects.watch({ resource: 'configmaps' }, { since, signal })
    const quick = new Follower([])
    const reading = quick.read(await objects.watch({ resource: 'configmaps' }, { since, signal: quick.signal }))
    for (let n = 0; n < 200; n++) await objects.create(local(`n${n}`), bytesOf(`n${n}`, n), { signal })
    const late = new Follower([])
    await late.read(slow)
    expect(late.events).to.deep.equal([])
    expect(late.ended).to.include({ code: 'Compacted' })
    quick.stop()
    await reading
    expect(quick.events).to.have.length(200)
    expect(watchCache.usage().watchers).to.equal(0)
  })

  it('lists all logical clusters at one revision without loading them', async () => {
    const ids = Array.from({ length: 4 }, freshCluster)
    for (const id of ids) {
      const objects = await watchCache.cluster(id, { signal })
      await objects.create(local('x'), bytesOf('x', 1), { signal })
      await objects.delete(role('view'), { signal, ifRevision: 1 as Revision })
    }
    const inMemory = await watchCache.listAll({ resource: 'clusterroles' }, ids, { signal })
    for (const id of ids.slice(1)) watchCache.unload(id)
    const fromStore = await watchCache.listAll({ resource: 'clusterroles' }, ids, { signal })
    expect(fromStore.entries.map(entryText)).to.deep.equal(inMemory.entries.map(entryText))
    expect(fromStore.entries).to.have.length(8)
    expect(watchCache.usage().clusters).to.equal(1)
    const some = await watchCache.listAll({ resource: 'configmaps' }, ids.slice(2), { signal })
    expect(some.entries.map(({ key }) => key.cluster)).to.deep.equal(ids.slice(2).sort())
    const stored = await watchCache.listStored({ resource: 'configmaps' }, { signal })
    const ours = stored.entries.filter(({ key }) => ids.includes(key.cluster))
    expect(ours.map(({ key }) => key.cluster)).to.deep.equal(ids.toSorted())
    // Nobody wrote a role; one was deleted.
    const roles = await watchCache.listStored({ resource: 'clusterroles' }, { signal })
    expect(roles.entries.filter(({ key }) => ids.includes(key.cluster))).to.deep.equal([])
    const follower = new Follower([])
    const reading = follower.read(
      await watchCache.watchAll({ resource: 'configmaps' }, { since: some.revision, signal: follower.signal }),
    )
    await store.create({ cluster: ids[3]!, ...local('y') } satisfies ObjectKey, bytesOf('y', 1), { signal })
    await watchCache.deleteCluster(ids[3]!, { signal })
    follower.stop()
    await reading
    expect(follower.events.map(({ type, entry }) => `${type} ${entry.key.name}`)).to.deep.equal([
      'ADDED y',
      'DELETED x',
      'DELETED y',
    ])
  })

  it('counts marks as no objects', async () => {
    const objects = await watchCache.cluster(freshCluster(), { signal })
    await objects.create(local('x'), bytesOf('x', 1), { signal })
    const before = watchCache.loadOf(objects.cluster)
    const frozen = await objects.freeze(bytesOf('frozen', 1), { signal })
    expect(watchCache.loadOf(objects.cluster)).to.deep.equal(before)
    await objects.removeMark('frozen', { ifRevision: frozen.revision, signal })
    expect(watchCache.loadOf(objects.cluster)).to.deep.equal(before)
    watchCache.unload(objects.cluster)
    expect(watchCache.usage()).to.include({ objects: 0, bytes: 0 })
  })

  it('serves the id of a deleted logical cluster again, empty, once its objects are gone and it was made anew', async () => {
    const cluster = freshCluster()
    const old = await watchCache.cluster(cluster, { signal })
    await old.create(local('old'), bytesOf('old', 1), { signal })
    const since = watchCache.revision()
    const deleteObjects = store.deleteCluster.bind(store)
    const held = Promise.withResolvers<undefined>()
    store.deleteCluster = async (...args) => {
      await held.promise
      await deleteObjects(...args)
    }
    const slow = watchCache.deleteCluster(cluster, { signal })
    store.deleteCluster = deleteObjects
    await watchCache.deleteCluster(cluster, { signal })
    await refused(watchCache.cluster(cluster, { signal }), 'Closed')
    // The first deletion has not ended: it would delete the new objects.
    watchCache.reopen(cluster)
    await refused(watchCache.cluster(cluster, { signal }), 'Closed')
    held.resolve(undefined)
    await slow
    expect(watchCache.hasEnded(cluster)).to.equal(false)
    const anew = await watchCache.cluster(cluster, { signal })
    expect(anew.list({ resource: 'configmaps' })).to.deep.equal([])
    await anew.create(local('new'), bytesOf('new', 1), { signal })
    await refused(old.create(local('late'), bytesOf('late', 1), { signal }), 'Closed')
    const follower = new Follower([])
    follower.stop()
    await follower.read(await anew.watch({ resource: 'configmaps' }, { since, signal }))
    expect(follower.events.map(({ type, entry }) => `${type} ${entry.key.name}`)).to.deep.equal([
      'DELETED old',
      'ADDED new',
    ])
    store.deleteCluster = () => Promise.reject(new Error('the disk is full'))
    await watchCache.deleteCluster(cluster, { signal }).catch(() => undefined)
    store.deleteCluster = deleteObjects
    watchCache.reopen(cluster)
    await refused(watchCache.cluster(cluster, { signal }), 'Closed')
  })

  it('resumes a watch after a restart with final states, and first deletes an object whose name another one has now', async () => {
    const ids = [freshCluster(), freshCluster()]
    const write = async (id: ClusterId, name: string): Promise<void> => {
      const objects = await watchCache.cluster(id, { signal })
      const found = objects.get('configmaps', 'shop', name)
      if (found) await objects.update(local(name), bytesOf(name, 2), { signal, ifRevision: found.revision })
      else await objects.create(local(name), bytesOf(name, 1), { signal })
    }
    const remove = async (id: ClusterId, name: string): Promise<void> => {
      const objects = await watchCache.cluster(id, { signal })
      const ifRevision = objects.get('configmaps', 'shop', name)?.revision ?? (0 as Revision)
      await objects.delete(local(name), { signal, ifRevision })
    }
    for (const id of ids) for (const name of ['again', 'changed', 'gone', 'quiet']) await write(id, name)
    const since = watchCache.revision()
    for (const id of ids) {
      for (const name of ['again', 'brief', 'gone']) {
        if (name === 'brief') await write(id, name)
        await remove(id, name)
      }
      for (const name of ['again', 'again', 'changed', 'changed', 'new', 'new', 'gone']) await write(id, name)
      await remove(id, 'gone')
    }
    await stop()
    await start()
    const expected = ['DELETED again', 'DELETED brief', 'DELETED gone', 'ADDED again', 'MODIFIED changed', 'ADDED new']
    const said = ({ events }: Follower): string[] => events.map(({ type, entry }) => `${type} ${entry.key.name}`)
    const all = new Follower([])
    const reading = [all.read(await watchCache.watchAll({ resource: 'configmaps' }, { since, signal: all.signal }))]
    for (const id of ids) {
      const one = new Follower([])
      const objects = await watchCache.cluster(id, { signal })
      const watch = await objects.watch({ resource: 'configmaps' }, { since, signal: one.signal })
      one.stop()
      await one.read(watch)
      expect(said(one)).to.deep.equal(expected)
    }
    all.stop()
    await Promise.all(reading)
    expect(said(all)).to.deep.equal([...expected, ...expected])
  })

  it('resumes a watch from before a restart with every step since the restart', async () => {
    const id = freshCluster()
    const before = await watchCache.cluster(id, { signal })
    const since = watchCache.revision()
    const created = await before.create(local('made-before'), bytesOf('made-before', 1), { signal })
    // The watch of another kind is all that this revision tells; the new watch cache begins there.
    await before.create(local('s', 'secrets'), bytesOf('s', 1), { signal })
    await stop()
    await start()
    const { revision } = await store.create({ cluster: id, ...local('a') }, bytesOf('a', 1), { signal })
    const key = { cluster: id, ...local('made-before') }
    await store.update(key, bytesOf('made-before', 2), { signal, ifRevision: created.revision })
    const second = await store.update({ cluster: id, ...local('a') }, bytesOf('a', 2), { signal, ifRevision: revision })
    await store.delete({ cluster: id, ...local('a') }, { signal, ifRevision: second.revision })
    await watchCache.reached(await store.revision({ signal }), { signal })
    const follower = new Follower([])
    const all = new Follower([])
    const objects = await watchCache.cluster(id, { signal })
    const watch = await objects.watch({ resource: 'configmaps' }, { since, signal: follower.signal })
    const every = await watchCache.watchAll({ resource: 'configmaps' }, { since, signal: all.signal })
    follower.stop()
    all.stop()
    await Promise.all([follower.read(watch), all.read(every)])
    const said = ({ events }: Follower): string[] => events.map(({ type, entry }) => `${type} ${entry.key.name}`)
    expect(said(follower)).to.deep.equal(['ADDED a', 'ADDED made-before', 'MODIFIED a', 'DELETED a'])
    expect(said(all)).to.deep.equal(said(follower))
  })

  it("reports a watch's progress, never beyond the taken events", async () => {
    const objects = await watchCache.cluster(freshCluster(), { signal })
    const since = objects.revision()
    const watch = await objects.watch({ resource: 'configmaps' }, { since, signal })
    const other = await objects.create(local('s', 'secrets'), bytesOf('s', 1), { signal })
    expect(watch.progress()).to.equal(other.revision)
    expect(watch.waits).to.equal(false)
    let calls = 0
    watch.read({ ready: () => calls++ })
    const made = await objects.create(local('a'), bytesOf('a', 1), { signal })
    expect([calls, watch.waits]).to.deep.equal([1, true])
    expect(watch.progress()).to.be.lessThan(made.revision)
    expect(watch.take()?.map(({ revision }) => revision)).to.deep.equal([made.revision])
    expect(watch.progress()).to.equal(made.revision)
    expect(watch.take()).to.deep.equal([])
    await objects.create(local('b'), bytesOf('b', 1), { signal })
    watch[Symbol.dispose]()
    expect(watch.take()).to.have.length(1)
    expect(watch.take()).to.equal(undefined)
  })

  it('serves every step from before a logical cluster was loaded, while the watch cache itself remembers it', async () => {
    const id = freshCluster()
    const first = await watchCache.cluster(id, { signal })
    const since = watchCache.revision()
    const { revision } = await first.create(local('a'), bytesOf('a', 1), { signal })
    const second = await first.update(local('a'), bytesOf('a', 2), { signal, ifRevision: revision })
    await first.update(local('a'), bytesOf('a', 3), { signal, ifRevision: second.revision })
    const { revision: brief } = await first.create(local('brief'), bytesOf('brief', 1), { signal })
    await first.delete(local('brief'), { signal, ifRevision: brief })
    watchCache.unload(id)
    const follower = new Follower([])
    const objects = await watchCache.cluster(id, { signal })
    const watch = await objects.watch({ resource: 'configmaps' }, { since, signal: follower.signal })
    follower.stop()
    await follower.read(watch)
    expect(follower.events.map(({ type, entry }) => `${type} ${entry.key.name}`)).to.deep.equal([
      ...['ADDED a', 'MODIFIED a', 'MODIFIED a', 'ADDED brief', 'DELETED brief'],
    ])
  })

  it('keeps an evicted cluster up to date for its holder, and stops counting it', async () => {
    const id = freshCluster()
    const objects = await watchCache.cluster(id, { signal })
    await objects.create(local('a'), bytesOf('a', 1), { signal })
    expect(watchCache.usage()).to.include({ clusters: 1, objects: 1 })
    expect(watchCache.release(id)).to.equal(true)
    expect(watchCache.usage()).to.include({ clusters: 0, objects: 0, bytes: 0 })
    const made = await objects.create(local('b'), bytesOf('b', 1), { signal })
    await objects.update(local('b'), bytesOf('b', 2), { signal, ifRevision: made.revision })
    expect(objects.list({ resource: 'configmaps' }).map(nameText)).to.deep.equal(['shop/a', 'shop/b'])
    expect(watchCache.usage()).to.include({ clusters: 0, objects: 0, bytes: 0 })
    expect(await watchCache.cluster(id, { signal })).to.equal(objects)
    expect(watchCache.usage()).to.include({ clusters: 1, objects: 2 })
  })

  it('frees the memory of an evicted cluster, and loads it again on use', async () => {
    const id = freshCluster()
    const last = await (async () => {
      const objects = await watchCache.cluster(id, { signal })
      await objects.create(local('a'), bytesOf('a', 1), { signal })
      return objects.list({ resource: 'configmaps' }).map(entryText)
    })()
    watchCache.release(id)
    await waitFor(
      async () => {
        await collectGarbage()
        return watchCache.loaded(id) === undefined
      },
      { what: 'its memory', deadlineMs: 10_000, intervalMs: 5 },
    )
    const again = await watchCache.cluster(id, { signal })
    expect(again.list({ resource: 'configmaps' }).map(entryText)).to.deep.equal(last)
  })

  it('never evicts a watched cluster', async () => {
    const id = freshCluster()
    const objects = await watchCache.cluster(id, { signal })
    const follower = new Follower([])
    const since = objects.revision()
    const reading = follower.read(await objects.watch({ resource: 'configmaps' }, { since, signal: follower.signal }))
    expect(watchCache.release(id)).to.equal(false)
    await objects.create(local('a'), bytesOf('a', 1), { signal })
    follower.stop()
    await reading
    expect(follower.events).to.have.length(1)
    expect(watchCache.release(id)).to.equal(true)
    // A watch that begins on an evicted cluster puts it back: it must be counted.
    using _watch = await objects.watch({ resource: 'configmaps' }, { since, signal })
    expect(watchCache.usage()).to.include({ clusters: 1, objects: 1 })
    expect(watchCache.release(id)).to.equal(false)
  })

  it('evicts the least recently used beyond the memory limit, and never the last one', async () => {
    await stop()
    await start({ memoryBytes: 100_000 })
    const ids = Array.from({ length: 20 }, freshCluster)
    const text = 'x'.repeat(10_000)
    for (const id of ids) {
      const objects = await watchCache.cluster(id, { signal })
      await objects.create(local('a'), bytesOf('a', text), { signal })
      await watchCache.cluster(ids[0]!, { signal })
      expect(watchCache.usage().bytes).to.be.lessThan(100_000)
      expect(watchCache.release(ids[0]!)).to.equal(true)
      await watchCache.cluster(ids[0]!, { signal })
    }
    expect(watchCache.usage().clusters).to.be.within(2, 9)
    const large = await watchCache.cluster(freshCluster(), { signal })
    for (let n = 0; n < 15; n++) await large.create(local(`n${n}`), bytesOf('a', text), { signal })
    expect(watchCache.usage()).to.include({ clusters: 1, objects: 15 })
  })

  it('evicts idle clusters without a timer for each', async () => {
    await stop()
    await start({ idleMs: 40 })
    for (let n = 0; n < 10; n++) {
      const objects = await watchCache.cluster(freshCluster(), { signal })
      await objects.create(local('a'), bytesOf('a', 1), { signal })
    }
    expect(watchCache.usage().clusters).to.be.at.least(1)
    await waitFor(() => watchCache.usage().clusters === 0, { what: 'all to go', deadlineMs: 5000, intervalMs: 5 })
    expect(watchCache.usage()).to.deep.equal({ clusters: 0, objects: 0, bytes: 0, watchers: 0 })
  })

  it('drops old events, and serves a watch from before them with the same events from the store', async () => {
    await stop()
    await start({ idleMs: 40 })
    const objects = await watchCache.cluster(freshCluster(), { signal })
    const since = objects.revision()
    const a = await objects.create(local('a'), bytesOf('a', 1), { signal })
    await objects.create(local('b'), bytesOf('b', 1), { signal })
    await objects.delete(local('a'), { signal, ifRevision: a.revision })
    expect(objects.listAt({ resource: 'configmaps' }, since)).to.deep.equal([])
    const beforeLast = (objects.revision() - 1) as Revision
    // Held here, so that it stays in memory all the time.
    await waitFor(() => objects.listAt({ resource: 'configmaps' }, beforeLast) === undefined, {
      what: 'the events to be forgotten',
      deadlineMs: 5000,
      intervalMs: 5,
    })
    const follower = new Follower([])
    const watch = await objects.watch({ resource: 'configmaps' }, { since, signal: follower.signal })
    const reading = follower.read(watch)
    await objects.create(local('c'), bytesOf('c', 1), { signal })
    follower.stop()
    await reading
    expect(follower.events.map(({ type, entry }) => `${type} ${entry.key.name}`)).to.deep.equal([
      'ADDED b',
      'DELETED a',
      'ADDED c',
    ])
  })

  it('loses, duplicates and reorders no event while logical clusters are loaded and evicted', async function () {
    this.timeout(120_000)
    const step = fc.record({
      do: fc.constantFrom(
        'write',
        'write',
        'write',
        'past the watch cache',
        'delete',
        'watch',
        'watch',
        'stop',
        'release',
        'collect',
      ),
      cluster: fc.nat(2),
      name: fc.constantFrom('a', 'b', 'c'),
      back: fc.nat(8),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 20, maxLength: 60 }),
        fc.constantFrom(3, 1024),
        async (steps, windowEvents) => {
          await stop()
          // Enough for one of the three.
          await start({ windowEvents, memoryBytes: 3000 })
          await loadAndEvict(steps)
        },
      ),
      { numRuns: 12 },
    )
  })

  interface LoadAndEvict {
    do: string
    cluster: number
    name: string
    back: number
  }
  interface Watched {
    cluster: number
    since: number
    begun: number
    follower: Follower
    reading: Promise<void>
  }

  /** The store's own stream decides which events every watch must deliver. */
  async function loadAndEvict(steps: readonly LoadAndEvict[]): Promise<void> {
    const ids = Array.from({ length: 3 }, freshCluster)
    const truth = record(store, undefined, watchCache.revision())
    const watches: Watched[] = []
    const scope = { resource: 'configmaps' }
    const end = async ({ cluster, since, begun, follower, reading }: Watched): Promise<void> => {
      const wanted = truth.events.filter((event) => keyOf(event).cluster === ids[cluster])
      follower.stop()
      await reading
      expect(follower.ended, 'a watch ended').to.equal('cleanly')
      const heard = follower.events.map(({ revision }) => revision)
      expect(heard, 'each once, in order').to.deep.equal([...new Set(heard)].sort((a, b) => a - b))
      const live = wanted.map(revisionOf).filter((revision) => revision > begun)
      expect(
        heard.filter((revision) => revision > begun),
        'all since it began',
      ).to.deep.equal(live)
      expect(heard.every((revision) => revision > since)).to.equal(true)
      const left = new Set<string>()
      for (const event of wanted) {
        if (event.type === 'put') left.add(`shop/${event.object.key.name}`)
        else left.delete(`shop/${event.key.name}`)
      }
      const touched = wanted.filter((event) => revisionOf(event) > since).map((event) => `shop/${keyOf(event).name}`)
      expect([...follower.state.keys()].sort(), 'what it leads to').to.deep.equal(
        [...left].filter((name) => touched.includes(name)).sort(),
      )
    }
    for (const [n, { do: what, cluster, name, back }] of steps.entries()) {
      const id = ids[cluster]!
      if (what === 'past the watch cache') {
        const key = { cluster: id, ...local(name) }
        const found = await store.get(key, { signal })
        if (found) await store.update(key, bytesOf(name, n), { signal, ifRevision: found.revision })
        else await store.create(key, bytesOf(name, n), { signal })
      } else if (what === 'write' || what === 'delete') {
        await watchCache.reached(await store.revision({ signal }), { signal })
        const objects = await watchCache.cluster(id, { signal })
        const found = objects.get('configmaps', 'shop', name)
        if (what === 'delete') {
          if (found) await objects.delete(local(name), { signal, ifRevision: found.revision })
        } else if (found) await objects.update(local(name), bytesOf(name, n), { signal, ifRevision: found.revision })
        else await objects.create(local(name), bytesOf(name, n), { signal })
      } else if (what === 'watch') {
        const objects = await watchCache.cluster(id, { signal })
        const begun = objects.revision()
        const since = Math.max(1, begun - back)
        const follower = new Follower([])
        const watch = await objects.watch(scope, { since: since as Revision, signal: follower.signal })
        watches.push({ cluster, since, begun, follower, reading: follower.read(watch) })
      } else if (what === 'stop') {
        const [watch] = watches.splice(back % (watches.length || 1), 1)
        if (watch) await end(watch)
      } else if (what === 'release') watchCache.release(id)
      else await collectGarbage()
    }
    for (const watch of watches) await end(watch)
    await truth.stop()
  }

  it('serves every list from every revision, across unloading and restarts', async () => {
    const step = fc.oneof(
      {
        weight: 8,
        arbitrary: fc.record({
          do: fc.constantFrom('put', 'delete'),
          name: fc.constantFrom('a', 'b', 'c', 'd'),
          space: fc.constantFrom('x', 'y'),
        }),
      },
      {
        weight: 3,
        arbitrary: fc.record({ do: fc.constantFrom('putBase', 'deleteBase'), name: fc.constantFrom(...baseNames) }),
      },
      {
        weight: 3,
        arbitrary: fc.record({
          do: fc.constant('watch'),
          back: fc.nat(6),
          kind: fc.constantFrom('configmaps', 'clusterroles'),
        }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('unload', 'restart') }) },
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 10, maxLength: 60 }),
        fc.constantFrom(3, 1024),
        async (steps, windowEvents) => {
          await stop()
          await start({ windowEvents })
          await play(freshCluster(), steps, windowEvents)
        },
      ),
      { numRuns: 25 },
    )
  })

  interface Step {
    do: 'put' | 'delete' | 'putBase' | 'deleteBase' | 'watch' | 'unload' | 'restart'
    name?: string
    space?: string
    back?: number
    kind?: string
  }

  /** Runs the steps, remembers each list by its revision, and checks watches from the remembered ones. */
  async function play(cluster: ClusterId, steps: readonly Step[], windowEvents: number): Promise<void> {
    let objects: ClusterObjects = await watchCache.cluster(cluster, { signal })
    const kinds = ['configmaps', 'clusterroles']
    const history: { revision: Revision; lists: Map<string, readonly Entry[]> }[] = []
    const followers: { kind: string; follower: Follower; reading: Promise<void> }[] = []
    const remember = (): void => {
      history.push({
        revision: objects.revision(),
        lists: new Map(kinds.map((kind) => [kind, objects.list({ resource: kind })])),
      })
    }
    const check = async (): Promise<void> => {
      for (const { kind, follower, reading } of followers.splice(0)) {
        follower.stop()
        await reading
        const wanted = objects.list({ resource: kind }).map((entry) => [nameText(entry), entryText(entry)])
        expect([...follower.state].sort(), `${kind} of a watch`).to.deep.equal(wanted.sort())
        const revisions = follower.events.map(({ revision }) => revision)
        expect(revisions).to.deep.equal(revisions.toSorted((a, b) => a - b))
      }
    }
    remember()
    for (const [n, step] of steps.entries()) {
      const key = step.do.endsWith('Base') ? role(step.name!) : local(step.name ?? '', 'configmaps', step.space)
      if (step.do === 'put' || step.do === 'putBase') {
        const found = objects.get(key.resource, key.namespace, key.name)
        const value = bytesOf(key.name, n)
        if (found) await objects.update(key, value, { signal, ifRevision: found.revision })
        else await objects.create(key, value, { signal })
      } else if (step.do === 'delete' || step.do === 'deleteBase') {
        const found = objects.get(key.resource, key.namespace, key.name)
        if (found) await objects.delete(key, { signal, ifRevision: found.revision })
      } else if (step.do === 'watch') {
        const from = history.at(-1 - step.back!) ?? history[0]!
        const kind = step.kind!
        const follower = new Follower(from.lists.get(kind)!)
        const watch = await objects.watch({ resource: kind }, { since: from.revision, signal: follower.signal })
        followers.push({ kind, follower, reading: follower.read(watch) })
        const past = objects.listAt({ resource: kind }, from.revision)
        if (past) expect(past.map(entryText)).to.deep.equal(from.lists.get(kind)!.map(entryText))
        else
          expect(
            windowEvents === 3 || steps.slice(0, n).some(({ do: what }) => what === 'unload' || what === 'restart'),
          ).to.equal(true)
      } else {
        await check()
        if (step.do === 'unload') watchCache.unload(cluster)
        else {
          await stop()
          await start({ windowEvents })
        }
        objects = await watchCache.cluster(cluster, { signal })
      }
      remember()
    }
    await check()
  }
})
