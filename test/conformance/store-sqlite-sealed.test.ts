// Secrets in the database file are sealed with a key that lies elsewhere.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect } from 'chai'
import type { ObjectKey, Store } from '#store/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { describeStore, freshCluster, valueOf } from './store.ts'

const { signal } = new AbortController()

describeStore({
  backend: 'sqlite with sealed Secrets',
  load: 400,
  async open() {
    const directory = mkdtempSync(join(tmpdir(), 'kcp-sealed-'))
    const options = { file: join(directory, 'data', 'kcp.db'), sealKeyFile: join(directory, 'seal.key') }
    let store = await openSqliteStore(options)
    return {
      get store() {
        return store
      },
      reopen: async () => {
        await store[Symbol.asyncDispose]()
        store = await openSqliteStore(options)
        return store
      },
      [Symbol.asyncDispose]: async () => {
        await store[Symbol.asyncDispose]()
        rmSync(directory, { recursive: true, force: true })
      },
    }
  },
})

describe('the file of an embedded store with sealed Secrets', function () {
  this.timeout(30_000)
  let directory: string
  let file: string
  let sealKeyFile: string
  const cluster = freshCluster()
  const secret: ObjectKey = { cluster, resource: 'secrets', namespace: 'shop', name: 'db' }
  const gone: ObjectKey = { ...secret, name: 'gone' }
  const configMap: ObjectKey = { ...secret, resource: 'configmaps' }

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'kcp-sealed-'))
    file = join(directory, 'data', 'kcp.db')
    sealKeyFile = join(directory, 'seal.key')
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  /** Writes Secrets more than once, deletes one, and keeps a ConfigMap. */
  async function fill(store: Store): Promise<void> {
    const first = await store.create(secret, valueOf('hunter1'), { signal })
    await store.update(secret, valueOf('hunter2'), { signal, ifRevision: first.revision })
    const { revision } = await store.create(gone, valueOf('hunter3'), { signal })
    await store.delete(gone, { signal, ifRevision: revision })
    await store.create(configMap, valueOf('visible'), { signal })
  }

  async function requireWhole(store: Store): Promise<void> {
    const textOf = async (key: ObjectKey): Promise<string> =>
      Buffer.from((await store.get(key, { signal }))?.value ?? []).toString()
    expect(await textOf(secret)).to.equal(valueOf('hunter2').toString())
    expect(await textOf(configMap)).to.equal(valueOf('visible').toString())
    const found = await store.list({ resource: 'secrets', containing: ['nothing', '"name":"hunter2"'] }, { signal })
    expect(found.items.map(({ key }) => key.name)).to.deep.equal(['db'])
    const changes = await store.changes({ resource: 'secrets' }, { signal, since: 0 as never })
    const states = changes.flatMap((change) => {
      if (change.type === 'progress') return []
      return [(change.type === 'put' ? change.object : change.previous)?.value ?? Buffer.alloc(0)]
    })
    expect(states.map((value) => Buffer.from(value).toString())).to.have.members([
      valueOf('hunter2').toString(),
      valueOf('hunter3').toString(),
    ])
  }

  const onDisk = (): string =>
    readdirSync(join(directory, 'data'))
      .map((name) => readFileSync(join(directory, 'data', name), 'latin1'))
      .join()

  async function messageOf(options: { sealKeyFile?: string }): Promise<string> {
    return await openSqliteStore({ file, ...options }).then(
      async (opened) => {
        await opened[Symbol.asyncDispose]()
        return 'it was opened'
      },
      (error: unknown) => (error as Error).message,
    )
  }

  it('shows no Secret, neither while it is open nor afterwards, and gives them back', async () => {
    {
      await using store = await openSqliteStore({ file, sealKeyFile })
      await fill(store)
      await requireWhole(store)
      expect(onDisk()).to.contain('visible').and.to.not.contain('hunter')
    }
    expect(statSync(sealKeyFile).mode & 0o777).to.equal(0o600)
    await using again = await openSqliteStore({ file, sealKeyFile })
    await requireWhole(again)
    expect(onDisk()).to.contain('visible').and.to.not.contain('hunter')
  })

  it('is sealed when it was written in the clear before, with everything in it', async () => {
    {
      await using store = await openSqliteStore({ file })
      await fill(store)
      expect(onDisk()).to.contain('hunter1').and.to.contain('hunter2').and.to.contain('hunter3')
    }
    {
      await using store = await openSqliteStore({ file, sealKeyFile })
      await requireWhole(store)
    }
    expect(onDisk()).to.contain('visible').and.to.not.contain('hunter')
  })

  it('is refused, untouched, without its key, with another and with a damaged one', async () => {
    {
      await using store = await openSqliteStore({ file, sealKeyFile })
      await fill(store)
    }
    const key = readFileSync(sealKeyFile)
    const before = readFileSync(file)
    expect(await messageOf({})).to.contain(`Secrets in ${file} are sealed`)
    rmSync(sealKeyFile)
    expect(await messageOf({ sealKeyFile })).to.equal(
      `Secrets in ${file} are sealed with a key that is missing: restore ${sealKeyFile}`,
    )
    expect(existsSync(sealKeyFile), 'a new key').to.equal(false)
    writeFileSync(sealKeyFile, Buffer.alloc(32, 1).toString('base64'))
    expect(await messageOf({ sealKeyFile })).to.contain('is not the key that Secrets')
    writeFileSync(sealKeyFile, 'short')
    expect(await messageOf({ sealKeyFile })).to.contain('holds no key of 32 bytes')
    expect(readFileSync(file).equals(before)).to.equal(true)
    writeFileSync(sealKeyFile, key)
    expect(await messageOf({ sealKeyFile })).to.equal('it was opened')
  })

  it('tells of a Secret that was put there by somebody else', async () => {
    {
      await using store = await openSqliteStore({ file, sealKeyFile })
      await fill(store)
    }
    const database = new DatabaseSync(file)
    database.prepare("UPDATE objects SET value = ? WHERE resource = 'secrets'").run(valueOf('forged'))
    database.close()
    await using store = await openSqliteStore({ file, sealKeyFile })
    const message = await store.get(secret, { signal }).then(
      () => 'it was read',
      (error: unknown) => (error as Error).message,
    )
    expect(message).to.contain('"secrets/db" is not sealed')
    expect(await store.get(configMap, { signal })).to.not.equal(undefined)
  })
})
