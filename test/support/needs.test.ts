import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tmpdir } from 'node:os'
import { expect } from 'chai'
import { repositoryRoot } from './cache-dir.ts'
import { runCommand, type CommandResult } from './command.ts'

describe('a test whose machine lacks a requirement', () => {
  let dir = ''
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'kcp-needs-'))
    const spec = `
      import { skipUnless } from ${JSON.stringify(join(import.meta.dirname, 'needs.ts'))}
      describe('pods', () => {
        before(function () { skipUnless(this, 'nodes need root') })
        it('run', () => undefined)
        describe('with volumes', () => it('run too', () => undefined))
      })`
    writeFileSync(join(dir, 'pods.test.mjs'), spec)
  })
  after(() => rmSync(dir, { recursive: true }))

  const mocha = (env: Record<string, string | undefined>): Promise<CommandResult> => {
    const args = [join(repositoryRoot, 'node_modules/mocha/bin/mocha.js'), '--no-config', join(dir, 'pods.test.mjs')]
    return runCommand(process.execPath, args, { cwd: dir, env, expectCode: 'any' })
  }

  it('is skipped by name, with the reason', async () => {
    const { code, stdout, stderr } = await mocha({ CI: undefined })
    expect(stderr).to.contain('SKIPPED: pods run: nodes need root')
    expect(stderr).to.contain('SKIPPED: pods with volumes run too: nodes need root')
    expect(stdout).to.contain('2 pending')
    expect(code).to.equal(0)
  })

  it('fails in CI', async () => {
    const { code, stdout } = await mocha({ CI: 'true' })
    expect(stdout).to.contain('"pods" must run in CI, but nodes need root')
    expect(code).to.not.equal(0)
  })
})
