// The examples of the libraries, run as their readers would run them: against the built package, by its name.
import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { repositoryRoot, runCommand } from '#test/support/index.ts'

const run = async (example: string): Promise<string[]> => {
  const { stdout } = await runCommand(process.execPath, [join(repositoryRoot, 'examples', example)])
  return stdout.trimEnd().split('\n')
}

describe('the libraries', function () {
  this.timeout(30_000)

  it('evaluate a rule with its cost', async () => {
    expect(await run('evaluate-a-rule.ts')).to.deep.equal([
      'may cost 59',
      '{"replicas":1,"hosts":["a.example"]}: true, cost 14',
      '{"replicas":2,"hosts":["a.example"]}: false, cost 6',
    ])
  })

  it('tell who owns a field, and the conflict before', async () => {
    expect(await run('who-owns-a-field.ts')).to.deep.equal([
      'Apply failed with 1 conflict: conflict with "team": .spec.replicas',
      'autoscaler: {"f:spec":{"f:replicas":{}}}',
      'team: {"f:spec":{"f:image":{}}}',
    ])
  })

  it('have a page with an example each', () => {
    const { exports } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8')) as { exports: object }
    for (const door of Object.keys(exports))
      expect(readFileSync(join(repositoryRoot, 'src/libraries', door, 'README.md'), 'utf8')).to.match(/`examples\//)
  })
})
