// kill -9 during writes to the embedded store: acknowledged writes are kept, and no write is stored in part.
import { spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { rounds, waitFor } from '#test/support/index.ts'
import { freshCluster } from './store.ts'

const { signal } = new AbortController()
const crashes = rounds({ short: 5, long: 20 })
const program = join(import.meta.dirname, 'store-writer.ts')

/** Runs the writer, kills it after it acknowledged `acknowledgements`, gives back the lines it wrote to `output`. */
async function killedAfter(acknowledgements: number, output: string, args: readonly string[]): Promise<string[]> {
  const descriptor = openSync(output, 'w')
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, ...args], {
    stdio: ['ignore', descriptor, 'inherit'],
  })
  closeSync(descriptor)
  const closed = new Promise<NodeJS.Signals | null>((resolve) => child.once('close', (_, by) => resolve(by)))
  const lines = (): string[] => readFileSync(output, 'utf8').split('\n').slice(0, -1)
  const isEnough = (): boolean => child.exitCode !== null || lines().length > acknowledgements
  await waitFor(isEnough, { what: `${acknowledgements} acknowledged writes`, deadlineMs: 60_000, intervalMs: 2 })
  child.kill('SIGKILL')
  expect(await closed).to.equal('SIGKILL')
  return lines()
}

describe('the embedded store, killed in the middle of writes', function () {
  this.timeout(120_000)
  const directory = mkdtempSync(join(tmpdir(), 'kcp-crash-'))
  after(() => rmSync(directory, { recursive: true, force: true }))

  it(`has every acknowledged write, nothing by half, and no older revision, ${crashes} times`, async () => {
    const file = join(directory, 'kcp.db')
    const cluster = freshCluster()
    let newest = 0
    let checked = 0
    for (let round = 0; round < crashes; round++) {
      const [ready = '', ...lines] = await killedAfter(
        20 + Math.floor(Math.random() * 600),
        join(directory, 'acknowledged'),
        [file, cluster, String(round)],
      )
      expect(Number(ready.split(' ')[1])).to.be.at.least(newest)
      const last = new Map<string, number>()
      for (const line of lines) {
        const [name = '', n = '', revision = ''] = line.split(' ')
        last.set(name, Number(n))
        newest = Math.max(newest, Number(revision))
      }
      await using store = await openSqliteStore({ file })
      expect(await store.revision({ signal })).to.be.at.least(newest)
      const scope = { cluster, resource: 'configmaps', namespace: `round${round}` }
      for (const [name, n] of last) {
        const found = await store.get({ ...scope, name }, { signal })
        const value = found && (JSON.parse(Buffer.from(found.value).toString()) as { n: number; padding: string })
        // At most one write beyond the acknowledged ones may have reached the disk.
        const allowed = [n, n + 1].map((step) => (step % 5 === 4 ? undefined : step))
        expect(allowed, `${name} after step ${n}`).to.include(value?.n)
        if (value) expect(value.padding).to.equal(String(value.n % 10).repeat(200 + (value.n % 7) * 700))
        checked++
      }
      newest = await store.revision({ signal })
    }
    expect(checked).to.be.greaterThan(crashes)
  })
})
