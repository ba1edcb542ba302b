// The suite of stores on a real kube-apiserver and etcd, and the parts that only the host backend has: Records, seals,
// a host that goes away.
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { expect } from 'chai'
import {
  createClient,
  httpTransport,
  loadKubeconfig,
  type KubeClient,
  type Transport,
  type TransportRequest,
} from '#client/index.ts'
import { records, storageCrds, type StorageRecord } from '#crds/index.ts'
import { serviceUnavailable } from '#apimachinery/status/index.ts'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { isStoreError, type ObjectKey, type Store, type StoredObject } from '#store/index.ts'
import { createWatchCache, type BaseLayer, type CacheWatch } from '#store/watch-cache/index.ts'
import { abortable } from '#async/index.ts'
import { openHostStore, resealRecords, type SharedStore } from '#store/host/index.ts'
import { readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import { startCluster, waitFor, type Cluster } from '#test/support/index.ts'
import { describeStore, freshCluster, record, refused, valueOf, type StoreFixture } from './store.ts'

const { signal } = new AbortController()
const sealKey = randomBytes(32)
const crds = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' }

describe('objects as Records in a host', function () {
  this.timeout(180_000)
  let cluster: Cluster
  let transport: Transport
  let client: KubeClient
  const problems: string[] = []

  before(async () => {
    cluster = await startCluster({ name: 'host' })
    transport = httpTransport(await loadKubeconfig({ file: cluster.kubeconfig }, { trusted: true }))
    client = createClient(transport)
    for (const crd of storageCrds()) await client.create(crds, crd, { signal })
    await waitFor(
      async () =>
        await client.list(records, { signal }).then(
          () => true,
          () => false,
        ),
      {
        what: 'Records to be served',
        deadlineMs: 30_000,
      },
    )
  })
  after(async () => {
    await transport[Symbol.asyncDispose]()
    await cluster.stop()
  })

  const openStore = async (writeTimeoutMs = 10_000): Promise<Store> =>
    await openHostStore({
      client,
      sealKey,
      signal,
      writeTimeoutMs,
      onProblem: (message, error) => problems.push(`${message}: ${String(error)}`),
    })

  const open = async (): Promise<StoreFixture> => {
    let store = await openStore()
    return {
      get store() {
        return store
      },
      reopen: async () => {
        await store[Symbol.asyncDispose]()
        store = await openStore()
        return store
      },
      [Symbol.asyncDispose]: async () => await store[Symbol.asyncDispose](),
    }
  }

  describeStore({
    backend: 'host',
    open,
    load: 80,
    // A watch from before the start of a kind that had deletions meanwhile is answered 410 and lists again.
    remembersDeletions: false,
    raisesRevisions: false,
  })

  describe('renewals of Leases and repeated Events', () => {
    const open = new Set<SharedStore>()
    const openShared = async (keepRenewalsMs = 60_000): Promise<SharedStore> => {
      const store = await openHostStore({ client, sealKey, signal, keepRenewalsMs })
      open.add(store)
      return store
    }
    afterEach(async () => {
      for (const store of open) await store[Symbol.asyncDispose]()
      open.clear()
    })
    const keyOfLease = (of: ClusterId, name: string, resource = 'leases.coordination.k8s.io'): ObjectKey => ({
      ...{ cluster: of, resource, namespace: 'shop', name },
    })
    /** Resolves when the store has heard of it from the host, as writers do who see it. */
    const create = async (store: Store, of: ClusterId, name: string): Promise<StoredObject> => {
      const made = await store.create(keyOfLease(of, name), valueOf(name), { signal })
      await waitFor(async () => (await store.revision({ signal })) >= made.revision, {
        what: 'the event of a creation',
        deadlineMs: 30_000,
      })
      return made
    }
    const renew = (store: Store, { key, revision }: StoredObject, n: number): Promise<StoredObject> =>
      store.update(key, valueOf(key.name, n), { signal, ifRevision: revision, renewal: true })
    const recordsOf = async (of: ClusterId): Promise<Map<string, StorageRecord>> => {
      const { items } = await client.list<StorageRecord>(records, { signal })
      return new Map(items.filter(({ cluster }) => cluster === of).map((record) => [record.name, record]))
    }
    const textOf = (object: StoredObject | undefined): string => Buffer.from(object?.value ?? []).toString()

    it('are read and watched as any other write, in order, and change no Record', async () => {
      const store = await openShared()
      const of = freshCluster()
      const names = ['a', 'b', 'c']
      // Two Leases, and an Event that is repeated.
      const keys = names.map((name) => keyOfLease(of, name, name === 'c' ? 'events' : undefined))
      let leases = await Promise.all(keys.map((key) => store.create(key, valueOf(key.name), { signal })))
      const created = await recordsOf(of)
      const watch = record(store, of, await store.revision({ signal }))
      const revisions: number[] = []
      for (let n = 1; n <= 3; n++) {
        leases = await Promise.all(leases.map((lease) => renew(store, lease, n)))
        revisions.push(...leases.map(({ revision }) => revision))
        for (const lease of leases) {
          const found = await store.get(lease.key, { signal })
          expect([textOf(found), found?.revision]).to.deep.equal([textOf(lease), lease.revision])
        }
      }
      const { items, revision } = await store.list({ cluster: of }, { signal })
      expect(items.map(textOf)).to.have.members(leases.map(textOf))
      expect(revision).to.be.at.least(Math.max(...revisions))
      expect(watch.events.map((event) => event.type === 'put' && event.object.revision)).to.deep.equal(
        revisions.sort((a, b) => a - b),
      )
      expect(new Set(revisions).size).to.equal(revisions.length)
      expect(await recordsOf(of)).to.deep.equal(created)
      await watch.stop()
      await refused(renew(store, { ...leases[0]!, revision: created.size as Revision }, 9), 'RevisionMismatch')
      await store.deleteCluster(of, { signal })
      expect((await store.list({ cluster: of }, { signal })).items).to.deep.equal([])
    })

    it('are followed by other writes of the Lease, which are in the host at once', async () => {
      const store = await openShared()
      const of = freshCluster()
      const lease = await renew(store, await create(store, of, 'a'), 1)
      const stale = await create(store, of, 'b')
      await renew(store, stale, 1)
      const holder = valueOf('a', 2)
      const taken = await store.update(lease.key, holder, { signal, ifRevision: lease.revision })
      expect(taken.revision).to.be.greaterThan(lease.revision)
      expect((await recordsOf(of)).get('a')?.data).to.equal(holder.toString())
      await refused(store.delete(stale.key, { signal, ifRevision: stale.revision }), 'RevisionMismatch')
      const newest = await store.get(stale.key, { signal })
      await store.delete(stale.key, { signal, ifRevision: newest!.revision })
      expect(await store.get(stale.key, { signal })).to.equal(undefined)
      await store.deleteCluster(of, { signal })
    })

    it('are in the host after a while, if nobody repeats them', async () => {
      const store = await openShared(0)
      const of = freshCluster()
      const idle = await renew(store, await create(store, of, 'a'), 1)
      await waitFor(async () => (await recordsOf(of)).get('a')?.data === textOf(idle), {
        what: 'the renewal to be written',
        deadlineMs: 60_000,
      })
      await store.deleteCluster(of, { signal })
    })

    it('are handed over, and no revision comes again if they are not', async () => {
      const store = await openShared()
      const of = freshCluster()
      const [saved, lost] = await Promise.all(['saved', 'lost'].map((name) => create(store, of, name)))
      const kept = await renew(store, saved!, 1)
      await store.saveRenewals((cluster) => cluster === of, { signal })
      const shown = await renew(store, lost!, 1)
      // As after kill -9: the first store is never closed properly.
      const next = await openShared()
      expect(textOf(await next.get(kept.key, { signal }))).to.equal(textOf(kept))
      expect(textOf(await next.get(shown.key, { signal }))).to.equal(textOf(lost))
      expect((await next.list({ cluster: of }, { signal })).revision).to.be.at.least(shown.revision)
      store.forgetRenewals(() => true)
      expect(textOf(await store.get(shown.key, { signal }))).to.equal(textOf(lost))
      await refused(renew(next, shown, 2), 'RevisionMismatch')
      const again = await renew(next, lost!, 2)
      expect(again.revision).to.be.greaterThan(shown.revision)

      await using watchCache = await createWatchCache(next, { stamp: stampRevision, readFacts, signal })
      const objects = await watchCache.cluster(of, { signal })
      const scope = { resource: lost!.key.resource }
      expect(objects.get(scope.resource, 'shop', 'lost')?.revision).to.equal(again.revision)
      // What the first store showed after this revision is not known here.
      await refused(objects.watch(scope, { since: shown.revision, signal }), 'Compacted')
      using watch = await objects.watch(scope, { since: objects.revision(), signal })
      const { revision } = await objects.update(again.key, valueOf('lost', 3), {
        ...{ signal, ifRevision: again.revision, renewal: true },
      })
      expect(watch.take()?.map((event) => event.revision)).to.deep.equal([revision])
      await next.deleteCluster(of, { signal })
    })
  })

  describe('a Record', () => {
    let store: Store
    beforeEach(async () => (store = await openStore(3000)))
    afterEach(async () => await store[Symbol.asyncDispose]())

    const all = async (of: string): Promise<StorageRecord[]> =>
      (await client.list<StorageRecord>(records, { signal })).items.filter((one) => one.cluster === of)

    it('is in the bucket of its logical cluster, and shows its owner to readers of the host', async () => {
      const key: ObjectKey = { cluster: freshCluster(), resource: 'configmaps', namespace: 'shop', name: 'web' }
      await store.create(key, valueOf('web'), { signal })
      const [found] = await all(key.cluster)
      expect(found?.metadata.namespace).to.match(/^kcp-records-[0-9a-f]{2}$/)
      expect(JSON.parse(found!.data)).to.deep.equal(JSON.parse(valueOf('web').toString()))
      const { stdout } = await cluster.kubectl(['get', 'records', '-n', found!.metadata.namespace])
      expect(stdout).to.match(new RegExp(`${key.cluster} +configmaps +shop +web`))
    })

    it('of a Secret hides the payload, and opens only for the right object', async () => {
      const key: ObjectKey = { cluster: freshCluster(), resource: 'secrets', namespace: 'shop', name: 'db' }
      const value = Buffer.from('{"kind":"Secret","data":{"password":"aHVudGVyMg=="}}')
      await store.create(key, value, { signal })
      const [found] = await all(key.cluster)
      expect(found!.data).to.match(/^sealed:/)
      expect(JSON.stringify(found)).to.not.contain('aHVudGVyMg')
      expect(Buffer.from((await store.get(key, { signal }))!.value).equals(value)).to.equal(true)
      const stolen = { ...found!, name: 'mine', metadata: { ...found!.metadata, name: 'x'.repeat(40) } }
      const { resourceVersion: _, uid: __, ...metadata } = stolen.metadata
      await client.create(records, { ...stolen, metadata }, { signal })
      await waitFor(() => problems.some((one) => one.includes('is not where the object it holds belongs')), {
        what: 'the copy to be told',
        deadlineMs: 10_000,
      })
      await client.delete(records, { namespace: metadata.namespace, name: metadata.name }, { signal })
    })

    it('of a Secret is sealed anew with another key while it is in use, and stays the same object', async () => {
      const key: ObjectKey = { cluster: freshCluster(), resource: 'secrets', namespace: 'shop', name: 'db' }
      const { revision } = await store.create(key, valueOf('db'), { signal })
      const newKey = randomBytes(32)
      const reseal = { client, dryRun: false, signal }
      expect((await resealRecords({ ...reseal, sealKey: newKey, otherSealKeys: [sealKey] })).left).to.equal(0)
      await using next = await openHostStore({ client, sealKey: newKey, signal })
      const found = await next.get(key, { signal })
      expect(Buffer.from(found!.value).equals(valueOf('db'))).to.equal(true)
      expect(found!.createRevision).to.equal(revision)
      const back = { ...reseal, sealKey, otherSealKeys: [newKey] }
      expect((await resealRecords({ ...back, dryRun: true })).resealed).to.be.greaterThan(0)
      expect((await resealRecords(back)).left).to.equal(0)
      expect((await resealRecords({ ...back, dryRun: true })).resealed).to.equal(0)
    })

    it('holds a Secret of 1 MiB of random bytes', async () => {
      const key: ObjectKey = { cluster: freshCluster(), resource: 'secrets', namespace: 'shop', name: 'blob' }
      const value = Buffer.from(
        JSON.stringify({ kind: 'Secret', data: { blob: randomBytes(1 << 20).toString('base64') } }),
      )
      await store.create(key, value, { signal })
      expect(Buffer.from((await store.get(key, { signal }))!.value).equals(value)).to.equal(true)
    })

    it('that was deleted while no process ran is known to the next one', async () => {
      const of = freshCluster()
      const key = (name: string): ObjectKey => ({ cluster: of, resource: 'configmaps', namespace: 'shop', name })
      const { revision: since } = await store.create(key('gone'), valueOf('gone'), { signal })
      await store[Symbol.asyncDispose]()
      await client.delete(records, (await all(of))[0]!.metadata, { signal })
      store = await openStore(3000)
      await store.create(key('new'), valueOf('new'), { signal })
      const changes = await store.changes({ cluster: of, resource: 'configmaps' }, { signal, since })
      expect(
        changes.map((one) =>
          one.type === 'delete' ? `${one.key.name} deleted` : one.type === 'put' && one.object.key.name,
        ),
      ).to.deep.equal(['gone deleted', 'new'])
    })

    it('is not created beyond what all logical clusters together may keep', async () => {
      const of = freshCluster()
      const key = (name: string): ObjectKey => ({ cluster: of, resource: 'configmaps', namespace: 'shop', name })
      await store.create(key('first'), valueOf('first'), { signal })
      await using bounded = await openHostStore({ client, sealKey, signal, maxBytes: 1 })
      await refused(bounded.create(key('second'), valueOf('second'), { signal }), 'OverBudget')
      const first = await bounded.get(key('first'), { signal })
      await bounded.delete(key('first'), { signal, ifRevision: first!.revision })
      expect(await all(of)).to.deep.equal([])
    })

    it('that was edited by hand is skipped and reported, affects no other, and can be repaired or deleted by hand', async () => {
      await using strict = await openHostStore({
        client,
        sealKey,
        signal,
        requireValue: (value) => {
          JSON.parse(Buffer.from(value).toString())
        },
        onProblem: (message, error) => problems.push(`${message}: ${String(error)}`),
      })
      const of = freshCluster()
      const key = (name: string): ObjectKey => ({ cluster: of, resource: 'configmaps', namespace: 'shop', name })
      for (const name of ['a', 'b']) await strict.create(key(name), valueOf(name), { signal })
      const { revision: since } = await strict.create(key('c'), valueOf('c'), { signal })
      const watch = record(strict, of, since)
      const edit = async (name: string, change: Partial<StorageRecord>): Promise<void> => {
        const found = (await all(of)).find((one) => one.name === name || one.metadata.name === name)
        await client.update(records, { ...found!, ...change }, { signal })
      }
      const revisionOf = async (name: string): Promise<number> =>
        (await strict.create(key(name), valueOf(name), { signal })).revision
      const heardOf = async (revision: number): Promise<void> => {
        await waitFor(() => watch.events.some((one) => one.type === 'put' && one.object.revision === revision), {
          what: 'the event of a later write',
          deadlineMs: 60_000,
        })
      }
      const names = async (): Promise<string[]> =>
        (await strict.list({ cluster: of }, { signal })).items.map((item) => item.key.name)

      const recordOfB = (await all(of)).find(({ name }) => name === 'b')!.metadata.name
      await edit('a', { data: '{"half' })
      await edit('b', { name: 'elsewhere' })
      await heardOf(await revisionOf('d'))
      expect(await names()).to.deep.equal(['c', 'd'])
      expect(problems.some((one) => one.includes('of "configmaps/a"'))).to.equal(true)
      expect(watch.events.map((one) => (one.type === 'put' ? one.object.key.name : one.type))).to.deep.equal(['d'])

      await edit('a', { data: valueOf('again').toString() })
      const { namespace } = (await all(of))[0]!.metadata
      await client.delete(records, { namespace, name: recordOfB }, { signal })
      await heardOf(await revisionOf('e'))
      expect(await names()).to.deep.equal(['a', 'c', 'd', 'e'])
      expect(
        watch.events.map((one) => (one.type === 'put' ? one.object.key.name : `${one.key.name} deleted`)),
      ).to.deep.equal(['d', 'a', 'b deleted', 'e'])
      await watch.stop()
      await strict.deleteCluster(of, { signal })
    })

    it('survives a restart of etcd: no write is answered twice or lost', async () => {
      const of = freshCluster()
      const key = (n: number): ObjectKey => ({ cluster: of, resource: 'configmaps', namespace: 'shop', name: `n${n}` })
      const watch = record(store, of, await store.revision({ signal }))
      const server = cluster.processes.get('kube-apiserver')!
      const acknowledged = new Set<string>()
      const refusedNames = new Set<string>()
      let n = 0
      let stop = false
      const writers = Array.from({ length: 8 }, async () => {
        while (!stop) {
          const at = key(n++)
          await store.create(at, valueOf(at.name), { signal }).then(
            () => acknowledged.add(at.name),
            () => refusedNames.add(at.name),
          )
        }
      })
      try {
        await waitFor(() => acknowledged.size > 50, { what: '50 writes', deadlineMs: 60_000 })
        await server.kill()
        await server.start()
        const before = acknowledged.size
        await waitFor(() => acknowledged.size > before + 50, { what: '50 writes more', deadlineMs: 60_000 })
      } finally {
        // Otherwise refused writers would retry forever and hide the failure.
        stop = true
        await Promise.all(writers)
      }
      const end = await store.create(key(-1), valueOf('end'), { signal })
      const names = (await store.list({ cluster: of }, { signal })).items.map((item) => item.key.name)
      for (const name of acknowledged) expect(names).to.include(name)
      for (const name of names) if (name !== 'n-1') expect(refusedNames.has(name), name).to.equal(false)
      await waitFor(
        () => watch.events.some((event) => event.type === 'put' && event.object.revision === end.revision),
        {
          what: 'the last event',
          deadlineMs: 30_000,
        },
      )
      expect(watch.events).to.have.length(names.length)
      await watch.stop()
    })

    it('that was deleted while the host was unreachable is gone, and watchers of its kind must list again', async () => {
      const life = new AbortController()
      let cut = new AbortController()
      const gated: Transport = {
        request: (request) => {
          if (cut.signal.aborted) return Promise.reject(serviceUnavailable('cut off'))
          return transport.request({ ...request, signal: AbortSignal.any([request.signal, cut.signal]) })
        },
        upgrade: (request) => transport.upgrade(request),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }
      const onProblem = (message: string): unknown => problems.push(message)
      await using cutOff = await openHostStore({ client: createClient(gated), sealKey, signal, onProblem })
      const baseLayer: BaseLayer = { resources: [], get: () => undefined, keys: () => [] }
      await using watchCache = await createWatchCache(cutOff, { stamp: stampRevision, readFacts, baseLayer, signal })
      const of = freshCluster()
      const objects = await watchCache.cluster(of, { signal })
      const bytesOf = (name: string): Uint8Array =>
        Buffer.from(JSON.stringify({ kind: 'X', apiVersion: 'v1', metadata: { name, uid: `uid-${name}` }, data: {} }))
      const create = (resource: string, name: string): Promise<unknown> =>
        objects.create({ resource, namespace: 'shop', name }, bytesOf(name), { signal })
      await create('configmaps', 'gone')
      await create('configmaps', 'stays')
      await create('leases', 'other')
      const since = objects.revision()
      const watchFrom = (resource: string, from: Revision): Promise<CacheWatch> =>
        objects.watch({ resource }, { since: from, signal: life.signal })
      const watches = [
        await watchFrom('configmaps', since),
        await watchCache.watchAll({ resource: 'configmaps' }, { since, signal: life.signal }),
      ]
      const undisturbed = await watchFrom('leases', since)

      cut.abort(new Error('cut off'))
      const recordOf = async (name: string): Promise<StorageRecord> =>
        (await client.list<StorageRecord>(records, { signal })).items.find(
          (item) => item.cluster === of && item.name === name,
        )!
      const { metadata: gone } = await recordOf('gone')
      await client.delete(records, gone, { signal })
      // The last change that the list includes: the deletion gets its revision.
      const labels = { touched: 'yes' }
      await client.patch(records, (await recordOf('stays')).metadata, 'merge', { metadata: { labels } }, { signal })
      const server = cluster.processes.get('kube-apiserver')!
      await server.kill()
      await server.start()
      cut = new AbortController()

      await waitFor(() => objects.get('configmaps', 'shop', 'gone') === undefined, {
        what: 'the deletion to be found',
        deadlineMs: 60_000,
      })
      for (const watch of watches)
        expect(() => watch.take()).to.throw('objects were deleted while the stream of the store was interrupted')
      expect(undisturbed.take()).to.deep.equal([])
      await refused(watchFrom('configmaps', since), 'Compacted')
      await refused(watchCache.watchAll({ resource: 'configmaps' }, { since, signal }), 'Compacted')
      const again = await watchFrom('configmaps', objects.revision())
      expect(again.take()).to.deep.equal([])
      life.abort(new Error('the end'))
    })

    it('that two delete at once is gone for the one that came second, too, when it is answered', async () => {
      let held = Promise.resolve()
      let release = (): void => undefined
      async function* heldBack(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
        for await (const part of body) {
          await held
          yield part
        }
      }
      const lagging: Transport = {
        async request(asked) {
          const response = await transport.request(asked)
          // Late enough that an answer which does not wait for the watch is seen before.
          if (asked.method === 'DELETE' && response.status === 404) setTimeout(release, 200)
          return asked.path.includes('watch=true') ? { ...response, body: heldBack(response.body) } : response
        },
        upgrade: (asked) => transport.upgrade(asked),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }
      await using slow = await openHostStore({ client: createClient(lagging), sealKey, signal })
      const baseLayer: BaseLayer = { resources: [], get: () => undefined, keys: () => [] }
      await using watchCache = await createWatchCache(slow, { stamp: stampRevision, readFacts, baseLayer, signal })
      const of = freshCluster()
      const objects = await watchCache.cluster(of, { signal })
      const key = { resource: 'configmaps', namespace: 'shop', name: 'web' }
      const bytes = Buffer.from('{"kind":"X","apiVersion":"v1","metadata":{"name":"web","uid":"u"},"data":{}}')
      const { revision: ifRevision } = await objects.create(key, bytes, { signal })
      held = new Promise((resolve) => (release = resolve))
      const first = objects.delete(key, { signal, ifRevision })
      const isInHost = async (): Promise<boolean> =>
        (await client.list<StorageRecord>(records, { signal })).items.some(({ cluster: id }) => id === of)
      await waitFor(async () => !(await isInHost()), { what: 'the host to delete the Record', deadlineMs: 30_000 })
      await refused(objects.delete(key, { signal, ifRevision }), 'KeyMissing')
      expect(objects.get('configmaps', 'shop', 'web')).to.equal(undefined)
      await first
    })

    it("is reported over a new connection when the watch's connection is dead without a reset", async () => {
      // More than one at a time: the store also reads the deletions from before its start with a watch.
      const watches: { isDead: boolean }[] = []
      const cutOff = (): void => watches.forEach((one) => (one.isDead = true))
      const isDead = (one: { isDead: boolean }): boolean => one.isDead
      async function* bodyOf(
        body: AsyncIterable<Uint8Array>,
        { signal }: TransportRequest,
      ): AsyncGenerator<Uint8Array> {
        const mine = { isDead: false }
        watches.push(mine)
        for await (const part of body) {
          // Checked again here: the connection may die while the next part is awaited.
          if (isDead(mine)) await abortable(new Promise(() => undefined), signal)
          yield part
        }
      }
      const halfOpen: Transport = {
        async request(asked) {
          const response = await transport.request(asked)
          return asked.path.includes('watch=true') ? { ...response, body: bodyOf(response.body, asked) } : response
        },
        upgrade: (asked) => transport.upgrade(asked),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }
      const told: string[] = []
      const onProblem = (_: string, error: unknown): unknown => told.push(String(error))
      const of = freshCluster()
      await using silent = await openHostStore({
        client: createClient(halfOpen),
        ...{ sealKey, signal, onProblem, maxSilenceMs: 200 },
      })
      const events = record(silent, of, await silent.revision({ signal }))
      const key: ObjectKey = { cluster: of, resource: 'configmaps', namespace: 'shop', name: 'web' }
      const isTold = (revision: Revision): Promise<unknown> =>
        waitFor(() => events.events.some((one) => one.type === 'put' && one.object.revision === revision), {
          what: `revision ${revision} to be told`,
          deadlineMs: 30_000,
        })
      const first = await silent.create(key, valueOf('one'), { signal })
      await isTold(first.revision)
      cutOff()
      const second = await silent.update(key, valueOf('two'), { signal, ifRevision: first.revision })
      await isTold(second.revision)
      cutOff()
      await silent.delete(key, { signal, ifRevision: second.revision })
      expect(events.events.map(({ type }) => type)).to.deep.equal(['put', 'put', 'delete'])
      expect(told.filter((one) => one.includes('told nothing for'))).to.have.length.at.least(2)
      await events.stop()
    })

    it('is written completely or not at all when the host was too busy', async () => {
      const refusals: string[] = []
      const busy: Transport = {
        request(asked) {
          const retryAfter = asked.method === 'POST' ? refusals.shift() : undefined
          if (retryAfter === undefined) return transport.request(asked)
          const headers = { 'content-type': 'text/plain', 'retry-after': retryAfter }
          return Promise.resolve({ status: 429, headers, body: Readable.from([Buffer.from('Too many requests')]) })
        },
        upgrade: (asked) => transport.upgrade(asked),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }
      await using patient = await openHostStore({ client: createClient(busy), sealKey, signal })
      const of = freshCluster()
      const key = (name: string): ObjectKey => ({ cluster: of, resource: 'configmaps', namespace: 'shop', name })
      refusals.push('1', '1')
      await patient.create(key('later'), valueOf('later'), { signal })
      refusals.push('3600')
      await refused(patient.create(key('never'), valueOf('never'), { signal }), 'Unavailable')
      expect((await all(of)).map(({ name }) => name)).to.deep.equal(['later'])
      await patient.deleteCluster(of, { signal })
    })

    it('is refused at once while a slow host has many to write, and read all the same', async () => {
      const { promise: fast, resolve: hurry } = Promise.withResolvers<undefined>()
      const slow: Transport = {
        async request(asked) {
          if (asked.method === 'POST') await abortable(fast, asked.signal)
          return await transport.request(asked)
        },
        upgrade: (asked) => transport.upgrade(asked),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }
      await using waiting = await openHostStore({ client: createClient(slow), sealKey, signal })
      const of = freshCluster()
      const key = (n: number): ObjectKey => ({ cluster: of, resource: 'configmaps', namespace: 'shop', name: `n${n}` })
      await store.create(key(-1), valueOf('n-1'), { signal })
      const outcomes: unknown[] = []
      const writes: Promise<unknown>[] = []
      const write = (): void => {
        const n = writes.length
        writes.push(
          waiting.create(key(n), valueOf(`n${n}`), { signal }).catch((error: unknown) => outcomes.push(error)),
        )
      }
      for (let n = 0; n < 50; n++) write()
      const isRefused = (): boolean => {
        write()
        return outcomes.length > 0
      }
      await waitFor(isRefused, { what: 'a write to be refused', deadlineMs: 9000 })
      expect(isStoreError(outcomes[0], 'Busy'), String(outcomes[0])).to.equal(true)
      expect((await waiting.get(key(-1), { signal }))?.key.name).to.equal('n-1')
      hurry(undefined)
      await Promise.all(writes)
      expect(await all(of)).to.have.length(1 + writes.length - outcomes.length)
      await waiting.deleteCluster(of, { signal })
    })

    it('that cannot be written because the host has no Records is answered with a clear error', async () => {
      const elsewhere = createClient(transport, { basePath: '/nowhere' })
      await refused(openHostStore({ client: elsewhere, sealKey, signal }), 'Unavailable')
    })
  })
})
