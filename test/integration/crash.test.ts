import { expect } from 'chai'
import { at } from './json.ts'
import { rounds, startStoreServer, type StoreServer, type StoreServerKind } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import type { WatchEvent } from './raw-client.ts'

const crashes = rounds({ short: 2, long: 5 })
const writers = 8
const writesPerRound = 200

/** An acknowledged write and its revision. */
interface Acknowledged {
  readonly name: string
  readonly revision: number
  /** Undefined after a deletion. */
  readonly value: string | undefined
}

for (const store of ['sqlite', 'etcd', 'postgres'] as const) describeCrashes(store)

function describeCrashes(store: 'sqlite' | StoreServerKind): void {
  describe(`kill -9 of kcp start under load (${store})`, function () {
    this.timeout(120_000)
    let kcp: KcpInstance
    let acme: Tenant
    let server: StoreServer | undefined
    const collection = '/clusters/acme/api/v1/namespaces/default/configmaps'
    before(async () => {
      if (store !== 'sqlite') server = await startStoreServer(store)
      kcp = await startInstance(server?.flags ?? [])
      acme = await kcp.tenant('acme')
    })
    after(async () => {
      await kcp[Symbol.asyncDispose]()
      await server?.[Symbol.asyncDispose]()
    })

    /** Sends one write; undefined when no answer came. */
    async function write(method: string, name: string, value: string): Promise<Acknowledged | undefined> {
      const path = method === 'POST' ? collection : `${collection}/${name}`
      const merge = ['Content-Type', 'application/merge-patch+json']
      const body = method === 'DELETE' ? undefined : { metadata: { name, labels: { load: 'yes' } }, data: { value } }
      const options = { ...(body === undefined ? {} : { body }), headers: method === 'PATCH' ? merge : [] }
      const response = await acme.http.request(method, path, options).catch(() => undefined)
      if (response === undefined) return undefined
      expect(response.status, response.text).to.be.oneOf([200, 201])
      if (method === 'DELETE') return { name, revision: 0, value: undefined }
      return { name, revision: Number(at(response.json(), 'metadata.resourceVersion')), value }
    }

    it(`${crashes} times loses no acknowledged write, takes no revision back, and a watch goes on without a gap`, async () => {
      const truth = new Map<string, Acknowledged>()
      const unknown = new Set<string>()
      let highest = 0
      const list = async () => (await acme.http.request('GET', `${collection}?labelSelector=load`)).json()
      for (let round = 0; round < crashes; round++) {
        const since = String(at(await list(), 'metadata.resourceVersion'))
        expect(Number(since)).to.be.at.least(highest)
        const acknowledged: Acknowledged[] = []
        let stopped = false
        const killed = Promise.withResolvers<undefined>()
        const writer = async (id: number): Promise<void> => {
          for (let i = 0; !stopped; i++) {
            const name = `r${round}-w${id}-${Math.floor(i / 3)}`
            const method = ['POST', 'PATCH', 'DELETE'][i % 3]!
            // Every second object is kept.
            if (method === 'DELETE' && Math.floor(i / 3) % 2 === 0) continue
            unknown.add(name)
            const said = await write(method, name, `${round}.${i}`)
            if (said === undefined) return
            unknown.delete(name)
            truth.set(name, said)
            acknowledged.push(said)
            if (acknowledged.length === writesPerRound) killed.resolve(undefined)
          }
        }
        const load = Promise.all(Array.from({ length: writers }, (_, id) => writer(id)))
        await killed.promise
        await kcp.process.kill()
        stopped = true
        await load
        await kcp.process.start()

        const document = await list()
        const items = document['items'] as object[]
        const stored = new Map(items.map((item) => [String(at(item, 'metadata.name')), item]))
        for (const { name, revision, value } of truth.values()) {
          if (unknown.has(name)) continue
          const object = stored.get(name)
          expect(at(object, 'data.value'), `${name} in round ${round}`).to.equal(value)
          if (value !== undefined) expect(Number(at(object, 'metadata.resourceVersion')), name).to.equal(revision)
        }
        // Every stored object was written.
        for (const name of stored.keys()) expect(truth.has(name) || unknown.has(name), name).to.equal(true)
        highest = Math.max(highest, ...acknowledged.map(({ revision }) => revision))
        const now = Number(at(document, 'metadata.resourceVersion'))
        expect(now).to.be.at.least(highest)
        const after = await write('POST', `after-${round}`, 'x')
        expect(after?.revision).to.be.greaterThan(now - 1)
        truth.set(`after-${round}`, after!)

        await using watch = await acme.http.watch(
          `${collection}?watch=true&labelSelector=load&resourceVersion=${since}`,
        )
        const events: WatchEvent[] = []
        for (let event = await watch.next(); event !== undefined; event = await watch.next()) {
          events.push(event)
          if (event.object.metadata.name === `after-${round}`) break
        }
        const versions = events.map(({ object }) => Number(object.metadata.resourceVersion))
        expect(versions).to.deep.equal([...versions].sort((a, b) => a - b))
        expect(new Set(versions).size, 'no revision twice').to.equal(versions.length)
        // For objects that changed twice before the crash the store keeps the last state: sent once, at its own revision
        // or a later one.
        const newest = new Map(
          events.map(({ object: { metadata } }) => [metadata.name, Number(metadata.resourceVersion)]),
        )
        for (const { revision, name } of acknowledged)
          expect(newest.get(name), `${name} at ${revision}`).to.be.at.least(revision)
        // The events after `since`, replayed, give the stored state.
        const played = new Map<string, string>()
        for (const { type, object } of events)
          if (type === 'DELETED') played.delete(object.metadata.name ?? '')
          else played.set(object.metadata.name ?? '', object.data?.['value'] ?? '')
        const expected = items.filter((item) => String(at(item, 'metadata.name')).startsWith(`r${round}-`))
        played.delete(`after-${round}`)
        expect([...played].sort()).to.deep.equal(
          expected.map((item) => [at(item, 'metadata.name'), at(item, 'data.value')]).sort(),
        )
      }
      expect(truth.size).to.be.greaterThan(crashes * 60)
    })
  })
}
