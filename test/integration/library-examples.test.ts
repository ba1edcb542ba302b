// The examples of the libraries, run as their readers would run them: against the built package, by its name.
import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { startTestInstallation } from '#testing/index.ts'
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

  it('start a server inside the process of a test', async () => {
    const [ready, works] = await run('test-a-controller.ts')
    expect(ready).to.match(/^the server is ready after \d+ ms$/)
    expect(works).to.equal('the controller works')
  })

  it('follow the objects of a server', async () => {
    const [first, ...others] = await run('follow-config-maps.ts')
    expect(first).to.equal('added paint')
    expect(others).to.deep.equal(['changed paint'])
  })

  it('start an installation whose logical clusters know nothing of each other', async () => {
    await using kcp = await startTestInstallation()
    const [acme, bob] = [await kcp.logicalCluster('acme'), await kcp.logicalCluster('bob')]
    const configMaps = { group: '', version: 'v1', resource: 'configmaps' }
    const { signal } = new AbortController()
    const metadata = { name: 'a', namespace: 'default' }
    await acme.client.create(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata }, { signal })
    expect(await bob.client.tryGet(configMaps, metadata, { signal })).to.equal(undefined)
    expect(acme.kubeconfig).to.contain('/clusters/acme')
  })

  it('have a page with an example each', () => {
    const { exports } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8')) as { exports: object }
    for (const door of Object.values(exports) as { types: string }[]) {
      const folder = dirname(door.types.replace('./dist/', ''))
      expect(readFileSync(join(repositoryRoot, folder, 'README.md'), 'utf8')).to.match(/`examples\//)
    }
  })
})
