// A member in pull mode beside one in push mode: its agent dials out through an HTTP proxy, and everything that users do
// in a member works.
import { expect } from 'chai'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  ensurePrograms,
  isLongRun,
  kubectl,
  kubectlEnvironment,
  needsNodes,
  runCommand,
  startProcess,
  waitFor,
  type Cluster,
  type CommandResult,
} from '#test/support/index.ts'
import { startHttpProxy, type HttpProxy } from '#test/support/http-proxy.ts'
import { connectionsTo } from '#test/support/open-connections.ts'
import { deleteAll } from './delete-all.ts'
import { createLogicalCluster, idOf, installWithoutHost, type Installation } from './installation.ts'
import { endLabAfterAll, lab, type Lab } from './lab.ts'
import { startLoad } from './load.ts'
import { apiClient, namespace, quickMoves, toolbox, webApplication } from './manifests.ts'

const within = { deadlineMs: 60_000, intervalMs: 100 }
/** How long the tunnel is cut, milliseconds: longer than the 40 s after which a member is lost in a long run. */
const cutMs = isLongRun ? 10 * 60_000 : 5000

endLabAfterAll()

describe('a member in pull mode', function () {
  this.timeout(120_000 + cutMs)
  const stack = new AsyncDisposableStack()
  let clusters: Lab
  let installation: Installation
  let proxy: HttpProxy
  let program: string
  let [alice, id] = ['', '']

  before(async function () {
    this.timeout(300_000)
    await needsNodes(this)
    clusters = await lab()
    program = (await ensurePrograms(['kubectl'])).kubectl
    installation = stack.use(await installWithoutHost(clusters))
    await installation.join(clusters.west)
    const { hostAddress: host } = clusters.east
    // Pings keep a session open, at half of this.
    proxy = stack.use(await startHttpProxy({ host, idleMs: 30_000 }))
    await installation.joinByAgent(clusters.east, { httpProxy: `http://${host}:${proxy.port}` })
    await createLogicalCluster(installation, 'acme', 'alice')
    id = await idOf(installation, 'acme')
    alice = await installation.tenant('acme', 'alice')
    await asAlice(['apply', '-f', '-'], { input: quickMoves })
    await asAlice(['apply', '-f', '-'], { input: namespace('shop', 'east') })
    await asAlice(['apply', '-f', '-'], { input: webApplication('shop') })
    await asAlice(['apply', '-f', '-'], { input: toolbox('shop') })
    for (const name of ['web', 'toolbox'])
      await asAlice(['rollout', 'status', `deployment/${name}`, '-n', 'shop', '--timeout=90s'])
  })
  after(async function () {
    this.timeout(180_000)
    await using _ = stack
    if (alice !== '') await deleteAll(installation.admin)
  })

  const asAlice = (args: string[], options: object = {}): Promise<CommandResult> => kubectl(alice, args, options)
  const podIn = async (app: string): Promise<string> =>
    (await asAlice(['get', 'pods', '-n', 'shop', '-l', `app=${app}`, '-o', 'jsonpath={.items[0].metadata.name}']))
      .stdout
  /** The pods of the web application with their restarts, as they are in the member. */
  const memberPods = async (): Promise<string> => {
    const path = 'jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount}{"\\n"}{end}'
    return (await clusters.east.kubectl(['get', 'pods', '-n', `${id}-shop`, '-l', 'app=web', '-o', path])).stdout
  }
  const agents = (...args: string[]): Promise<CommandResult> => clusters.east.kubectl([...args, '-n', 'kcp-system'])
  /** Also waits for an installation that has just been started. */
  const untilReady = (): Promise<unknown> => {
    const path = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
    const ready = async (): Promise<boolean> =>
      (await kubectl(installation.admin, ['get', 'mc/east', '-o', path], { expectCode: 'any' })).stdout === 'True'
    return waitFor(ready, { what: 'the member to be ready', ...within })
  }
  /** Until a log comes through the tunnel. */
  const untilConnected = async (): Promise<void> => {
    const answers = async (): Promise<boolean> =>
      (await asAlice(['logs', 'deployment/web', '-n', 'shop', '--tail=1'], { expectCode: 'any' })).code === 0
    await waitFor(answers, { what: 'the log of a pod', ...within })
  }
  /** Number of connections of our processes to the API server of a member. */
  const connectionsOf = ({ server }: Cluster): number => {
    const { hostname, port } = new URL(server)
    return installation.processes.reduce((sum, { pid }) => sum + connectionsTo(pid, hostname, Number(port)), 0)
  }
  const addressOfWeb = async (): Promise<string> => {
    const args = ['get', 'service', 'web', '-n', `${id}-shop`, '-o', 'jsonpath={.spec.clusterIP}']
    return `http://${(await clusters.east.kubectl(args)).stdout}/hostname`
  }

  it('is reached without a credential of its cluster, and without a connection to it', async () => {
    const { stdout } = await kubectl(installation.admin, ['get', 'secrets', '-n', 'kcp-system', '-o', 'name'])
    expect(stdout).to.include('member-west').and.not.include('member-east')
    expect(connectionsOf(clusters.west)).to.be.greaterThan(0)
    expect(connectionsOf(clusters.east)).to.equal(0)
    expect([...proxy.seen]).to.have.length(1)
  })

  for (const webSocket of ['true', 'false'])
    it(`serves exec, cp, port-forward and attach, ${webSocket === 'true' ? 'over WebSocket' : 'over SPDY'}`, async () => {
      const env = {
        ...kubectlEnvironment(alice),
        KUBECTL_REMOTE_COMMAND_WEBSOCKETS: webSocket,
        KUBECTL_PORT_FORWARD_WEBSOCKETS: webSocket,
      }
      const run = (args: string[], options: object = {}): Promise<CommandResult> =>
        runCommand(program, ['--kubeconfig', alice, '-n', 'shop', ...args], { env, timeoutMs: 30_000, ...options })
      const failed = await run(['exec', 'deployment/web', '--', '/agnhost', 'no-such-command'], { expectCode: 'any' })
      expect(failed.code).to.equal(1)
      const folder = await mkdtemp(join(tmpdir(), 'kcp-pull-'))
      stack.defer(() => rm(folder, { recursive: true, force: true }))
      const bytes = randomBytes(3 << 20)
      await writeFile(join(folder, 'sent'), bytes)
      const pod = await podIn('toolbox')
      await run(['cp', join(folder, 'sent'), `${pod}:/tmp/kept`, '-c', 'tool'])
      await run(['cp', `${pod}:/tmp/kept`, join(folder, 'received'), '-c', 'tool'])
      expect(bytes.equals(await readFile(join(folder, 'received')))).to.equal(true)
      await using forwarded = await startProcess({
        name: `kubectl-pull-${webSocket}`,
        command: program,
        args: ['--kubeconfig', alice, '-n', 'shop', 'port-forward', 'deployment/web', ':8080'],
        env,
      })
      const port = await waitFor(() => /127\.0\.0\.1:(\d+)/.exec(forwarded.log())?.[1], { what: 'the port', ...within })
      const texts = Array.from({ length: 20 }, (_, n) => `${n}`)
      const ask = async (text: string): Promise<string> =>
        (await fetch(`http://127.0.0.1:${port}/echo?msg=${text}`)).text()
      expect(await Promise.all(texts.map(ask))).to.deep.equal(texts)
    })

  it('prints logs, and follows them', async () => {
    expect((await asAlice(['logs', 'deployment/web', '-n', 'shop'])).stdout).to.include('Started HTTP server')
  })

  it('lets a pod reach its own API, with in-cluster configuration alone', async () => {
    await asAlice(['apply', '-f', '-'], { input: apiClient('shop') })
    await asAlice(['rollout', 'status', 'deployment/asker', '-n', 'shop', '--timeout=60s'])
    const seen = async (): Promise<boolean> =>
      (await asAlice(['logs', 'deployment/asker', '-n', 'shop'])).stdout.includes('configmap/web')
    await waitFor(seen, { what: 'the ConfigMap in the log of the pod', ...within })
    const { stdout } = await clusters.east.kubectl(['get', 'pods', '-n', `${id}-shop`, '-l', 'app=asker', '-o', 'json'])
    expect(stdout).to.include('kubernetes.default.svc')
  })

  it('changes nothing in its cluster while its tunnel is cut, and catches up afterwards', async () => {
    const load = await startLoad(clusters.east, await addressOfWeb(), { perSecond: 20 })
    const before = await memberPods()
    await agents('scale', 'deployment/kcp-agent', '--replicas=0')
    await new Promise((resolve) => setTimeout(resolve, cutMs))
    await asAlice(['set', 'env', 'deployment/toolbox', '-n', 'shop', 'CHANGED=meanwhile', '-c', 'tool'])
    expect(await memberPods()).to.equal(before)
    await agents('scale', 'deployment/kcp-agent', '--replicas=2')
    await untilConnected()
    await asAlice(['rollout', 'status', 'deployment/toolbox', '-n', 'shop', '--timeout=60s'])
    const { failed, errors, sent } = await load.stop()
    expect({ failed, errors }, `of ${sent}`).to.deep.equal({ failed: 0, errors: [] })
    expect(await memberPods()).to.equal(before)
  })

  it('goes on when its agents are killed, and when the installation is', async () => {
    const before = await memberPods()
    await agents('delete', 'pod', '-l', 'app.kubernetes.io/name=kcp-agent', '--force', '--grace-period=0')
    await untilConnected()
    for (const process of installation.processes) {
      await process.kill()
      await process.start()
    }
    await untilConnected()
    await untilReady()
    expect(await memberPods()).to.equal(before)
  })

  it('takes and gives away workloads, and a member becomes one, without a failed request', async () => {
    const load = await startLoad(clusters.east, await addressOfWeb(), { perSecond: 50 })
    const untilOn = async (member: string): Promise<void> => {
      await asAlice(['annotate', 'deployment/web', '-n', 'shop', `kcp.dev/clusters=${member}`, '--overwrite'])
      const path = 'jsonpath={.items[*].metadata.annotations.kcp\\.dev/member}'
      const where = async (): Promise<string> =>
        (await asAlice(['get', 'pods', '-n', 'shop', '-l', 'app=web', '-o', path])).stdout
      await waitFor(async () => (await where()) === `${member} ${member}`, { what: `all in ${member}`, ...within })
    }
    await untilOn('west')
    await installation.joinByAgent(clusters.west)
    await waitFor(() => connectionsOf(clusters.west) === 0, { what: 'the connections to west to end', ...within })
    await asAlice(['rollout', 'status', 'deployment/web', '-n', 'shop', '--timeout=90s'])
    await untilOn('east')
    const { failed, errors, sent } = await load.stop()
    expect({ failed, errors }, `of ${sent}`).to.deep.equal({ failed: 0, errors: [] })
  })
})
