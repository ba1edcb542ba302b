// The suite of stores on a real etcd, and the parts that only this backend has: owners, TLS, members that end, a full
// etcd.
import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { openEtcdStore, type EtcdEndpoints, type EtcdStoreOptions } from '#store/etcd/index.ts'
import { isStoreError, Seal, type ObjectKey, type Store } from '#store/index.ts'
import { CertificateAuthority, runCommand, ensurePrograms, startEtcd, type Etcd } from '#test/support/index.ts'
import { describeSharedPlace } from './shared-place.ts'
import { describeStore, freshCluster, record, refused, valueOf, type StoreFixture } from './store.ts'

const { signal } = new AbortController()
const seal = new Seal(randomBytes(32))
const problems: string[] = []
const freshPrefix = (): string => `/kcp-${randomBytes(6).toString('hex')}`

function openIn(endpoints: EtcdEndpoints, options: Partial<EtcdStoreOptions> = {}): Promise<Store> {
  return openEtcdStore({
    ...{ endpoints, prefix: '/kcp', owner: 'test', seal, signal },
    onProblem: (message, error) => problems.push(`${message}: ${String(error)}`),
    ...options,
  })
}

describe('objects in etcd', function () {
  this.timeout(120_000)
  let etcd: Etcd
  before(async () => (etcd = await startEtcd()))
  after(async () => await etcd[Symbol.asyncDispose]())

  const open = async (): Promise<StoreFixture> => {
    const prefix = freshPrefix()
    let store = await openIn({ urls: etcd.urls }, { prefix })
    return {
      get store() {
        return store
      },
      reopen: async () => {
        await store[Symbol.asyncDispose]()
        store = await openIn({ urls: etcd.urls }, { prefix })
        return store
      },
      [Symbol.asyncDispose]: async () => await store[Symbol.asyncDispose](),
    }
  }

  describeStore({ backend: 'etcd', open })
  describeSharedPlace({
    open: (prefix, options = {}) => openIn({ urls: etcd.urls }, { prefix, ...options }),
    freshPlace: freshPrefix,
    async raw(prefix) {
      const { etcdctl } = await ensurePrograms(['etcdctl'], {})
      return (await runCommand(etcdctl, [`--endpoints=${etcd.urls[0]}`, 'get', '--prefix', prefix])).stdout
    },
    async spoil(prefix) {
      const { etcdctl } = await ensurePrograms(['etcdctl'], {})
      await runCommand(etcdctl, [`--endpoints=${etcd.urls[0]}`, 'put', `${prefix}/owner`, 'mine'])
    },
  })

  const key = (name: string, resource = 'configmaps', cluster = freshCluster()): ObjectKey => ({
    ...{ cluster, resource, namespace: 'shop', name },
  })

  it('are not known to watches from before the history that etcd keeps', async () => {
    await using store = await openIn({ urls: etcd.urls }, { prefix: freshPrefix() })
    const cluster = freshCluster()
    const first = await store.create(key('first', 'configmaps', cluster), valueOf('x'), { signal })
    const late = await store.create(key('late', 'configmaps', cluster), valueOf('x'), { signal })
    const { etcdctl } = await ensurePrograms(['etcdctl'], {})
    await runCommand(etcdctl, [`--endpoints=${etcd.urls[0]}`, 'compaction', String(late.revision)])
    await refused(
      store.changes(
        { cluster, resource: 'configmaps' },
        { signal, since: (first.revision - 1) as typeof first.revision },
      ),
      'Compacted',
    )
    expect(await store.get(first.key, { signal })).to.not.equal(undefined)
  })
})

describe('an etcd with TLS, users and several members', function () {
  this.timeout(180_000)

  it('is used with a client certificate, and refuses others', async () => {
    const authority = await CertificateAuthority.create('authority')
    await using etcd = await startEtcd({ authority })
    const { certificate, key: privateKey } = await authority.issue({ commonName: 'kcp' })
    const [ca, cert, tlsKey] = [authority.certificate, certificate, privateKey].map((pem) => Buffer.from(pem))
    const endpoints = { urls: etcd.urls, ca: ca!, cert: cert!, key: tlsKey! }
    await using store = await openIn(endpoints)
    await store.create({ cluster: freshCluster(), resource: 'r', namespace: '', name: 'a' }, valueOf('a'), { signal })
    const error = await openIn({ urls: etcd.urls, ca: ca! }).catch((reason: unknown) => reason)
    expect(isStoreError(error, 'Unavailable')).to.equal(true)
  })

  it('is used by one of its users, also after a restart that has forgotten all tokens', async () => {
    await using etcd = await startEtcd()
    const { etcdctl } = await ensurePrograms(['etcdctl'], {})
    for (const args of ['user add root:sesame', 'user grant-role root root', 'auth enable'])
      await runCommand(etcdctl, [`--endpoints=${etcd.urls[0]}`, ...args.split(' ')])
    const user = { name: 'root', password: 'sesame' }
    await using store = await openIn({ urls: etcd.urls, user })
    const at = { cluster: freshCluster(), resource: 'r', namespace: '', name: 'a' }
    const { revision } = await store.create(at, valueOf('a'), { signal })
    const [member] = etcd.members
    await member!.kill()
    await member!.start()
    await store.update(at, valueOf('a', 1), { signal, ifRevision: revision })
    for (const wrong of [undefined, { name: 'root', password: 'open' }]) {
      const error = await openIn({ urls: etcd.urls, ...(wrong && { user: wrong }) }).catch((reason: unknown) => reason)
      expect(isStoreError(error, 'Unavailable')).to.equal(true)
    }
  })

  it('loses no acknowledged write, and tells each once, when members end under writes', async () => {
    await using etcd = await startEtcd({ members: 3 })
    await using store = await openIn({ urls: etcd.urls })
    const cluster = freshCluster()
    const seen = record(store, cluster, await store.revision({ signal }))
    const acknowledged = new Map<string, number>()
    let isOver = false
    let unknown = 0
    const write = async (writer: number): Promise<void> => {
      for (let n = 0; !isOver; n++) {
        const name = `w${writer}-${n}`
        const at = { cluster, resource: 'configmaps', namespace: 'shop', name }
        try {
          acknowledged.set(name, (await store.create(at, valueOf(name, n), { signal })).revision)
        } catch (error) {
          if (!isStoreError(error, 'Unavailable')) throw error
          unknown += 1
        }
      }
    }
    const writers = Promise.all(Array.from({ length: 4 }, (_, writer) => write(writer)))
    for (const member of etcd.members) {
      await new Promise((resolve) => setTimeout(resolve, 1500))
      await member.kill()
      await new Promise((resolve) => setTimeout(resolve, 1500))
      await member.start()
    }
    isOver = true
    await writers
    const { items } = await store.list({ cluster }, { signal })
    const stored = new Map(items.map((item) => [item.key.name, item.revision as number]))
    for (const [name, revision] of acknowledged) expect(stored.get(name), name).to.equal(revision)
    expect(stored.size).to.be.at.most(acknowledged.size + unknown)
    expect(acknowledged.size).to.be.greaterThan(100)
    await seen.stop()
    const told = seen.events.map((event) => (event.type === 'put' ? event.object.key.name : ''))
    expect(new Set(told).size).to.equal(told.length)
    expect([...acknowledged.keys()].filter((name) => !told.includes(name))).to.deep.equal([])
  })

  it('that is full refuses writes, keeps what it has, and takes deletions', async () => {
    await using etcd = await startEtcd({ flags: ['--quota-backend-bytes=8388608'] })
    await using store = await openIn({ urls: etcd.urls })
    const cluster = freshCluster()
    const large = Buffer.alloc(512 * 1024, 'x')
    let written = 0
    const fill = async (): Promise<void> => {
      for (; written < 100; written++)
        await store.create({ cluster, resource: 'configmaps', namespace: '', name: `n${written}` }, large, { signal })
    }
    await refused(fill(), 'Full')
    expect(written).to.be.greaterThan(3)
    const { items } = await store.list({ cluster }, { signal })
    expect(items).to.have.length(written)
    for (const { key, revision } of items) await store.delete(key, { signal, ifRevision: revision })
    expect((await store.list({ cluster }, { signal })).items).to.deep.equal([])
  })
})
