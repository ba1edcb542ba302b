// Connections to a pod of a member that begin at a replica of `kcp apiserver` which does not own the logical cluster:
// logs, exec, attach and port-forward pass through the owner, over WebSocket and SPDY.
import { expect } from 'chai'
import { startReplicas, type ReplicaSet, type RunningReplica } from '#test/integration/replicas.ts'
import {
  agnhostImage,
  ensurePrograms,
  kubectl,
  kubectlEnvironment,
  needsNodes,
  runCommand,
  runKcp,
  startCluster,
  startProcess,
  waitFor,
  type CommandResult,
  type ManagedProcess,
} from '#test/support/index.ts'

const within = { deadlineMs: 60_000, intervalMs: 100 }

describe('kubectl on pods, through a replica that does not own the logical cluster', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let set: ReplicaSet
  let program: string
  /** A kubeconfig of the tenant, whose requests begin at the other replica. */
  let tenant: string
  let owner: RunningReplica
  let started = 0

  before(async function () {
    this.timeout(300_000)
    await needsNodes(this)
    program = (await ensurePrograms(['kubectl'])).kubectl
    // Other names than in the lab, which other specs leave running.
    set = stack.use(await startReplicas(2, { name: 'replicated' }))
    const east = stack.use(await startCluster({ name: 'behind', nodes: 1 }))
    await runKcp([
      ...['member', 'join', 'east', '--kubeconfig', east.kubeconfig],
      ...['--service-network', 'Flat', '--host-kubeconfig', set.host.kubeconfig],
    ])
    await set.create('acme')
    await waitFor(
      async () =>
        (await set.leases()).every(({ claims }) => claims.size > 0) &&
        (await set.ownerOf('acme').catch(() => undefined)),
      { what: 'both replicas to own some logical clusters', ...within },
    )
    owner = await set.ownerOf('acme')
    const other = set.replicas.find((replica) => replica !== owner)
    if (other === undefined) throw new Error('there is one replica only')
    tenant = await set.kubeconfig('acme', other)
    await kubectl(tenant, ['run', 'web', `--image=${agnhostImage}`, '--', 'netexec', '--http-port=8080'])
    await kubectl(tenant, ['wait', '--for=condition=Ready', 'pod/web', '--timeout=90s'])
  })
  after(async function () {
    this.timeout(120_000)
    await stack.disposeAsync()
  })

  const environment = (webSocket: string): Record<string, string | undefined> => ({
    ...kubectlEnvironment(tenant),
    KUBECTL_REMOTE_COMMAND_WEBSOCKETS: webSocket,
    KUBECTL_PORT_FORWARD_WEBSOCKETS: webSocket,
  })
  const execute = (webSocket: string, command: readonly string[]): Promise<CommandResult> =>
    runCommand(program, ['--kubeconfig', tenant, 'exec', 'web', '--', ...command], {
      ...{ env: environment(webSocket), timeoutMs: 30_000, expectCode: 'any' },
    })
  const stay = (webSocket: string, args: readonly string[]): Promise<ManagedProcess> =>
    startProcess({
      name: `kubectl-hop-${++started}`,
      command: program,
      args: ['--kubeconfig', tenant, ...args],
      env: environment(webSocket),
    })
  /** A port-forward to the pod; kubectl chooses the port. */
  const forward = async (webSocket: string): Promise<ManagedProcess & { url: string }> => {
    const process = await stay(webSocket, ['port-forward', 'pod/web', ':8080'])
    const found = (): string | undefined => /127\.0\.0\.1:(\d+)/.exec(process.log())?.[1]
    const port = await waitFor(found, { what: 'the port to be forwarded', ...within })
    return Object.assign(process, { url: `http://127.0.0.1:${port}` })
  }

  it('prints logs', async () => {
    expect((await kubectl(tenant, ['logs', 'web'])).stdout).to.contain('Started HTTP server')
  })

  for (const { title, webSocket } of [
    { title: 'WebSocket', webSocket: 'true' },
    { title: 'SPDY', webSocket: 'false' },
  ]) {
    it(`executes a command, and exits with its code, over ${title}`, async () => {
      expect(await execute(webSocket, ['/agnhost', '--help'])).to.have.property('code', 0)
      const failed = await execute(webSocket, ['/agnhost', 'no-such-command'])
      expect(failed.stderr).to.contain('terminated with exit code 1')
      expect(failed.code).to.equal(1)
    })
    it(`forwards many connections, and attaches to the process, over ${title}`, async () => {
      await using attached = await stay(webSocket, ['attach', 'web', '--quiet'])
      await using forwarded = await forward(webSocket)
      const ask = async (text: string): Promise<string> => (await fetch(`${forwarded.url}/echo?msg=${text}`)).text()
      const texts = Array.from({ length: 20 }, (_, n) => `${n}`)
      expect(await Promise.all(texts.map(ask))).to.deep.equal(texts)
      await waitFor(
        async () => {
          await ask(title)
          return attached.log().includes(`GET /echo?msg=${title}`)
        },
        { what: 'the attached output', ...within },
      )
    })
  }
})
