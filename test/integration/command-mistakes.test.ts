// The answers of commands to wrong arguments: one line, with the remedy, and exit code 1.
import { expect } from 'chai'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadKubeconfig } from '#client/index.ts'
import { runKcp } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

describe('a mistake in a command', function () {
  this.timeout(180_000)
  let dir: string
  let kcp: KcpInstance
  let tenant: Tenant
  let refused: string

  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'kcp-mistakes-'))
    kcp = await startInstance()
    tenant = await kcp.tenant('acme')
    const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' } }
    const spec = { containers: [{ name: 'web', image: 'example/web:1' }] }
    await tenant.kubectl(['create', '-f', '-'], { input: { ...object, spec } })
    const working = await loadKubeconfig({ file: tenant.kubeconfig }, { trusted: true })
    const { ca: bytes = '' } = await working.endpoint()
    const ca = Buffer.from(bytes).toString('base64')
    refused = join(dir, 'refused.kubeconfig')
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'x',
      clusters: [{ name: 'x', cluster: { server: working.server, 'certificate-authority-data': ca } }],
      users: [{ name: 'x', user: { token: 'expired' } }],
      contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    }
    await writeFile(refused, JSON.stringify(config))
  })
  after(async () => {
    await kcp[Symbol.asyncDispose]()
    await rm(dir, { recursive: true })
  })

  const run = async (args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await runKcp([...args, '--root-dir', kcp.rootDir], { expectCode: 'any' })
    expect([code, stdout], stderr).to.deep.equal([1, ''])
    expect(stderr.trim().split('\n')).to.have.length(1)
    return stderr
  }

  it('is told who joins a logical cluster as a member', async () => {
    for (const { name, kubeconfig } of [kcp.admin, tenant]) {
      const said = await run(['member', 'join', `not-${name}`, '--kubeconfig', kubeconfig])
      expect(said).to.match(/is a logical cluster of kcp, which runs no pods: give the kubeconfig of a real cluster/)
    }
    expect((await kcp.admin.kubectl(['get', 'memberclusters', '-o', 'name'])).stdout).to.equal('')
  })

  it('is told whose credentials the cluster refuses', async () => {
    const said = await run(['member', 'join', 'east', '--kubeconfig', refused])
    expect(said).to.match(/refuses the credentials in ".*refused\.kubeconfig" \(401\): they may have expired/)
  })

  it('is told which of logical cluster and workload is not there', async () => {
    expect(await run(['placement', 'explain', 'pod/web', '--cluster', 'acne'])).to.match(/no LogicalCluster "acne"/)
    expect(await run(['placement', 'explain', 'sts/db', '--cluster', 'acme'])).to.match(/no StatefulSet "default\/db"/)
  })

  it('is none where kubectl takes the same name of a kind', async () => {
    for (const workload of ['po/web', 'pods/web', 'Pod/web']) {
      const { stdout } = await runKcp([
        'placement',
        'explain',
        workload,
        '--cluster',
        'acme',
        '--root-dir',
        kcp.rootDir,
      ])
      expect(stdout).to.match(/^asked for: best/)
    }
  })

  it('is told with the flags that there are, where none is given', async () => {
    const { code, stderr } = await runKcp(['diagnose'], { expectCode: 'any' })
    expect(code).to.equal(2)
    expect(stderr).to.match(/which installation\? give --root-dir DIR .* or --host-kubeconfig FILE/)
  })

  it('is told which address cannot be used', async () => {
    const { code, stderr } = await runKcp(['start', '--root-dir', join(dir, 'new'), '--bind-address', 'no such host'], {
      expectCode: 'any',
    })
    expect(code).to.equal(1)
    expect(stderr.trim()).to.match(/^kcp: cannot listen on .*; choose another with --bind-address$/)
  })
})
