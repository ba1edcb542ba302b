// `kcp create`, `list` and `connect` beside a running `kcp start`, as people and scripts use them.
import { expect } from 'chai'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ensurePrograms, runCommand, runKcp, type CommandResult } from '#test/support/index.ts'
import { startInstance, type KcpInstance } from './kcp-instance.ts'

describe('the commands about logical clusters', function () {
  this.timeout(60_000)
  let kcp: KcpInstance
  let kubectl: string

  before(async () => {
    kcp = await startInstance()
    ;({ kubectl } = await ensurePrograms(['kubectl']))
  })
  after(() => kcp[Symbol.asyncDispose]())

  const run = (...args: string[]): Promise<CommandResult> => runKcp(args, { expectCode: 'any' })
  const connect = (name: string, ...command: string[]): Promise<CommandResult> =>
    run('connect', name, '--root-dir', kcp.rootDir, '--', ...command)

  it('list nothing, and say what to do first', async () => {
    const { code, stdout, stderr } = await run('list', '--root-dir', kcp.rootDir)
    expect([code, stdout, stderr]).to.deep.equal([
      0,
      '',
      'no logical cluster exists yet; the first one:  kcp create NAME\n',
    ])
  })

  it('create one with an owner, wait until it is ready, and say how to use it', async () => {
    const { code, stdout } = await run('create', 'acme', '--owner', 'User:alice', '--root-dir', kcp.rootDir)
    expect([code, stdout.split('\n')[0]]).to.deep.equal([0, 'logicalcluster.kcp.dev/acme created'])
    expect(stdout).to.include(`kcp connect acme --root-dir ${kcp.rootDir} -- kubectl get namespaces`)
    const owners = await kcp.admin.kubectl(['get', 'lc', 'acme', '-o', 'jsonpath={.spec.owners[*].name}'])
    expect(owners.stdout).to.equal('alice')
    const again = await run('create', 'acme', '--root-dir', kcp.rootDir)
    expect([again.code, again.stderr]).to.deep.equal([1, 'kcp: LogicalCluster "acme" exists already\n'])
    const wrong = await run('create', 'other', '--owner', 'alice', '--root-dir', kcp.rootDir)
    expect([wrong.code, wrong.stderr]).to.deep.equal([2, 'kcp: --owner must be User:NAME or Group:NAME, not "alice"\n'])
  })

  it('list it in each format', async () => {
    const list = async (format: string): Promise<string> =>
      (await run('list', '--root-dir', kcp.rootDir, '-o', format)).stdout
    expect(await list('table')).to.match(/^NAME +READY +REASON +AGE\nacme +True/)
    expect(await list('name')).to.equal('logicalcluster.kcp.dev/acme\n')
    expect((JSON.parse(await list('json')) as { items: { metadata: { name: string } }[] }).items).to.have.length(1)
  })

  it('run a command inside it alone, with its exit code, and leave no credentials behind', async () => {
    expect((await connect('acme', kubectl, 'create', 'namespace', 'shop')).code).to.equal(0)
    const inside = await connect('acme', 'bash', '-c', 'echo $KUBECONFIG $KCP_LOGICAL_CLUSTER; stat -c %a $KUBECONFIG')
    const [words = '', mode] = inside.stdout.trim().split('\n')
    const [file = '', name] = words.split(' ')
    expect([name, mode, existsSync(file)]).to.deep.equal(['acme', '600', false])
    const outside = await connect('acme', kubectl, 'get', '--raw', '/clusters/root/api/v1/namespaces')
    expect(outside.code).to.equal(1)
    expect((await connect('acme', 'bash', '-c', 'exit 7')).code).to.equal(7)
    expect((await connect('acme', 'bash', '-c', 'kill -TERM $$')).code).to.equal(143)
    const missing = await connect('acme', 'no-such-program')
    expect([missing.code, missing.stderr]).to.deep.equal([1, 'kcp: there is no program "no-such-program"\n'])
    const nobody = await connect('nobody', 'true')
    expect(nobody.stderr).to.match(/^kcp: there is no LogicalCluster "nobody"/)
  })

  it('make it the current context of kubectl, in any file, and go back', async () => {
    const admin = join(kcp.rootDir, 'admin.kubeconfig')
    const own = join(kcp.rootDir, 'own.kubeconfig')
    for (const file of [own, admin]) {
      const env = { KUBECONFIG: file, XDG_CACHE_HOME: kcp.rootDir }
      const use = (...args: string[]): Promise<CommandResult> => runKcp(['use', ...args], { expectCode: 'any', env })
      expect((await use('acme', '--root-dir', kcp.rootDir)).stderr).to.equal('')
      for (const name of ['first', 'second']) {
        // The second command gets the credential of the first one.
        const { code, stderr } = await runCommand(kubectl, ['get', 'namespaces'], { env, expectCode: 'any' })
        expect([code, stderr], name).to.deep.equal([0, ''])
      }
      expect((await use()).stdout).to.match(/^CURRENT +NAME.*\n\* +acme /)
      // Without a flag: the installation is that of the context.
      expect((await runKcp(['list', '-o', 'name'], { env })).stdout).to.include('logicalcluster.kcp.dev/acme')
      const back = await use('-')
      expect([back.code, back.stderr.includes('no context to go back')]).to.deep.equal(
        file === own ? [1, true] : [0, false],
      )
    }
  })
})
