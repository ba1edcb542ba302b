import { existsSync } from 'node:fs'
import { expect } from 'chai'
import { repositoryRoot } from './cache-dir.ts'
import { runCommand } from './command.ts'
import { ensurePrograms, programNames, programPath } from './programs.ts'

describe('the programs of the harness', () => {
  for (const name of programNames) {
    it(`keeps ${name} outside the checkout, in a folder of its version`, () => {
      expect(programPath(name))
        .to.match(/\/programs\/[a-z0-9.-]+-[0-9a-f]{16}\//)
        .and.not.contain(repositoryRoot)
    })
  }

  it('include a kubectl of the pinned version', async function () {
    this.timeout(30 * 60_000) // a cold cache builds first
    const { kubectl } = await ensurePrograms(['kubectl'])
    expect(existsSync(kubectl)).to.equal(true)
    const { stdout } = await runCommand(kubectl, ['version', '--client', '-o', 'json'])
    expect(JSON.parse(stdout)).to.have.nested.property('clientVersion.gitVersion', 'v1.34.3')
  })
})
