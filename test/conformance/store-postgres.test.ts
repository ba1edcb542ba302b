// The suite of stores on a real PostgreSQL, and the parts that only this backend has: owners, TLS, crashes, failover, a
// full disk, several processes.
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { openPostgresStore, type PostgresServers, type PostgresStoreOptions } from '#store/postgres/index.ts'
import { isStoreError, Seal, type ObjectKey, type Store, type StoredObject } from '#store/index.ts'
import { CertificateAuthority, skipUnless, startPostgres, waitFor, type Postgres } from '#test/support/index.ts'
import { describeSharedPlace } from './shared-place.ts'
import { describeStore, freshCluster, keyOf, record, refused, revisionOf, valueOf, type StoreFixture } from './store.ts'

const { signal } = new AbortController()
const seal = new Seal(randomBytes(32))
const problems: string[] = []
const key = (name: string, cluster: ClusterId): ObjectKey => ({
  cluster,
  resource: 'configmaps',
  namespace: 'shop',
  name,
})
const freshSchema = (): string => `kcp_${randomBytes(6).toString('hex')}`

function openIn(servers: PostgresServers, options: Partial<PostgresStoreOptions> = {}): Promise<Store> {
  return openPostgresStore({
    ...{ servers, schema: 'kcp', owner: 'test', seal, signal },
    onProblem: (message, error) => problems.push(`${message}: ${String(error)}`),
    ...options,
  })
}

describe('objects in PostgreSQL', function () {
  this.timeout(120_000)
  let postgres: Postgres
  before(async () => (postgres = await startPostgres()))
  after(async () => await postgres[Symbol.asyncDispose]())

  const open = async (): Promise<StoreFixture> => {
    const schema = freshSchema()
    let store = await openIn(postgres.servers, { schema })
    return {
      get store() {
        return store
      },
      reopen: async () => {
        await store[Symbol.asyncDispose]()
        store = await openIn(postgres.servers, { schema })
        return store
      },
      [Symbol.asyncDispose]: async () => await store[Symbol.asyncDispose](),
    }
  }

  describeStore({ backend: 'postgres', open })
  describeSharedPlace({
    open: (schema, options = {}) => openIn(postgres.servers, { schema, ...options }),
    freshPlace: freshSchema,
    async raw(schema) {
      const rows = await postgres.query(
        `SELECT encode(key, 'escape') || encode(value, 'escape') AS all FROM ${schema}.log`,
      )
      return rows.map(({ all }) => String(all)).join('\n')
    },
    async spoil(schema) {
      await postgres.query(`CREATE SCHEMA ${schema} CREATE TABLE mine (a integer)`)
    },
  })

  it('refuse a name that cannot be indexed, and do the other writes that were sent with it', async () => {
    await using store = await openIn(postgres.servers, { schema: freshSchema() })
    const cluster = freshCluster()
    const long = (length: number): string => randomBytes(length).toString('hex').slice(0, length)
    const outcomes = await Promise.allSettled(
      ['a', long(5000), 'b', long(2300), 'zero\0byte'].map((name) =>
        store.create(key(name, cluster), valueOf('x'), { signal }),
      ),
    )
    expect(outcomes.map(({ status }) => status)).to.deep.equal([
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
      'fulfilled',
    ])
    const { items } = await store.list({ cluster }, { signal })
    expect(items.map((item) => item.key.name)).to.have.members([
      'a',
      'b',
      'zero\0byte',
      items.find((item) => item.key.name.length === 2300)!.key.name,
    ])
    await store.deleteCluster(cluster, { signal })
    expect((await store.list({ cluster }, { signal })).items).to.deep.equal([])
  })

  it('drop history that is old, and tell watches from before it', async () => {
    const schema = freshSchema()
    await using store = await openIn(postgres.servers, { schema, historyMs: 300 })
    const cluster = freshCluster()
    const at = key('a', cluster)
    const first = await store.create(at, valueOf('a'), { signal })
    let { revision } = first
    for (let n = 1; n < 50; n++)
      ({ revision } = await store.update(at, valueOf('a', n), { signal, ifRevision: revision }))
    const gone = await store.create(key('gone', cluster), valueOf('gone'), { signal })
    await store.delete(gone.key, { signal, ifRevision: gone.revision })
    const rows = async (): Promise<number> =>
      Number((await postgres.query(`SELECT count(*) AS n FROM ${schema}.log`))[0]?.['n'])
    await waitFor(async () => (await rows()) === 1, {
      what: 'one row of the log, that of the object',
      deadlineMs: 20_000,
    })
    expect((await store.get(at, { signal }))?.revision).to.equal(revision)
    await refused(store.changes({ cluster, resource: 'configmaps' }, { signal, since: first.revision }), 'Compacted')
    // Writes after it are told as before.
    const since = await store.revision({ signal })
    await store.update(at, valueOf('a', 50), { signal, ifRevision: revision })
    expect(await store.changes({ cluster, resource: 'configmaps' }, { signal, since })).to.have.length(1)
  })

  it('are told in the same order to several processes, which write by turns', async () => {
    const schema = freshSchema()
    const shared = { schema, mayWriteForMs: () => 60_000 }
    await using one = await openIn(postgres.servers, shared)
    await using two = await openIn(postgres.servers, shared)
    const cluster = freshCluster()
    const since = await one.revision({ signal })
    const seen = [one, two].map((store) => record(store, cluster, since))
    const write = async (store: Store, writer: string): Promise<void> => {
      for (let n = 0; n < 100; n++) {
        const at = key(`${writer}-${n}`, cluster)
        const { revision } = await store.create(at, valueOf(at.name), { signal })
        if (n % 3 === 0) await store.delete(at, { signal, ifRevision: revision })
      }
    }
    await Promise.all([write(one, 'a'), write(one, 'b'), write(two, 'c'), write(two, 'd')])
    const all = 4 * (100 + 34)
    await waitFor(() => seen.every(({ events }) => events.length === all), { what: 'all events', deadlineMs: 20_000 })
    const told = seen.map(({ events }) =>
      events.map((event) => `${event.type} ${keyOf(event).name} ${revisionOf(event)}`),
    )
    expect(told[0]).to.deep.equal(told[1])
    const revisions = seen[0]!.events.map(revisionOf)
    expect(revisions).to.deep.equal([...new Set(revisions)].sort((a, b) => a - b))
    for (const { stop } of seen) await stop()
    const lists = await Promise.all([one, two].map((store) => store.list({ cluster }, { signal })))
    expect(lists[0]).to.deep.equal(lists[1])
    await using late = await openIn(postgres.servers, { ...shared, mayWriteForMs: () => 0 })
    await refused(late.create(key('late', cluster), valueOf('late'), { signal }), 'Unavailable')
  })
})

describe('a PostgreSQL that fails', function () {
  this.timeout(180_000)

  it('with TLS is used with a checked certificate, and refuses wrong passwords and authorities', async () => {
    const authority = await CertificateAuthority.create('authority')
    await using postgres = await startPostgres({ authority })
    await (await openIn(postgres.servers))[Symbol.asyncDispose]()
    const other = await CertificateAuthority.create('other')
    const wrong: PostgresServers[] = [
      { ...postgres.servers, tls: { ca: Buffer.from(other.certificate) } },
      { ...postgres.servers, tls: {} },
      { ...postgres.servers, passwordFile: '/dev/null' },
      { ...postgres.servers, user: 'nobody' },
    ]
    for (const servers of wrong) {
      const error = await openIn(servers).catch((reason: unknown) => reason)
      expect(isStoreError(error, 'Unavailable'), String(error)).to.equal(true)
    }
  })

  it('loses no acknowledged write, and tells each once, when it is killed under writes', async () => {
    await using postgres = await startPostgres()
    await using store = await openIn(postgres.servers)
    await survives(store, async () => {
      for (let round = 0; round < 3; round++) {
        await sleep(700)
        await postgres.kill()
        await sleep(300)
        await postgres.process.start()
      }
      await sleep(700)
    })
  })

  it('loses no acknowledged write when its synchronous standby takes over', async () => {
    await using postgres = await startPostgres()
    const standby = await postgres.standby()
    const hosts = [...postgres.servers.hosts, ...standby.servers.hosts]
    await using store = await openIn({ ...postgres.servers, hosts })
    await survives(store, async () => {
      await sleep(1500)
      await postgres.kill()
      await standby.promote()
      await sleep(3000)
    })
  })

  it('that has gone back to an earlier state gets no write, and the reason is told', async () => {
    await using postgres = await startPostgres()
    await using store = await openIn(postgres.servers)
    const cluster = freshCluster()
    const made: StoredObject[] = []
    for (let n = 0; n < 5; n++) made.push(await store.create(key(`n${n}`, cluster), valueOf('a'), { signal }))
    await postgres.query(
      'BEGIN; DELETE FROM kcp.log WHERE revision > 4; DELETE FROM kcp.keys WHERE revision > 4; UPDATE kcp.meta SET revision = 4; COMMIT',
    )
    await postgres.kill()
    await postgres.process.start()
    const error = await store.create(key('late', cluster), valueOf('a'), { signal }).catch((reason: unknown) => reason)
    expect(String(error)).to.match(/has gone back to an earlier state/)
    expect(await postgres.query('SELECT count(*)::integer AS n FROM kcp.keys')).to.deep.equal([{ n: 3 }])
  })

  it('that is full refuses writes, keeps what it has, and takes writes when there is room', async function () {
    const dir = mkdtempSync(join(tmpdir(), 'kcp-full-'))
    const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=160m', 'kcp-full', dir])
    if (status !== 0) skipUnless(this, 'this user cannot mount a file system')
    try {
      const ballast = join(dir, 'ballast')
      await using postgres = await startPostgres({ dir, settings: ['max_wal_size=32MB', 'min_wal_size=32MB'] })
      await using store = await openIn(postgres.servers)
      const cluster = freshCluster()
      const written: ObjectKey[] = []
      const write = async (): Promise<void> => {
        const at = key(`n${written.length}`, cluster)
        await store.create(at, randomBytes(256 * 1024), { signal })
        written.push(at)
      }
      await write()
      const free = statfsSync(dir)
      writeFileSync(ballast, Buffer.alloc(Math.max(0, free.bavail * free.bsize - 48 * 1024 * 1024)))
      const fill = async (): Promise<void> => {
        while (written.length < 400) await write()
      }
      const error = await fill().catch((reason: unknown) => reason)
      expect(isStoreError(error, 'Full') || isStoreError(error, 'Unavailable'), String(error)).to.equal(true)
      rmSync(ballast)
      if (!postgres.process.running) await postgres.process.start()
      for (const at of written) expect(await store.get(at, { signal }), at.name).to.not.equal(undefined)
      await waitFor(
        () =>
          write().then(
            () => true,
            () => false,
          ),
        { what: 'writes to go on', deadlineMs: 30_000 },
      )
      expect((await store.list({ cluster }, { signal })).items.length).to.be.at.least(written.length)
    } finally {
      spawnSync('umount', ['-l', dir])
      rmSync(dir, { recursive: true, force: true })
    }
  })
})

/** Writes during `faults`; then everything acknowledged must be stored, at its revision, and told once. */
async function survives(store: Store, faults: () => Promise<void>): Promise<void> {
  const cluster = freshCluster()
  const seen = record(store, cluster, await store.revision({ signal }))
  const acknowledged = new Map<string, number>()
  let isOver = false
  let unknown = 0
  const write = async (writer: number): Promise<void> => {
    for (let n = 0; !isOver; n++) {
      const at = key(`w${writer}-${n}`, cluster)
      try {
        acknowledged.set(at.name, (await store.create(at, valueOf(at.name, n), { signal })).revision)
      } catch (error) {
        if (!isStoreError(error, 'Unavailable')) throw error
        unknown += 1
      }
    }
  }
  const writers = Promise.all(Array.from({ length: 4 }, (_, writer) => write(writer)))
  await faults()
  const before = acknowledged.size
  await waitFor(() => acknowledged.size > before, { what: 'writes to go on', deadlineMs: 30_000 })
  isOver = true
  await writers
  const { items } = await store.list({ cluster }, { signal })
  const stored = new Map(items.map((item) => [item.key.name, item.revision as number]))
  for (const [name, revision] of acknowledged) expect(stored.get(name), name).to.equal(revision)
  expect(stored.size).to.be.at.most(acknowledged.size + unknown)
  expect(acknowledged.size).to.be.greaterThan(100)
  await waitFor(() => seen.events.length >= stored.size, { what: 'all events', deadlineMs: 20_000 })
  await seen.stop()
  const told = seen.events.map((event) => keyOf(event).name)
  expect(new Set(told).size).to.equal(told.length)
  expect([...acknowledged.keys()].filter((name) => !told.includes(name))).to.deep.equal([])
}
