// The suite of stores on the embedded one, and the parts that only an embedded one has: a file, a lock, a format.
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect } from 'chai'
import { openSqliteStore, type SqliteStoreOptions } from '#store/sqlite/index.ts'
import { isStoreError, type ObjectKey, type Store } from '#store/index.ts'
import { describeStore, freshCluster, record, refused, valueOf, type StoreFixture } from './store.ts'

const { signal } = new AbortController()

async function fixture(options: Omit<SqliteStoreOptions, 'file'> = {}): Promise<StoreFixture & { file: string }> {
  const directory = mkdtempSync(join(tmpdir(), 'kcp-store-'))
  const file = join(directory, 'data', 'kcp.db')
  let store = await openSqliteStore({ file, ...options })
  return {
    file,
    get store() {
      return store
    },
    reopen: async () => {
      await store[Symbol.asyncDispose]()
      store = await openSqliteStore({ file, ...options })
      return store
    },
    [Symbol.asyncDispose]: async () => {
      await store[Symbol.asyncDispose]()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

describeStore({ backend: 'sqlite', open: fixture, load: 400 })

describe('events of the embedded store', () => {
  it('keep the last state of a deleted object, and nothing else of what was read with the deletion', async () => {
    await using fix = await fixture()
    const { store } = fix
    const cluster = freshCluster()
    const keyOf = (name: string): ObjectKey => ({ cluster, resource: 'configmaps', namespace: 'shop', name })
    const last = Buffer.from('{"the last":"state"}')
    await store.create(keyOf('large'), Buffer.alloc(1024 * 1024, 'x'), { signal })
    const { revision } = await store.create(keyOf('small'), last, { signal })
    // In one tick: they are answered in one message.
    await Promise.all([
      store.list({ cluster }, { signal }),
      store.delete(keyOf('small'), { ifRevision: revision, signal }),
    ])
    const [batch] = await Array.fromAsync(untilFirst(store.watch({ since: revision, signal })))
    const event = batch?.find(({ type }) => type === 'delete')
    if (event?.type !== 'delete' || event.previous === undefined) throw new Error('there is no deletion')
    expect(Buffer.from(event.previous.value)).to.deep.equal(last)
    expect(event.previous.value.buffer.byteLength).to.equal(last.length)
  })
})

async function* untilFirst<T>(all: AsyncIterable<T>): AsyncGenerator<T> {
  for await (const one of all) {
    yield one
    return
  }
}

describe('the file of the embedded store', function () {
  this.timeout(30_000)
  let fix: Awaited<ReturnType<typeof fixture>>
  let store: Store
  beforeEach(async () => {
    fix = await fixture({ keptDeletions: 500 })
    store = fix.store
  })
  afterEach(async () => await fix[Symbol.asyncDispose]())

  const messageOf = async (file: string): Promise<string> =>
    await openSqliteStore({ file }).then(
      async (opened) => {
        await opened[Symbol.asyncDispose]()
        return 'it was opened'
      },
      (error: unknown) => (error as Error).message,
    )

  it('can be opened by one process at a time', async () => {
    expect(await messageOf(fix.file)).to.equal(`${fix.file} is in use by process ${process.pid}`)
  })

  it('is readable by its owner only', () => {
    for (const end of ['', '-wal']) expect(statSync(fix.file + end).mode & 0o077).to.equal(0)
  })

  it('is refused unchanged when a newer program wrote it', async () => {
    await store[Symbol.asyncDispose]()
    const database = new DatabaseSync(fix.file)
    database.exec('PRAGMA user_version = 99')
    database.close()
    const before = readFileSync(fix.file)
    expect(await messageOf(fix.file))
      .to.contain('has format 99')
      .and.to.contain('written by a newer kcp')
    expect(readFileSync(fix.file).equals(before)).to.equal(true)
  })

  for (const [what, content] of [
    [
      'text',
      'not a database, but a text that is long enough to be read as a header of one hundred bytes or more, surely.',
    ],
    ['a few bytes', 'x'],
  ] as const) {
    it(`is refused unchanged when it is ${what}`, async () => {
      const file = join(fix.file, '..', 'other.db')
      writeFileSync(file, content)
      expect(await messageOf(file)).to.equal(`${file} is not a database of kcp`)
      expect(readFileSync(file, 'utf8')).to.equal(content)
    })
  }

  it("is refused when it is another program's database", async () => {
    const file = join(fix.file, '..', 'other.db')
    const database = new DatabaseSync(file)
    database.exec('CREATE TABLE t (a); PRAGMA user_version = 7')
    database.close()
    expect(await messageOf(file)).to.equal(`${file} is not a database of kcp`)
  })

  it('drops the oldest deletions, and rejects Compacted instead of omitting some', async () => {
    const cluster = freshCluster()
    const scope = { cluster, resource: 'configmaps' }
    const key = (n: number): ObjectKey => ({ ...scope, namespace: 'shop', name: `n${n}` })
    const first = await store.create(key(-1), valueOf('first'), { signal })
    for (let n = 0; n < 2000; n += 100) {
      const made = await Promise.all(
        Array.from({ length: 100 }, (_, i) => store.create(key(n + i), valueOf('x'), { signal })),
      )
      await Promise.all(made.map((one) => store.delete(one.key, { signal, ifRevision: one.revision })))
    }
    await refused(store.changes(scope, { signal, since: first.revision }), 'Compacted')
    const late = await store.create(key(9999), valueOf('late'), { signal })
    await store.delete(late.key, { signal, ifRevision: late.revision })
    expect(await store.changes(scope, { signal, since: late.revision })).to.have.length(1)
    store = await fix.reopen()
    await refused(store.changes(scope, { signal, since: first.revision }), 'Compacted')
    expect(await store.changes(scope, { signal, since: late.revision })).to.have.length(1)
  })

  it('answers Full at its size limit, keeps its data, and accepts deletions', async () => {
    await fix[Symbol.asyncDispose]()
    fix = await fixture({ maxFileBytes: 2 * 1024 * 1024 })
    store = fix.store
    const cluster = freshCluster()
    const key = (n: number): ObjectKey => ({ cluster, resource: 'configmaps', namespace: 'shop', name: `n${n}` })
    const value = Buffer.from(JSON.stringify({ data: 'x'.repeat(50_000) }))
    const watch = record(store, cluster, await store.revision({ signal }))
    let kept = 0
    let full: unknown
    while (!full && kept < 100) {
      await store.create(key(kept), value, { signal }).then(
        () => kept++,
        (error: unknown) => {
          full = error
        },
      )
    }
    expect(isStoreError(full, 'Full')).to.equal(true)
    expect((await store.list({ cluster }, { signal })).items).to.have.length(kept)
    expect(watch.events).to.have.length(kept)
    const one = await store.get(key(0), { signal })
    await store.delete(key(0), { signal, ifRevision: one!.revision })
    await watch.stop()
    store = await fix.reopen()
    expect((await store.list({ cluster }, { signal })).items).to.have.length(kept - 1)
  })

  it('has its log moved into it from time to time', async () => {
    const cluster = freshCluster()
    const value = Buffer.from(JSON.stringify({ data: 'x'.repeat(500_000) }))
    for (let n = 0; n < 100; n++)
      await store.create({ cluster, resource: 'configmaps', namespace: 'shop', name: `n${n}` }, value, { signal })
    // Of 50 MB written.
    expect(statSync(`${fix.file}-wal`).size).to.be.lessThan(18_000_000)
    expect(statSync(fix.file).size).to.be.greaterThan(30_000_000)
    store = await fix.reopen()
    expect((await store.list({ cluster }, { signal })).items).to.have.length(100)
  })

  it('keeps a deferrable write for the next one, makes both durable together, and alone after a while', async () => {
    const cluster = freshCluster()
    const key = (name: string): ObjectKey => ({ cluster, resource: 'configmaps', namespace: '', name })
    const made = await store.create(key('a'), valueOf('a', 1), { signal })
    const life = new AbortController()
    const batches: string[][] = []
    const reading = (async () => {
      for await (const batch of store.watch({ since: made.revision, signal: life.signal }))
        batches.push(batch.flatMap((event) => (event.type === 'put' ? event.object.key.name : [])))
    })()
    const ifRevision = made.revision
    const deferrable = store.update(key('a'), valueOf('a', 2), { signal, ifRevision, deferrable: true })
    // Others are sent at the end of the turn, which this is; no timer runs meanwhile.
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    await Promise.all([deferrable, store.create(key('b'), valueOf('b', 1), { signal })])
    const { revision } = await deferrable
    expect(revision).to.equal(ifRevision + 1)
    const alone = await store.update(key('a'), valueOf('a', 3), { signal, ifRevision: revision, deferrable: true })
    expect((await store.get(key('a'), { signal }))?.revision).to.equal(alone.revision)
    life.abort()
    await reading
    expect(batches.filter((names) => names.length > 0)).to.deep.equal([['a', 'b'], ['a']])
  })
})
