import { expect } from 'chai'
import { clusterIdOf, type ClusterId, type Revision } from '#apimachinery/meta/index.ts'
import { isStoreError, type ObjectKey, type StoredObject } from '#store/store.ts'
import type { KnownRecord } from './record-index.ts'
import { Renewals, type Renewal } from './renewals.ts'

const bytes = Buffer.from('{"kind":"Lease"}')
const outcome = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'resolved',
    (error: unknown) => (isStoreError(error) ? error.code : error),
  )

describe('renewals that are kept in memory', () => {
  const acme = clusterIdOf('acme')
  const bob = clusterIdOf('bob')
  let known: Map<string, KnownRecord>
  let revision: number
  let told: StoredObject[][]
  let owned: boolean
  let renewals: Renewals
  /** Replaced by tests of a host that is slow or refuses. */
  let answer: (text: string) => Promise<void>

  const report = (text: string): void => {
    const at = renewals.at(text, ++revision as Revision)
    if (at === undefined) return
    told.push(at.changes.map(({ object }) => object))
    at.told()
  }
  const create = (keepMs: number): Renewals =>
    new Renewals({
      takeRevision: (_, text) => answer(text),
      known: (_, record) => known.get(record),
      mayWrite: () => owned,
      keepMs,
      maxPerCluster: 3,
    })
  beforeEach(() => {
    known = new Map()
    revision = 100
    told = []
    owned = true
    answer = (text) => {
      report(text)
      return Promise.resolve()
    }
    renewals = create(60_000)
  })
  afterEach(() => renewals[Symbol.dispose]())

  const lease = (cluster: ClusterId, name: string): Renewal => {
    const key: ObjectKey = { cluster, resource: 'leases.coordination.k8s.io', namespace: 'shop', name }
    const record = `${cluster} ${name}`
    known.set(record, { key, revision: 10 as Revision, createRevision: 5 as Revision, bytes: bytes.length })
    return { key, record, value: bytes, ifRevision: 10 as Revision }
  }
  const renew = async (renewal: Renewal): Promise<StoredObject> => {
    expect(renewals.takes(renewal)).to.equal(true)
    return await renewals.keep(renewal)
  }

  it('have the next revision of the host, one of each logical cluster at a time', async () => {
    const all = [lease(acme, 'a'), lease(acme, 'b'), lease(bob, 'a'), lease(bob, 'b'), lease(bob, 'c')]
    const kept = await Promise.all(all.map(renew))
    expect(
      told.map((objects) => objects.map(({ key }) => `${key.cluster === acme ? 'acme' : 'bob'} ${key.name}`)),
    ).to.deep.equal([['acme a', 'bob a'], ['acme b', 'bob b'], ['bob c']])
    expect(kept.map((object) => object.revision)).to.deep.equal([101, 102, 101, 102, 103])
    expect(kept.map(({ createRevision }) => createRevision)).to.deep.equal([5, 5, 5, 5, 5])
  })

  it('that come while a revision is taken get the next one', async () => {
    const [first, second] = [lease(acme, 'a'), lease(acme, 'b')]
    const { promise: slow, resolve: goOn } = Promise.withResolvers<undefined>()
    const { promise: asked, resolve: isAsked } = Promise.withResolvers<undefined>()
    answer = async (text) => {
      isAsked(undefined)
      await slow
      report(text)
    }
    const taking = renew(first)
    await asked
    const next = renew(second)
    goOn(undefined)
    expect([(await taking).revision, (await next).revision]).to.deep.equal([101, 102])
  })

  it('are shown instead of the Record until the Record changes', async () => {
    const asked = lease(acme, 'a')
    const { revision: newest } = await renew({ ...asked, value: Buffer.from('newer') })
    const stored = { key: asked.key, revision: 10 as Revision, createRevision: 5 as Revision, value: bytes }
    expect(renewals.newest(asked.record, stored)).to.deep.equal({
      ...stored,
      revision: newest,
      value: Buffer.from('newer'),
    })
    const written = { ...stored, revision: 200 as Revision }
    expect(renewals.newest(asked.record, written)).to.equal(written)
    renewals.changed(asked.record)
    expect(renewals.newest(asked.record, stored)).to.equal(stored)
    expect(renewals.size).to.equal(0)
  })

  it('of one resource do not take the room of another', async () => {
    const asEvent = (renewal: Renewal): Renewal => ({ ...renewal, key: { ...renewal.key, resource: 'events' } })
    await Promise.all(['1', '2', '3'].map((name) => renew(asEvent(lease(acme, name)))))
    expect(renewals.takes(asEvent(lease(acme, 'one too many')))).to.equal(false)
    expect(renewals.takes(lease(acme, 'a'))).to.equal(true)
    renewals.forget(() => true)
    expect(renewals.takes(asEvent(lease(acme, 'again')))).to.equal(true)
  })

  it('conflict with each other and with writes, which are made over the revision of the Record', async () => {
    const asked = lease(acme, 'a')
    const first = renew(asked)
    expect(renewals.takes(asked)).to.equal(false)
    const racing = outcome(renewals.around(asked.record, 10 as Revision, () => Promise.resolve()))
    const { revision: newest } = await first
    expect(await racing).to.equal('RevisionMismatch')
    expect(await renewals.around(asked.record, newest, (base) => Promise.resolve(base))).to.equal(10)
    const { promise: written, resolve } = Promise.withResolvers<undefined>()
    const writing = renewals.around(asked.record, newest, () => written)
    expect(renewals.takes({ ...asked, ifRevision: newest })).to.equal(false)
    resolve(undefined)
    await writing
    expect(renewals.takes({ ...asked, ifRevision: newest })).to.equal(true)
  })

  it('fail with the write that gets their revision, and do not happen if it is reported later', async () => {
    const asked = lease(acme, 'a')
    const { promise: sent, resolve: send } = Promise.withResolvers<string>()
    answer = (text) => {
      send(text)
      return Promise.reject(new Error('no space'))
    }
    expect(await outcome(renew(asked))).to.equal('Unavailable')
    report(await sent)
    expect(told).to.deep.equal([])

    answer = () => {
      renewals.interrupted()
      return Promise.resolve()
    }
    expect(await outcome(renew(asked))).to.equal('Unavailable')

    answer = (text) => {
      owned = false
      report(text)
      return Promise.resolve()
    }
    expect(await outcome(renew(asked))).to.equal('Unavailable')
    expect(renewals.size).to.equal(0)
  })

  it('are written to the host once the first of them is old, or when they are too many or too large', async () => {
    renewals[Symbol.dispose]()
    renewals = create(0)
    const asked = lease(acme, 'old')
    const { revision: newest } = await renew(asked)
    expect(renewals.takes({ ...asked, ifRevision: newest })).to.equal(false)
    expect([...renewals.unsaved()].map(({ key }) => key.name)).to.deep.equal(['old'])
    expect([...renewals.unsaved((cluster) => cluster === bob)]).to.deep.equal([])
    expect(renewals.takes({ ...lease(acme, 'large'), value: Buffer.alloc(5000) })).to.equal(false)
    const waiting = Array.from({ length: 40 }, (_, n) => renew(lease(bob, `n${n}`)))
    expect(renewals.takes(lease(bob, 'one too many'))).to.equal(false)
    await Promise.all(waiting)
    renewals.forget((cluster) => cluster === bob)
    expect([...renewals.unsaved()].map(({ key }) => key.name)).to.deep.equal(['old'])
  })
})
