// Simulated members that are joined to kcp: the product's own ways to join, to copy, to show, to connect and to move.
import { expect } from 'chai'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, httpTransport, loadKubeconfig } from '#client/index.ts'
import { Network, startSimulatedMember, Traffic, type SimulatedMember } from '#simulation/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { runKcp, startKcp, waitFor } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from '../kcp-instance.ts'

const within = { deadlineMs: 60_000, intervalMs: 100 }

describe('simulated members of kcp', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  const network = new Network()
  let kcp: KcpInstance
  let acme: Tenant
  let traffic: Traffic

  const startMember = async (name: string, subnet: number): Promise<SimulatedMember> => {
    const dir = mkdtempSync(join(tmpdir(), 'kcp-simulated-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    const life = new AbortController()
    stack.defer(() => life.abort())
    const timing = { startMs: 50, pullMs: 50, stopMs: 300 }
    const nodes = { subnet, count: 1 }
    const member = await startSimulatedMember({
      name,
      dir,
      nodes,
      network,
      timing,
      log: silentLogger,
      signal: life.signal,
    })
    stack.use(member)
    const file = join(dir, 'kubeconfig')
    writeFileSync(file, member.kubeconfig)
    await runKcp(['member', 'join', name, '--kubeconfig', file, '--service-network', 'Flat', '--root-dir', kcp.rootDir])
    return member
  }
  const placedOn = async (): Promise<string> => {
    const path = 'jsonpath={.items[*].metadata.annotations.kcp\\.dev/member}'
    return [...new Set((await acme.kubectl(['get', 'pods', '-o', path])).stdout.split(' '))].sort().join()
  }
  const untilOn = (members: string): Promise<boolean> =>
    waitFor(async () => (await placedOn()) === members, { what: `all pods in ${members}`, ...within })

  before(async function () {
    this.timeout(180_000)
    kcp = stack.use(await startInstance())
    acme = await kcp.tenant('acme')
    for (const [i, name] of ['paris', 'oslo'].entries()) await startMember(name, 20 + i)
    await kcp.admin.kubectl(['wait', '--for=condition=Ready', 'mc/paris', 'mc/oslo', '--timeout=60s'])
    const transport = stack.use(httpTransport(await loadKubeconfig({ file: acme.kubeconfig })))
    const life = new AbortController()
    stack.defer(() => life.abort())
    const where = { namespace: 'default', service: 'frontend', portName: '' }
    traffic = new Traffic({
      client: createClient(transport),
      ...where,
      network,
      log: silentLogger,
      signal: life.signal,
    })
    void traffic.run().catch(() => undefined)
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  it('run what a tenant applies, and show it with its pods, logs, exec and metrics', async () => {
    const metadata = { name: 'quick' }
    await acme.kubectl(['apply', '-f', '-'], {
      input: { apiVersion: 'kcp.dev/v1alpha1', kind: 'Placement', metadata, spec: { move: { drainSeconds: 5 } } },
    })
    await acme.kubectl(['annotate', 'namespace', 'default', 'kcp.dev/clusters=paris'])
    for (const [name, image] of [
      ['backend', 'demo/backend:1'],
      ['frontend', 'demo/frontend:1'],
    ] as const) {
      await acme.kubectl(['create', 'deployment', name, `--image=${image}`, '--replicas=2', '--port=8080'])
      await acme.kubectl(['expose', 'deployment', name, '--port=80', '--target-port=8080'])
    }
    await acme.kubectl(['set', 'env', 'deployment/frontend', 'BACKEND_URL=http://backend'])
    for (const name of ['backend', 'frontend'])
      await acme.kubectl(['rollout', 'status', `deployment/${name}`, '--timeout=60s'])
    await untilOn('paris')
    await waitFor(() => traffic.report.sent > 20 && traffic.report.failing === 0, { what: 'traffic', ...within })
    expect((await acme.kubectl(['logs', 'deployment/frontend', '--tail=1'])).stdout).to.include('GET / 200 from')
    expect((await acme.kubectl(['exec', 'deployment/backend', '--', 'hostname'])).stdout).to.match(/^backend-/)
    const top = () => acme.kubectl(['top', 'pods', '--no-headers'], { expectCode: 'any' })
    await waitFor(async () => (await top()).stdout.includes('frontend-'), { what: 'metrics', ...within })
  })

  it('give up and take an application without a failed request, by annotation and by drain', async () => {
    const failedBefore = traffic.report.failed
    await acme.kubectl(['annotate', 'namespace', 'default', 'kcp.dev/clusters=oslo', '--overwrite'])
    await untilOn('oslo')
    await acme.kubectl(['annotate', 'namespace', 'default', 'kcp.dev/clusters-'])
    await runKcp(['drain', 'oslo', '--root-dir', kcp.rootDir])
    await untilOn('paris')
    await kcp.admin.kubectl(['wait', '--for=condition=Drained', 'mc/oslo', '--timeout=60s'])
    await runKcp(['drain', 'oslo', '--undo', '--root-dir', kcp.rootDir])
    const { failed, lastFailure, sent } = traffic.report
    expect([failed - failedBefore, lastFailure], `${sent} requests`).to.deep.equal([
      0,
      failedBefore === 0 ? '' : lastFailure,
    ])
  })

  it('refuse what does not fit in the words of a scheduler, which reach the tenant', async () => {
    const requests = { cpu: '3' }
    const pods = { replicas: 2, selector: { matchLabels: { app: 'big' } } }
    const container = { name: 'c', image: 'demo/big', resources: { requests } }
    const template = { metadata: { labels: { app: 'big' } }, spec: { containers: [container] } }
    const big = {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: 'big', annotations: { 'kcp.dev/clusters': 'paris' } },
      spec: { ...pods, template },
    }
    await acme.kubectl(['apply', '-f', '-'], { input: big })
    const placed = await waitFor(
      async () =>
        (await acme.kubectl(['get', 'rs', 'big', '-o', 'yaml'])).stdout.match(
          /InsufficientCapacity|Insufficient cpu/,
        )?.[0],
      { what: 'the reason', ...within },
    )
    expect(placed).to.be.oneOf(['InsufficientCapacity', 'Insufficient cpu'])
    await acme.kubectl(['delete', 'rs', 'big'])
  })

  it('begin and end with `kcp member simulate`, which leaves nothing behind', async () => {
    // A folder of its own, because other tests have members, too.
    const folder = mkdtempSync(join(tmpdir(), 'kcp-simulated-'))
    stack.defer(() => rmSync(folder, { recursive: true, force: true }))
    const args = ['member', 'simulate', 'tokyo', '--nodes', '3', '--region', 'asia', '--root-dir', kcp.rootDir]
    const found = async (): Promise<string> =>
      (
        await kcp.admin.kubectl(
          ['get', 'mc', 'tokyo', '-o', 'jsonpath={.status.nodes.ready} {.metadata.labels.region}'],
          { expectCode: 'any' },
        )
      ).stdout
    const running = await startKcp(args, {
      env: { TMPDIR: folder },
      ready: async () => (await found()) === '3 asia',
      readyDeadlineMs: 60_000,
      graceMs: 30_000,
    })
    await kcp.admin.kubectl(['annotate', 'mc', 'tokyo', 'simulation.kcp.dev/power=off'])
    await kcp.admin.kubectl(['wait', '--for=condition=Reachable=False', 'mc/tokyo', '--timeout=60s'])
    await kcp.admin.kubectl(['annotate', 'mc', 'tokyo', 'simulation.kcp.dev/power-'])
    await kcp.admin.kubectl(['wait', '--for=condition=Ready', 'mc/tokyo', '--timeout=60s'])
    await running.stop()
    const { stdout } = await kcp.admin.kubectl(['get', 'mc', '-o', 'name'])
    expect(stdout).to.not.include('tokyo')
    expect(readdirSync(folder)).to.deep.equal([])
  })

  it('are refused with wrong flags, with a name that is taken, and without an installation', async () => {
    const simulate = async (...args: string[]): Promise<string> => {
      const { code, stderr } = await runKcp(['member', 'simulate', ...args], { expectCode: 'any' })
      return `${code} ${stderr.trim().split('\n')[0] ?? ''}`
    }
    const root = ['--root-dir', kcp.rootDir]
    expect(await simulate('rome')).to.match(/^2 kcp: which installation\? give --root-dir/)
    expect(await simulate('rome', '--root-dir', '/nonexistent')).to.match(
      /^1 kcp: "\/nonexistent\/admin.kubeconfig" is missing/,
    )
    expect(await simulate('Rome', ...root)).to.match(/^2 kcp: "Rome" is not a valid name of a simulated member/)
    expect(await simulate('rome', '--nodes', '201', ...root)).to.match(
      /^2 error: option '--nodes <count>' argument '201' is invalid/,
    )
    expect(await simulate('rome', '--node-cpu', 'many', ...root)).to.match(
      /'--node-cpu <quantity>' argument 'many' is invalid. it must be a quantity/,
    )
    expect(await simulate('rome', '--service-network', 'Gateway', ...root)).to.match(/Allowed choices are None, Flat/)
    expect(await simulate('rome', '--port', String(kcp.port), ...root)).to.match(
      /^1 kcp: cannot listen on 127.0.0.1:\d+: choose another port/,
    )
    expect(await simulate('paris', ...root)).to.match(
      /^1 kcp: .*another cluster is registered under this name.*kubectl delete membercluster paris/,
    )
  })

  it('let no tenant turn them off', async () => {
    const refused = await acme.kubectl(['annotate', 'mc', 'paris', 'simulation.kcp.dev/power=off'], {
      expectCode: 'any',
    })
    expect([refused.code, refused.stderr.includes("doesn't have a resource type")]).to.deep.equal([1, true])
    const path = '/clusters/root/apis/kcp.dev/v1alpha1/memberclusters/paris'
    const body = { metadata: { annotations: { 'simulation.kcp.dev/power': 'off' } } }
    const headers = ['content-type', 'application/merge-patch+json']
    expect((await acme.http.request('PATCH', path, { body, headers })).status).to.be.oneOf([401, 403])
    expect(existsSync(join(kcp.rootDir, 'simulated'))).to.equal(false)
  })
})
