// The alerts of the chart, judged by Prometheus' own unit tests of rules. Building promtool takes some twenty minutes
// once.
import { expect } from 'chai'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensurePrograms, repositoryRoot, runCommand } from '#test/support/index.ts'

const chart = join(repositoryRoot, 'charts/kcp')

describe('alerts', () => {
  it('fire when they should and not before', async function () {
    this.timeout(60 * 60_000) // a cold cache builds promtool first
    const { promtool } = await ensurePrograms(['promtool'])
    const dir = mkdtempSync(join(tmpdir(), 'kcp-rules-'))
    try {
      const { stdout } = await runCommand(promtool, ['test', 'rules', join(repositoryRoot, 'test/rules/kcp.test.yaml')])
      expect(stdout).to.contain('SUCCESS')
      // A rule that never fires fails the same tests.
      const text = await readFile(join(chart, 'rules/kcp.yaml'), 'utf8')
      const tests = await readFile(join(repositoryRoot, 'test/rules/kcp.test.yaml'), 'utf8')
      writeFileSync(join(dir, 'rules.yaml'), text.replace('kcp_held_workloads) > 0', 'kcp_held_workloads) > 100'))
      writeFileSync(join(dir, 'test.yaml'), tests.replace('../../charts/kcp/rules/kcp.yaml', 'rules.yaml'))
      const { code } = await runCommand(promtool, ['test', 'rules', join(dir, 'test.yaml')], { expectCode: 'any' })
      expect(code).to.equal(1)
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  })
})
