import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { withFileLock } from './file-lock.ts'

describe('a file lock', () => {
  let dir = ''
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'kcp-lock-'))
  })
  afterEach(() => rmSync(dir, { recursive: true }))

  it('admits one holder at a time and leaves nothing behind', async () => {
    let inside = 0
    const most: number[] = []
    const work = async (): Promise<void> => {
      most.push(++inside)
      await new Promise((resolve) => setImmediate(resolve))
      inside--
    }
    await Promise.all([1, 2, 3].map(() => withFileLock(join(dir, 'lock'), work)))
    expect(most).to.deep.equal([1, 1, 1])
    expect(readdirSync(dir)).to.deep.equal([])
  })

  it('is taken over from a process that died', async () => {
    const dead = { pid: process.pid, startTicks: '1', bootId: 'of-another-boot', token: 'x' }
    writeFileSync(join(dir, 'lock'), JSON.stringify(dead))
    expect(await withFileLock(join(dir, 'lock'), async () => 'mine', { deadlineMs: 2000 })).to.equal('mine')
  })

  it('is released when the work fails', async () => {
    const failing = withFileLock(join(dir, 'lock'), () => Promise.reject(new Error('no')))
    expect(String(await failing.catch((error: unknown) => error))).to.contain('no')
    expect(existsSync(join(dir, 'lock'))).to.equal(false)
  })

  it('stops waiting when aborted', async () => {
    const error = await withFileLock(join(dir, 'lock'), () =>
      withFileLock(join(dir, 'lock'), async () => 'never', { signal: AbortSignal.timeout(30) }),
    ).catch((reason: unknown) => reason)
    expect(String(error)).to.contain('TimeoutError')
  })
})
