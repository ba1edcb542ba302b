import { expect } from 'chai'
import { mkdtemp, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileStorage } from './file-storage.ts'
import { checkedBytes, isStorageError, type StorageReason } from './storage.ts'

describe('a directory of snapshots', () => {
  const { signal } = new AbortController()
  let outside: string
  let base: string
  beforeEach(async () => {
    outside = await mkdtemp(join(tmpdir(), 'kcp-storage-'))
    base = join(outside, 'base')
    await mkdir(base)
  })
  afterEach(() => rm(outside, { recursive: true, force: true }))

  async function* bytes(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
    for (const text of texts) yield await Promise.resolve(Buffer.from(text))
  }
  async function textOf(source: AsyncIterable<Uint8Array>): Promise<string> {
    const chunks: Uint8Array[] = []
    for await (const chunk of source) chunks.push(chunk)
    return Buffer.concat(chunks).toString()
  }
  async function refused(step: Promise<unknown>): Promise<StorageReason | undefined> {
    return await step.then(
      () => undefined,
      (error: unknown) => (isStorageError(error) ? error.reason : undefined),
    )
  }

  it('keeps objects, lists and deletes them', async () => {
    const storage = fileStorage(base, 'kcp/prod')
    const stored = await storage.put('acme/one.kcp.tar.zst', bytes('ab', 'c'), signal)
    expect(stored).to.deep.equal({
      bytes: 3,
      checksum: 'sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    })
    await storage.put('beta/two.kcp.tar.zst', bytes('d'), signal)
    expect(await textOf(await storage.get('acme/one.kcp.tar.zst', signal))).to.equal('abc')
    const keys = async (folder: string) => {
      const found: string[] = []
      for await (const { key } of storage.list(folder, signal)) found.push(key)
      return found
    }
    expect([await keys(''), await keys('beta')]).to.deep.equal([
      ['acme/one.kcp.tar.zst', 'beta/two.kcp.tar.zst'],
      ['beta/two.kcp.tar.zst'],
    ])
    await storage.delete('acme/one.kcp.tar.zst', signal)
    await storage.delete('acme/one.kcp.tar.zst', signal)
    expect(await storage.size('acme/one.kcp.tar.zst', signal)).to.equal(undefined)
    expect(await refused(storage.get('acme/one.kcp.tar.zst', signal))).to.equal('ObjectMissing')
  })

  it('has nothing of bytes that end with an error, and removes what a killed process has left', async () => {
    const storage = fileStorage(base, 'kcp')
    const failing = async function* (): AsyncGenerator<Uint8Array> {
      yield* bytes('half')
      throw Object.assign(new Error('the source broke'), { code: 'ECONNRESET', syscall: 'read' })
    }
    const error = await storage.put('a', failing(), signal).catch((one: unknown) => one)
    expect(String(error)).to.equal('Error: the source broke')
    expect(await readdir(join(base, 'kcp'))).to.deep.equal([])
    await writeFile(join(base, 'kcp', 'a.partial-123'), 'of a killed process')
    await writeFile(join(base, 'kcp', 'ab.partial-123'), 'of another object')
    await storage.put('a', bytes('whole'), signal)
    expect(await readdir(join(base, 'kcp'))).to.deep.equal(['a', 'ab.partial-123'])
  })

  it('never leaves its directory: by a path', async () => {
    const storage = fileStorage(base, '')
    for (const key of ['../x', 'a/../../x', '/etc/passwd', '.hidden', 'a//b', '', 'a/..', 'a\\..\\b/\u0000', '-rf']) {
      expect(await refused(storage.put(key, bytes('x'), signal)), key).to.equal('PathRefused')
      expect(await refused(storage.get(key, signal)), key).to.equal('PathRefused')
      expect(await refused(storage.delete(key, signal)), key).to.equal('PathRefused')
    }
    expect(() => fileStorage(base, '../x')).to.throw(/is no path of a snapshot/)
    expect(await readdir(outside)).to.deep.equal(['base'])
  })

  it('never leaves its directory: by a link to a directory or a file', async () => {
    await mkdir(join(outside, 'secret'))
    await writeFile(join(outside, 'secret', 'file'), 'treasure')
    await symlink(join(outside, 'secret'), join(base, 'acme'))
    await symlink(join(outside, 'secret', 'file'), join(base, 'link'))
    const storage = fileStorage(base, '')
    expect(await refused(storage.get('acme/file', signal))).to.equal('PathRefused')
    expect(await refused(storage.put('acme/new', bytes('x'), signal))).to.equal('PathRefused')
    expect(await refused(storage.delete('acme/file', signal))).to.equal('PathRefused')
    expect(await refused(storage.get('link', signal))).to.equal('PathRefused')
    // The link is replaced, and what it led to stays.
    await storage.put('link', bytes('own'), signal)
    expect(await readFile(join(outside, 'secret', 'file'), 'utf8')).to.equal('treasure')
    expect(await readdir(join(outside, 'secret'))).to.deep.equal(['file'])
    expect(await readFile(join(base, 'link'), 'utf8')).to.equal('own')
  })

  it('says what is missing', async () => {
    expect(await refused(fileStorage(join(outside, 'none'), 'kcp').check(signal))).to.equal('BucketMissing')
    const storage = fileStorage(base, 'kcp')
    await storage.check(signal)
    expect(await readdir(join(base, 'kcp'))).to.deep.equal([])
  })

  it('gives bytes that end with an error if they are not those of the checksum', async () => {
    const checksum = 'sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
    expect(await textOf(checkedBytes(bytes('abc'), checksum))).to.equal('abc')
    expect(await refused(textOf(checkedBytes(bytes('abd'), checksum)))).to.equal('WrongContent')
  })
})
