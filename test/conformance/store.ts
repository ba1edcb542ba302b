// The contract of every Store as one suite, run on each backend. Where the contract leaves a choice, the backend
// declares which it takes.
import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { clusterIdOf, type ClusterId, type Revision } from '#apimachinery/meta/index.ts'
import { isStoreError, type ObjectKey, type Store, type StoreEvent, type StoreErrorCode } from '#store/index.ts'
import { waitFor } from '#test/support/index.ts'

export interface StoreFixture extends AsyncDisposable {
  readonly store: Store
  /** Closes the store and opens it again on the same data; `store` is the new one from then on. */
  reopen(): Promise<Store>
}

export interface StoreSuite {
  /** Name of the backend in titles, such as `sqlite`. */
  readonly backend: string
  readonly open: () => Promise<StoreFixture>
  /**
   * False: of deletions from before the store was opened it is known which kinds had any; asking for the changes of
   * these is rejected. Default true.
   */
  readonly remembersDeletions?: boolean
  /** False: revisions come from elsewhere, so a create cannot raise them. Default true. */
  readonly raisesRevisions?: boolean
  /** Number of creates in load tests; smaller where every write takes milliseconds. */
  readonly load?: number
}

const { signal } = new AbortController()

/** An unused id: suites on one host share its data. */
export function freshCluster(): ClusterId {
  return clusterIdOf(randomBytes(16).toString('hex'))
}

export function valueOf(name: string, n = 0): Buffer {
  const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name, uid: `uid-${name}` }, data: { n: String(n) } }
  return Buffer.from(JSON.stringify(object))
}

const textOf = (value: Uint8Array): string => Buffer.from(value).toString()

/** Rejects unless the promise rejects with this StoreError. */
export async function refused(promise: Promise<unknown>, code: StoreErrorCode): Promise<void> {
  const outcome = await promise.then(
    () => 'it resolved',
    (error: unknown) => (isStoreError(error) ? error.code : String(error)),
  )
  expect(outcome).to.equal(code)
}

type Change = Exclude<StoreEvent, { type: 'progress' }>

/** Reads a watch in the background; keeps only the events of one logical cluster, without progress. */
export function record(
  store: Store,
  cluster: ClusterId | undefined,
  since: Revision,
): { events: Change[]; stop: () => Promise<void> } {
  const life = new AbortController()
  const events: Change[] = []
  const reading = (async () => {
    for await (const batch of store.watch({ since, signal: life.signal })) {
      for (const event of batch) {
        if (event.type === 'progress') continue
        if (cluster === undefined || keyOf(event).cluster === cluster) events.push(event)
      }
    }
  })()
  return {
    events,
    stop: async () => {
      life.abort()
      await reading
    },
  }
}

export function keyOf(event: Change): ObjectKey {
  return event.type === 'put' ? event.object.key : event.key
}

export function revisionOf(event: Change): Revision {
  return event.type === 'put' ? event.object.revision : event.revision
}

/** The objects after a sequence of events, as `name=text`. */
function stateAfter(events: readonly Change[], start: ReadonlyMap<string, string> = new Map()): Map<string, string> {
  const state = new Map(start)
  for (const event of events) {
    const { resource, namespace, name } = keyOf(event)
    const place = `${resource}/${namespace}/${name}`
    if (event.type === 'put') state.set(place, textOf(event.object.value))
    else state.delete(place)
  }
  return state
}

async function stateOf(store: Store, cluster: ClusterId): Promise<Map<string, string>> {
  const { items } = await store.list({ cluster }, { signal })
  return new Map(items.map(({ key, value }) => [`${key.resource}/${key.namespace}/${key.name}`, textOf(value)]))
}

const sorted = (map: ReadonlyMap<string, string>): [string, string][] => [...map].sort(([a], [b]) => (a < b ? -1 : 1))

export function describeStore({
  backend,
  open,
  remembersDeletions = true,
  raisesRevisions = true,
  load = 200,
}: StoreSuite): void {
  describe(`a store (${backend})`, function () {
    this.timeout(60_000)
    let fixture: StoreFixture
    let store: Store
    let cluster: ClusterId
    const key = (name: string, namespace = 'shop', resource = 'configmaps', of = cluster): ObjectKey => ({
      cluster: of,
      resource,
      namespace,
      name,
    })
    const create = (at: ObjectKey, n = 0) => store.create(at, valueOf(at.name, n), { signal })
    const remove = async (at: ObjectKey) => {
      const found = await store.get(at, { signal })
      return await store.delete(at, { signal, ifRevision: found!.revision })
    }

    beforeEach(async () => {
      fixture = await open()
      store = fixture.store
      cluster = freshCluster()
    })
    afterEach(async () => await fixture[Symbol.asyncDispose]())

    it('returns a created object with its revision', async () => {
      const made = await create(key('a'))
      const got = await store.get(key('a'), { signal })
      expect(got && textOf(got.value)).to.equal(textOf(valueOf('a')))
      expect(got?.key).to.deep.equal(key('a'))
      expect(got?.revision).to.equal(made.revision)
      expect(got?.createRevision).to.equal(made.revision)
      expect(made.revision).to.be.greaterThan(1)
      expect(await store.get(key('b'), { signal })).to.equal(undefined)
    })

    it('distinguishes keys that differ in any part', async () => {
      const other = freshCluster()
      const keys = [
        key('a'),
        key('a', 'till'),
        key('a', ''),
        key('a', 'shop', 'secrets'),
        key('a', 'shop', 'configmaps', other),
      ]
      for (const [n, one] of keys.entries()) await create(one, n)
      for (const [n, one] of keys.entries()) {
        const got = await store.get(one, { signal })
        expect(got && textOf(got.value)).to.equal(textOf(valueOf('a', n)))
      }
    })

    const raises = async (): Promise<void> => {
      const before = await store.revision({ signal })
      const seen = record(store, cluster, before)
      const above = (before + 3000) as Revision
      const { revision } = await store.create(key('raised'), valueOf('raised'), { signal, above })
      expect(revision).to.be.greaterThan(above)
      // One that is reached already raises nothing.
      const next = await store.create(key('next'), valueOf('next'), { signal, above: before })
      expect(next.revision).to.be.within(revision + 1, revision + 100)
      expect(await store.revision({ signal })).to.be.at.least(next.revision)
      await waitFor(() => seen.events.length === 2, { what: 'both events', deadlineMs: 20_000, intervalMs: 5 })
      await seen.stop()
      const { items } = await store.list({ cluster }, { signal })
      expect(items.map((one) => one.revision)).to.deep.equal([next.revision, revision])
    }
    if (raisesRevisions) it('raises the revision above one that a create is given, and counts on from there', raises)

    it('rejects writes that fail compare-and-swap', async () => {
      const made = await create(key('a'))
      await refused(create(key('a')), 'KeyExists')
      const next = await store.update(key('a'), valueOf('a', 1), { signal, ifRevision: made.revision })
      expect(next.revision).to.be.greaterThan(made.revision)
      expect(next.createRevision).to.equal(made.createRevision)
      await refused(store.update(key('a'), valueOf('a', 2), { signal, ifRevision: made.revision }), 'RevisionMismatch')
      await refused(store.delete(key('a'), { signal, ifRevision: made.revision }), 'RevisionMismatch')
      await refused(store.update(key('b'), valueOf('b'), { signal, ifRevision: made.revision }), 'KeyMissing')
      await refused(store.delete(key('b'), { signal, ifRevision: made.revision }), 'KeyMissing')
      const got = await store.get(key('a'), { signal })
      expect(got && textOf(got.value)).to.equal(textOf(valueOf('a', 1)))
    })

    it('deletes, and gives a recreated object a new createRevision', async () => {
      const made = await create(key('a'))
      const revision = await store.delete(key('a'), { signal, ifRevision: made.revision })
      expect(revision).to.be.greaterThan(made.revision)
      expect(await store.get(key('a'), { signal })).to.equal(undefined)
      const again = await create(key('a'))
      expect(again.revision).to.be.greaterThan(revision)
      expect(again.createRevision).to.equal(again.revision)
    })

    it('rejects values that are too large, and stores nothing of them', async () => {
      const large = Buffer.from(
        JSON.stringify({ kind: 'ConfigMap', data: randomBytes(store.maxValueBytes).toString('hex') }),
      )
      await refused(store.create(key('a'), large, { signal }), 'TooLarge')
      expect(await store.get(key('a'), { signal })).to.equal(undefined)
    })

    it('lets exactly one of many concurrent writers win each round', async () => {
      let { revision } = await create(key('counter'))
      for (let round = 1; round <= 5; round++) {
        const outcomes = await Promise.allSettled(
          Array.from({ length: 16 }, (_, n) =>
            store.update(key('counter'), valueOf('counter', round * 100 + n), { signal, ifRevision: revision }),
          ),
        )
        const won = outcomes.filter((outcome) => outcome.status === 'fulfilled')
        expect(won).to.have.length(1)
        for (const outcome of outcomes) {
          if (outcome.status === 'rejected') expect(isStoreError(outcome.reason, 'RevisionMismatch')).to.equal(true)
        }
        const got = await store.get(key('counter'), { signal })
        expect(got?.revision).to.equal(won[0]!.value.revision)
        revision = won[0]!.value.revision
      }
    })

    it('loses no increment of concurrent read-change-write loops', async () => {
      await create(key('sum'))
      const increments = 6
      await Promise.all(
        Array.from({ length: 8 }, async () => {
          for (let done = 0; done < increments;) {
            const seen = await store.get(key('sum'), { signal })
            const n = Number((JSON.parse(textOf(seen!.value)) as { data: { n: string } }).data.n)
            try {
              await store.update(key('sum'), valueOf('sum', n + 1), { signal, ifRevision: seen!.revision })
              done++
            } catch (error) {
              if (!isStoreError(error, 'RevisionMismatch')) throw error
            }
          }
        }),
      )
      const got = await store.get(key('sum'), { signal })
      expect(textOf(got!.value)).to.equal(textOf(valueOf('sum', 8 * increments)))
    })

    it('lists in key order, in every scope', async () => {
      const keys = [
        key('b', 'shop'),
        key('a', 'shop'),
        key('z', 'bar'),
        key('node', '', 'nodes'),
        key('a-b', 'shop'),
        key('s', 'shop', 'secrets'),
        key('A', 'shop'),
      ]
      for (const one of keys) await create(one)
      await create(key('foreign', 'shop', 'configmaps', freshCluster()))
      const names = async (scope: { resource?: string; namespace?: string }) =>
        (await store.list({ cluster, ...scope }, { signal })).items.map(
          (item) => `${item.key.namespace}/${item.key.name}`,
        )
      expect(await names({})).to.deep.equal(['bar/z', 'shop/A', 'shop/a', 'shop/a-b', 'shop/b', '/node', 'shop/s'])
      expect(await names({ resource: 'configmaps' })).to.deep.equal(['bar/z', 'shop/A', 'shop/a', 'shop/a-b', 'shop/b'])
      expect(await names({ resource: 'configmaps', namespace: 'shop' })).to.deep.equal([
        'shop/A',
        'shop/a',
        'shop/a-b',
        'shop/b',
      ])
      expect(await names({ resource: 'nodes' })).to.deep.equal(['/node'])
      expect(await names({ resource: 'pods' })).to.deep.equal([])
    })

    it('lists only objects that contain one of the given texts', async () => {
      await create(key('a'), 1)
      await create(key('b'), 2)
      await create(key('c'), 3)
      await create(key('b', 'till', 'secrets'), 2)
      const names = async (containing: readonly string[], scope: object = {}) =>
        (await store.list({ cluster, containing, ...scope }, { signal })).items.map(({ key: { name } }) => name)
      expect(await names(['"n":"2"'])).to.deep.equal(['b', 'b'])
      expect(await names(['"n":"2"', '"n":"3"'], { resource: 'configmaps' })).to.deep.equal(['b', 'c'])
      expect(await names(['"n":"%"'])).to.deep.equal([])
      expect(await names([])).to.deep.equal([])
      const page = await store.list({ cluster, containing: ['"n":"2"', '"n":"1"'] }, { signal, limit: 1 })
      const rest = await store.list({ cluster, containing: ['"n":"2"', '"n":"1"'] }, { signal, after: page.next! })
      expect([...page.items, ...rest.items].map(({ key: { name } }) => name)).to.deep.equal(['a', 'b', 'b'])
    })

    it('lists in pages that join to the whole list', async () => {
      for (let n = 0; n < 25; n++) await create(key(`n${String(n).padStart(2, '0')}`, n % 2 ? 'odd' : 'even'))
      const whole = await store.list({ cluster, resource: 'configmaps' }, { signal })
      const joined: string[] = []
      let after: ObjectKey | undefined
      let pages = 0
      do {
        const page = await store.list(
          { cluster, resource: 'configmaps' },
          { signal, limit: 7, ...(after && { after }) },
        )
        joined.push(...page.items.map((item) => `${item.key.namespace}/${item.key.name}`))
        after = page.next
        pages++
      } while (after)
      expect(pages).to.equal(4)
      expect(joined).to.deep.equal(whole.items.map((item) => `${item.key.namespace}/${item.key.name}`))
    })

    it('lists one resource over all logical clusters', async () => {
      const resource = `widgets${randomBytes(4).toString('hex')}.example.com`
      const clusters = Array.from({ length: 5 }, freshCluster)
      for (const of of clusters) for (const name of ['x', 'y']) await create(key(name, 'shop', resource, of))
      await create(key('x', 'till', resource, clusters[0]))
      const all = await store.list({ resource }, { signal })
      const wanted = clusters
        .toSorted()
        .flatMap((of) => [`${of}/shop/x`, `${of}/shop/y`, ...(of === clusters[0] ? [`${of}/till/x`] : [])])
      const told = ({ key: k }: { key: ObjectKey }) => `${k.cluster}/${k.namespace}/${k.name}`
      expect(all.items.map(told)).to.deep.equal(wanted)
      const till = await store.list({ resource, namespace: 'till' }, { signal })
      expect(till.items.map(told)).to.deep.equal([`${clusters[0]}/till/x`])
      const first = await store.list({ resource }, { signal, limit: 3 })
      const rest = await store.list({ resource }, { signal, after: first.next! })
      expect([...first.items, ...rest.items].map(told)).to.deep.equal(wanted)
    })

    it('sends a watch every change once, in order, no later than the answer to the writer', async () => {
      const watch = record(store, cluster, await store.revision({ signal }))
      const a = await create(key('a'))
      const b = await store.update(key('a'), valueOf('a', 1), { signal, ifRevision: a.revision })
      const gone = await store.delete(key('a'), { signal, ifRevision: b.revision })
      await waitFor(() => watch.events.length === 3, { what: 'three events', deadlineMs: 20_000, intervalMs: 5 })
      expect(watch.events.map((event) => [event.type, revisionOf(event)])).to.deep.equal([
        ['put', a.revision],
        ['put', b.revision],
        ['delete', gone],
      ])
      const last = watch.events[2]
      expect(last?.type === 'delete' && textOf(last.previous!.value)).to.equal(textOf(valueOf('a', 1)))
      await watch.stop()
    })

    it('starts a watch in the past exactly after the revision asked for', async () => {
      const made = [await create(key('a')), await create(key('b')), await create(key('c'))]
      await waitFor(async () => (await store.revision({ signal })) >= made[2]!.revision, {
        what: 'the third revision',
        deadlineMs: 20_000,
        intervalMs: 5,
      })
      for (const [n, since] of made.entries()) {
        const watch = record(store, cluster, since.revision)
        await waitFor(() => watch.events.length === 2 - n, {
          what: `${2 - n} events`,
          deadlineMs: 20_000,
          intervalMs: 5,
        })
        expect(watch.events.map(revisionOf)).to.deep.equal(made.slice(n + 1).map(({ revision }) => revision))
        await watch.stop()
      }
    })

    it('rebuilds the same state from any revision while many write', async () => {
      const start = await store.revision({ signal })
      const watches: { state: Map<string, string>; watch: ReturnType<typeof record> }[] = [
        { state: new Map(), watch: record(store, cluster, start) },
      ]
      const writers = Array.from({ length: 8 }, async (_, w) => {
        for (let n = 0; n < load / 8; n++) {
          const at = key(`w${w}-${n % 5}`, n % 2 ? 'odd' : 'even')
          const found = await store.get(at, { signal })
          if (!found) await create(at, n)
          else if (n % 3 === 0) await store.delete(at, { signal, ifRevision: found.revision })
          else await store.update(at, valueOf(at.name, n), { signal, ifRevision: found.revision })
          if (w === 0 && n % 5 === 0) {
            const { items, revision } = await store.list({ cluster }, { signal })
            const state = new Map(
              items.map((item) => [`${item.key.resource}/${item.key.namespace}/${item.key.name}`, textOf(item.value)]),
            )
            watches.push({ state, watch: record(store, cluster, revision) })
          }
        }
      })
      await Promise.all(writers)
      const end = await create(key('end'))
      const final = sorted(await stateOf(store, cluster))
      for (const { state, watch } of watches) {
        await waitFor(() => watch.events.some((event) => revisionOf(event) === end.revision), {
          what: 'the last event',
          deadlineMs: 20_000,
          intervalMs: 5,
        })
        const revisions = watch.events.map(revisionOf)
        expect(revisions).to.deep.equal([...new Set(revisions)].sort((a, b) => a - b))
        expect(sorted(stateAfter(watch.events, state))).to.deep.equal(final)
        await watch.stop()
      }
    })

    it('returns the final states of objects changed since a revision', async () => {
      await create(key('old'))
      const kept = await create(key('kept'))
      const gone = await create(key('gone'))
      const since = gone.revision
      await store.update(key('kept'), valueOf('kept', 1), { signal, ifRevision: kept.revision })
      const deleted = await remove(key('gone'))
      await create(key('brief'))
      await remove(key('brief'))
      await create(key('new', 'shop', 'secrets'))
      await create(key('new'))
      const changes = await store.changes({ cluster, resource: 'configmaps' }, { signal, since })
      const told = changes.map((event) =>
        event.type === 'progress' ? 'progress' : `${event.type} ${keyOf(event).name}`,
      )
      expect(told.toSorted()).to.deep.equal(['delete brief', 'delete gone', 'put kept', 'put new'])
      const revisions = (changes as Change[]).map(revisionOf)
      expect(revisions).to.deep.equal(revisions.toSorted((a, b) => a - b))
      const deletion = changes.find((event) => event.type === 'delete' && event.key.name === 'gone')
      expect(deletion?.type === 'delete' && deletion.revision).to.equal(deleted)
      expect(deletion?.type === 'delete' && textOf(deletion.previous!.value)).to.equal(textOf(valueOf('gone')))
    })

    it('deletes a whole logical cluster with an event for each object', async () => {
      const neighbour = freshCluster()
      await create(key('n', 'shop', 'configmaps', neighbour))
      const count = Math.min(1200, load * 3)
      await Promise.all(Array.from({ length: count }, (_, n) => create(key(`o${n}`))))
      const watch = record(store, cluster, await store.revision({ signal }))
      await store.deleteCluster(cluster, { signal })
      expect((await store.list({ cluster }, { signal })).items).to.deep.equal([])
      expect((await store.list({ cluster: neighbour }, { signal })).items).to.have.length(1)
      await waitFor(() => watch.events.filter(({ type }) => type === 'delete').length === count, {
        what: 'all deletions',
        deadlineMs: 20_000,
        intervalMs: 5,
      })
      await watch.stop()
      await store.deleteCluster(cluster, { signal })
    })

    it('keeps everything when it is opened again, at no older revision', async () => {
      for (let n = 0; n < 20; n++) await create(key(`n${n}`), n)
      await remove(key('n3'))
      const { items, revision } = await store.list({ cluster }, { signal })
      const id = store.instanceId
      store = await fixture.reopen()
      const again = await store.list({ cluster }, { signal })
      expect(
        again.items.map((item) => [item.key.name, item.revision, item.createRevision, textOf(item.value)]),
      ).to.deep.equal(items.map((item) => [item.key.name, item.revision, item.createRevision, textOf(item.value)]))
      expect(again.revision).to.be.at.least(revision)
      expect(store.instanceId).to.equal(id)
      expect((await create(key('later'))).revision).to.be.greaterThan(revision)
    })

    it('returns changes from before it was opened again, or rejects Compacted', async () => {
      const first = await create(key('a'))
      await create(key('b'))
      await create(key('quiet', 'shop', 'secrets'))
      await remove(key('a'))
      store = await fixture.reopen()
      const since = first.revision
      const quiet = await store.changes({ cluster, resource: 'secrets' }, { signal, since })
      expect((quiet as Change[]).map((event) => `${event.type} ${keyOf(event).name}`)).to.deep.equal(['put quiet'])
      if (!remembersDeletions) {
        await refused(store.changes({ cluster, resource: 'configmaps' }, { signal, since }), 'Compacted')
        return
      }
      await create(key('c'))
      const changes = await store.changes({ cluster, resource: 'configmaps' }, { signal, since })
      expect((changes as Change[]).map((event) => `${event.type} ${keyOf(event).name}`)).to.deep.equal([
        'put b',
        'delete a',
        'put c',
      ])
      const watch = record(store, cluster, since)
      await waitFor(() => watch.events.length === 4, { what: 'four events', deadlineMs: 20_000, intervalMs: 5 })
      expect(watch.events.map((event) => `${event.type} ${keyOf(event).name}`)).to.deep.equal([
        'put b',
        'put quiet',
        'delete a',
        'put c',
      ])
      await watch.stop()
    })

    it('rejects with the reason of the signal, and with Closed after closing', async () => {
      const reason = new Error('the client left')
      const left = AbortSignal.abort(reason)
      for (const call of [
        () => store.get(key('a'), { signal: left }),
        () => store.list({ cluster }, { signal: left }),
        () => store.create(key('a'), valueOf('a'), { signal: left }),
      ]) {
        const outcome = await call().then(
          () => undefined,
          (error: unknown) => error,
        )
        expect(outcome).to.equal(reason)
      }
      await store[Symbol.asyncDispose]()
      await refused(create(key('a')), 'Closed')
      store = await fixture.reopen()
      expect(await store.get(key('a'), { signal })).to.equal(undefined)
    })
  })
}
