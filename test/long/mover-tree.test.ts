// A folder of many small files and of entries of every kind, copied by two movers: everything arrives, or is named.
// KCP_TEST_FILES (default 100,000): small files.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { needsTools, repositoryRoot, runCommand, skipUnless } from '#test/support/index.ts'
import { startMoverPair } from '#test/integration/mover/mover-pair.ts'

const files = Number(process.env['KCP_TEST_FILES'] ?? 100_000)

describe('movers of a large folder', function () {
  this.timeout(3_600_000)

  it(`keep content and metadata of ${files} files, and of special ones`, async function () {
    await needsTools(this, [['python3', '--version']])
    skipUnless(this, process.getuid?.() === 0 ? undefined : 'owners and devices need root')
    const dir = await mkdtemp(join(tmpdir(), 'kcp-tree-'))
    try {
      const [source, target] = [join(dir, 'source'), join(dir, 'target')]
      await runCommand('mkdir', [source, target])
      const python = async (script: string, ...args: string[]): Promise<string> => {
        const path = join(repositoryRoot, 'test/long/stateful', script)
        return (await runCommand('python3', [path, ...args], { timeoutMs: 1_800_000 })).stdout
      }
      await python('make-tree.py', source, String(files))
      const before = (await python('list-tree.py', source)).trimEnd().split('\n')
      await using pair = await startMoverPair({ source, target })
      const first = await pair.round({ mode: 'copy' })
      const last = await pair.round({ mode: 'final' })
      process.stdout.write(
        `      ${first.entries} entries: first round ${first.durationMs / 1000} s, ${first.bytesOnWire} bytes sent; last round ${last.durationMs / 1000} s, ${last.bytesOnWire} bytes sent\n`,
      )
      expect(last).to.include({ verified: true, bytesChanged: 0 })
      expect(last.notKept).to.deep.equal({ count: 0, named: [] })
      const after = (await python('list-tree.py', target)).trimEnd().split('\n')
      const arrived = new Set(after)
      expect(before.filter((line) => !arrived.has(line)).slice(0, 20)).to.deep.equal([])
      expect(after).to.have.length(before.length)
    } finally {
      await rm(dir, { recursive: true, force: true })
    }
  })
})
