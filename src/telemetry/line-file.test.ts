import { expect } from 'chai'
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLineFile } from './line-file.ts'

describe('a line file', () => {
  let dir: string
  let path: string
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'kcp-lines-'))
    path = join(dir, 'audit.log')
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))
  const linesOf = (file: string): string[] => readFileSync(file, 'utf8').split('\n').slice(0, -1)

  it('appends lines in order, with mode 0600', async () => {
    for (const from of [0, 1000]) {
      await using file = await openLineFile({ path })
      for (let i = 0; i < 1000; i++) file.write(`line ${from + i}`)
    }
    expect(linesOf(path)).to.deep.equal(Array.from({ length: 2000 }, (_, i) => `line ${i}`))
    expect(statSync(path).mode & 0o777).to.equal(0o600)
  })

  it('drops and counts lines that do not fit into the queue, without waiting', async () => {
    let dropped = 0
    await using file = await openLineFile({ path, maxWaiting: 1000, onDropped: (lines) => (dropped += lines) })
    for (let i = 0; i < 100; i++) file.write('x'.repeat(99))
    expect(dropped).to.equal(90)
    await file.flushed()
    file.write('again')
    await file.flushed()
    expect(linesOf(path)).to.have.length(11)
    expect(linesOf(path).at(-1)).to.equal('again')
  })

  it('writes to a new file once its file was renamed and it is told to reopen', async () => {
    await using file = await openLineFile({ path })
    file.write('one')
    await file.flushed()
    renameSync(path, `${path}.1`)
    file.write('still the old file')
    await file.flushed()
    file.reopen()
    file.write('the new one')
    await file.flushed()
    expect(linesOf(`${path}.1`)).to.deep.equal(['one', 'still the old file'])
    expect(linesOf(path)).to.deep.equal(['the new one'])
  })

  it('begins a new file at the size limit, and keeps the given number of old ones', async () => {
    let seconds = 0
    const now = (): Date => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds++))
    await using file = await openLineFile({ path, maxFileBytes: 100, maxBackups: 2, now })
    for (let i = 0; i < 10; i++) {
      file.write(`${i}`.repeat(59))
      await file.flushed()
    }
    expect(readdirSync(dir).sort()).to.deep.equal([
      'audit-2026-01-01T00-00-07.000.log',
      'audit-2026-01-01T00-00-08.000.log',
      'audit.log',
    ])
    expect(linesOf(path)).to.deep.equal(['9'.repeat(59)])
    expect(linesOf(join(dir, 'audit-2026-01-01T00-00-08.000.log'))).to.deep.equal(['8'.repeat(59)])
  })

  it('drops and reports lines that the disk refuses, and writes later ones', async function () {
    const dropped: { lines: number; message: string }[] = []
    symlinkSync('/dev/full', path)
    await using file = await openLineFile({
      path,
      onDropped: (lines, { message }) => dropped.push({ lines, message }),
    })
    file.write('one')
    file.write('two')
    await file.flushed()
    expect(dropped).to.have.length(1)
    expect(dropped[0]?.lines).to.equal(2)
    expect(dropped[0]?.message).to.include('ENOSPC')
    rmSync(path)
    file.reopen()
    file.write('three')
    await file.flushed()
    expect(linesOf(path).filter((line) => line !== '')).to.deep.equal(['three'])
  })

  it('rejects when the directory does not exist', async () => {
    const error: unknown = await openLineFile({ path: join(dir, 'none', 'audit.log') }).catch(
      (caught: unknown) => caught,
    )
    expect(error).to.have.property('code', 'ENOENT')
  })
})
