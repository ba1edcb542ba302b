// Agents and an installation of different builds, replaced one after the other under traffic, in both orders: an
// agent is a program that others update when they like. The older build is the last one whose ends of the tunnel say
// nothing of their version. KCP_TEST_OLDER: a checkout of another build, with `make build` done.
import { expect } from 'chai'
import { existsSync, symlinkSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kubectl, needsNodes, repositoryRoot, runCommand, waitFor, type CommandResult } from '#test/support/index.ts'
import { deleteAll } from '../e2e/delete-all.ts'
import { createLogicalCluster, idOf, installWithoutHost, type Installation } from '../e2e/installation.ts'
import { importInto, importKcp, kcpImage } from '../e2e/kcp-image.ts'
import { endLabAfterAll, lab, type Lab } from '../e2e/lab.ts'
import { startLoad } from '../e2e/load.ts'
import { namespace, toolbox, webApplication } from '../e2e/manifests.ts'

const olderCommit = '3d1c1bc5'
const olderImage = 'kcp.test/kcp:older'
const within = { deadlineMs: 120_000, intervalMs: 200 }

type Build = 'older' | 'newer'

endLabAfterAll()

describe('agents and an installation of different builds', function () {
  this.timeout(900_000)
  const stack = new AsyncDisposableStack()
  let clusters: Lab
  let installation: Installation
  let [alice, id, dir, older] = ['', '', '', '']

  before(async function () {
    await needsNodes(this)
    dir = await mkdtemp(join(tmpdir(), 'kcp-builds-'))
    stack.defer(() => rm(dir, { recursive: true, force: true }))
    older = process.env['KCP_TEST_OLDER'] ?? (await buildOlder(this))
    clusters = await lab()
    const { east } = clusters
    await Promise.all([importKcp(east), importInto(east, { image: olderImage, root: older })])
    const command = join(dir, 'kcp')
    await writeFile(command, `#!/bin/sh\nexec "$(cat ${dir}/root)/bin/kcp" "$@"\n`, { mode: 0o755 })
    await choose('older')
    installation = stack.use(await installWithoutHost(clusters, [], { command }))
    await installation.joinByAgent(east, { more: ['--image', olderImage] })
    await createLogicalCluster(installation, 'acme', 'alice')
    id = await idOf(installation, 'acme')
    alice = await installation.tenant('acme', 'alice')
    await asAlice(['apply', '-f', '-'], { input: namespace('shop', 'east') })
    await asAlice(['apply', '-f', '-'], { input: webApplication('shop') })
    await asAlice(['apply', '-f', '-'], { input: toolbox('shop') })
    for (const name of ['web', 'toolbox'])
      await asAlice(['rollout', 'status', `deployment/${name}`, '-n', 'shop', '--timeout=120s'])
  })
  after(async function () {
    this.timeout(180_000)
    await using _ = stack
    if (alice !== '') await deleteAll(installation.admin)
  })

  /** A checkout of the older commit, built. Skips where the history does not have it. */
  async function buildOlder(context: Mocha.Context): Promise<string> {
    const root = join(dir, 'older')
    const git = (...args: string[]): Promise<CommandResult> =>
      runCommand('git', ['-C', repositoryRoot, ...args], { expectCode: 'any' })
    const { code } = await git('worktree', 'add', '--detach', root, olderCommit)
    if (code !== 0) context.skip()
    stack.defer(() => git('worktree', 'remove', '--force', root).then(() => undefined))
    symlinkSync(join(repositoryRoot, 'node_modules'), join(root, 'node_modules'))
    await runCommand('npm', ['run', '--silent', 'build'], { cwd: root, timeoutMs: 300_000 })
    expect(existsSync(join(root, 'dist/src/cli/main.js'))).to.equal(true)
    return root
  }

  const asAlice = (args: string[], options: object = {}): Promise<CommandResult> => kubectl(alice, args, options)
  const inMember = (...args: string[]): Promise<CommandResult> => clusters.east.kubectl([...args, '-n', 'kcp-system'])
  const choose = (build: Build): Promise<void> =>
    writeFile(join(dir, 'root'), build === 'older' ? older : repositoryRoot)
  const memberPods = async (): Promise<string> => {
    const path = 'jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount}{"\\n"}{end}'
    return (await clusters.east.kubectl(['get', 'pods', '-n', `${id}-shop`, '-l', 'app=web', '-o', path])).stdout
  }
  const replaceAgents = async (build: Build): Promise<void> => {
    const image = build === 'older' ? olderImage : kcpImage
    await inMember('set', 'image', 'deployment/kcp-agent', `agent=${image}`)
    await inMember('rollout', 'status', 'deployment/kcp-agent', '--timeout=120s')
  }
  const replaceInstallation = async (build: Build): Promise<void> => {
    await choose(build)
    for (const process of installation.processes) {
      await process.stop()
      await process.start()
    }
  }
  let changes = 0
  /** Changes of tenants reach the member, and its status and logs come back. */
  const expectWork = async (): Promise<void> => {
    const logs = async (): Promise<boolean> =>
      (await asAlice(['logs', 'deployment/web', '-n', 'shop', '--tail=1'], { expectCode: 'any' })).code === 0
    await waitFor(logs, { what: 'the log of a pod', ...within })
    await asAlice(['set', 'env', 'deployment/toolbox', '-n', 'shop', `CHANGED=${++changes}`, '-c', 'tool'])
    await asAlice(['rollout', 'status', 'deployment/toolbox', '-n', 'shop', '--timeout=120s'])
    const unknown = ['exec', 'deployment/web', '-n', 'shop', '--', '/agnhost', 'no-such-command']
    expect((await asAlice(unknown, { expectCode: 1 })).stderr).to.include('unknown command')
  }
  const agentVersion = async (): Promise<string> => {
    const path = 'jsonpath={.status.agent.tunnel.agentVersion}/{.status.agent.tunnel.protocol}'
    return (await kubectl(installation.admin, ['get', 'mc/east', '-o', path])).stdout
  }

  const orders: readonly (readonly [string, readonly (readonly ['agents' | 'installation', Build])[]])[] = [
    [
      'agents first, then the installation',
      [
        ['agents', 'newer'],
        ['installation', 'newer'],
      ],
    ],
    [
      'agents back first, then the installation',
      [
        ['agents', 'older'],
        ['installation', 'older'],
      ],
    ],
    [
      'the installation first, then the agents',
      [
        ['installation', 'newer'],
        ['agents', 'newer'],
      ],
    ],
  ]
  for (const [title, steps] of orders)
    it(`work together while they are replaced, ${title}: no pod changes, and no request fails`, async () => {
      const { stdout: address } = await clusters.east.kubectl([
        'get',
        'service',
        'web',
        '-n',
        `${id}-shop`,
        '-o',
        'jsonpath={.spec.clusterIP}',
      ])
      const load = await startLoad(clusters.east, `http://${address}/hostname`, { perSecond: 20 })
      const before = await memberPods()
      for (const [what, build] of steps) {
        await (what === 'agents' ? replaceAgents(build) : replaceInstallation(build))
        await expectWork()
      }
      const { failed, errors, sent } = await load.stop()
      expect({ failed, errors }, `of ${sent}`).to.deep.equal({ failed: 0, errors: [] })
      expect(await memberPods()).to.equal(before)
      if (steps.at(-1)?.[1] === 'newer')
        await waitFor(async () => /^\d+\.\d+\.\d+\/1$/.test(await agentVersion()), { what: 'the version', ...within })
    })
})
