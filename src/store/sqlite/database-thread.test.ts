import { copyFileSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { StoreError } from '#store/store.ts'
import { DatabaseThread } from './database-thread.ts'
import type { DatabaseCall } from './protocol.ts'

describe('the thread of the database', function () {
  this.timeout(30_000)
  let directory: string
  let lost: StoreError[]
  let thread: DatabaseThread
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kcp-thread-'))
    lost = []
    const settings = {
      file: join(directory, 'kcp.db'),
      keptDeletions: 10,
      maxFileBytes: 0,
      mayBeNew: true,
      isDurable: true,
    }
    thread = await DatabaseThread.start(settings, {
      afterBatch: () => undefined,
      onLost: (error) => lost.push(error),
    })
  })
  afterEach(async () => {
    await thread.close()
    rmSync(directory, { recursive: true, force: true })
  })

  /** Resolves with the answer, or with the error message. */
  const outcome = (call: DatabaseCall): Promise<string> =>
    new Promise((resolve) =>
      thread.call({
        make: () => call,
        answered: (answer) => resolve(answer.is),
        failed: (error) => resolve(error.message),
      }),
    )

  it('reports its death once, after it failed the calls under way', async () => {
    expect(await outcome({ do: 'revision' })).to.equal('revision')
    // Nothing that a store asks; it stands for whatever ends a thread.
    const deadly = null as unknown as DatabaseCall
    expect(await outcome(deadly)).to.equal('the database thread failed')
    expect(lost.map(({ code }) => code)).to.deep.equal(['Unavailable'])
    expect(await outcome({ do: 'revision' })).to.equal('the database thread failed')
    await thread.close()
    expect(lost).to.have.length(1)
  })

  for (const { title, harm } of [
    { title: 'directory was removed', harm: () => rmSync(directory, { recursive: true }) },
    { title: 'directory was moved', harm: () => renameSync(directory, `${directory}-moved`) },
    { title: 'log was removed', harm: () => rmSync(join(directory, 'kcp.db-wal')) },
    {
      title: 'file was replaced',
      harm: () => {
        copyFileSync(join(directory, 'kcp.db'), join(directory, 'backup'))
        renameSync(join(directory, 'backup'), join(directory, 'kcp.db'))
      },
    },
  ]) {
    it(`acknowledges nothing more, and says so, after its ${title}`, async () => {
      const create = (name: string): Promise<string> => {
        const key = { cluster: 'c' as ClusterId, resource: 'configmaps', namespace: '', name }
        const value = Buffer.from('{}')
        return new Promise((resolve) =>
          thread.call({
            make: (slice) => ({ do: 'create', key, value: slice }),
            value,
            answered: (answer) => resolve(answer.is),
            failed: (error) => resolve(error.message),
          }),
        )
      }
      expect(await create('a')).to.equal('put')
      harm()
      expect(await create('b')).to.match(/kcp\.db" was moved, removed or replaced while it was in use/)
      expect(lost.map(({ code }) => code)).to.deep.equal(['Unavailable'])
      expect(await create('c')).to.contain('was moved, removed or replaced')
      rmSync(`${directory}-moved`, { recursive: true, force: true })
    })
  }

  it('does not count as lost when it is closed', async () => {
    await thread.close()
    expect(await outcome({ do: 'revision' })).to.equal('the store is closed')
    expect(lost).to.deep.equal([])
  })
})
