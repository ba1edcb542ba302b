// kill -9 during writes to the embedded store: acknowledged writes are kept, and no write is stored in part.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openSqliteStore } from '../../src/store/sqlite/index.ts'
import { rounds } from '../support/index.ts'
import { freshCluster } from './store.ts'

const { signal } = new AbortController()
const crashes = rounds({ short: 5, long: 20 })
const program = join(import.meta.dirname, 'store-writer.ts')

/** Runs the writer, kills it after `acknowledgements` acknowledgements, returns its output lines. */
async function killedAfter(acknowledgements: number, args: readonly string[]): Promise<string[]> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  let lines = 0
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString()
    for (const byte of chunk) if (byte === 10) lines++
    if (lines > acknowledgements) child.kill('SIGKILL')
  })
  const how = await new Promise((resolve) => child.once('close', (_, by) => resolve(by)))
  expect(how).to.equal('SIGKILL')
  return said.slice(0, said.lastIndexOf('\n')).split('\n')
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
      const [ready = '', ...lines] = await killedAfter(20 + Math.floor(Math.random() * 600), [
        file,
        cluster,
        String(round),
      ])
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
