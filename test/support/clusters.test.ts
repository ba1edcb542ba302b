import { spawn } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import { type AddressInfo } from 'node:net'
import { expect } from 'chai'
import { type Cluster, startCluster } from './cluster.ts'
import { kubectl } from './kubectl.ts'
import { leftovers } from './leftovers.ts'
import { describeInLongRun } from './long-run.ts'
import { needsNodes } from './needs.ts'
import { agnhostImage } from './node-images.ts'
import { clusterPrograms, ensurePrograms } from './programs.ts'
import { acquireRun, sweepRuns } from './run.ts'
import { waitFor } from './wait-for.ts'

/** A pod that answers HTTP on 8080, and a Service in front of it. */
function web(name: string): object {
  const metadata = { name, labels: { app: name } }
  const container = { name: 'web', image: agnhostImage, args: ['netexec', '--http-port=8080'] }
  const spec = { terminationGracePeriodSeconds: 0, containers: [container] }
  const service = { selector: { app: name }, ports: [{ port: 80, targetPort: 8080 }] }
  return {
    apiVersion: 'v1',
    kind: 'List',
    items: [
      { apiVersion: 'v1', kind: 'Pod', metadata, spec },
      { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: service },
    ],
  }
}

async function startWeb(cluster: Cluster, name: string): Promise<string> {
  await cluster.kubectl(['apply', '-f', '-'], { input: web(name) })
  await cluster.kubectl(['wait', '--for=condition=Ready', `pod/${name}`, '--timeout=60s'])
  return (await cluster.kubectl(['get', 'pod', name, '-o', 'jsonpath={.status.podIP}'])).stdout
}

/** The output of a program in the pod, once it succeeds. */
async function inPod(cluster: Cluster, pod: string, ...command: string[]): Promise<string> {
  const attempt = (): Promise<string> =>
    cluster.kubectl(['exec', pod, '--', ...command]).then(({ stdout }) => stdout.trim())
  return waitFor(attempt, { what: `"${command.join(' ')}" in ${cluster.name}`, deadlineMs: 20_000 })
}

const fetchFrom = (cluster: Cluster, pod: string, target: string): Promise<string> =>
  inPod(cluster, pod, '/agnhost', 'connect', target, '--timeout=2s').then(() => `${target} answers`)

describe('a control plane', function () {
  this.timeout(60_000)
  before(async function () {
    this.timeout(60 * 60_000)
    await ensurePrograms(clusterPrograms)
  })

  it('serves users of its authority, survives kill -9 of its parts, and leaves nothing behind', async () => {
    const cluster = await startCluster({ name: 'host', controllerManager: true })
    const alice = await cluster.kubeconfigFor({ commonName: 'alice', organizations: ['team-a'] })
    const whoami = await cluster.kubectl(['--kubeconfig', alice, 'auth', 'whoami', '-o', 'json'])
    expect(JSON.parse(whoami.stdout)).to.have.nested.property('status.userInfo.username', 'alice')
    await cluster.kubectl(['create', 'configmap', 'kept'])
    for (const name of ['etcd', 'kube-apiserver']) {
      const part = cluster.processes.get(name)!
      await part.kill()
      await part.start()
    }
    await cluster.kubectl(['get', 'configmap', 'kept'])
    expect(leftovers(cluster.run.id)).to.not.deep.equal([])
    await cluster.stop()
    await cluster.stop()
    expect(leftovers(cluster.run.id)).to.deep.equal([])
  })

  it('leaves nothing behind when its start is aborted', async () => {
    const { run, release } = await acquireRun()
    const starting = startCluster({ name: 'host', signal: AbortSignal.timeout(700) })
    expect(String(await starting.catch((error: unknown) => error))).to.contain('TimeoutError')
    expect(run.record.resources.filter(({ scope }) => scope === 'host')).to.deep.equal([])
    await release()
    expect(leftovers(run.id)).to.deep.equal([])
  })
})

describe('a cluster with a node', function () {
  this.timeout(120_000)
  let cluster: Cluster
  let podIp = ''
  before(async function () {
    await needsNodes(this)
    this.timeout(60 * 60_000)
    await ensurePrograms(clusterPrograms)
    cluster = await startCluster({ name: 'east', nodes: 1 })
    podIp = await startWeb(cluster, 'web')
    await startWeb(cluster, 'client')
  })
  after(async () => {
    await cluster.stop()
    expect(leftovers(cluster.run.id)).to.deep.equal([])
  })

  it('is found completely by the search for leftovers', () => {
    const found = leftovers(cluster.run.id).join('\n')
    for (const part of [
      'process',
      'mount',
      '/run/netns/',
      '/sys/class/net/',
      '/sys/fs/cgroup/',
      '/var/lib/cni/results/',
    ]) {
      expect(found).to.contain(part)
    }
  })

  it('runs pods and returns their logs', async () => {
    const { stdout } = await cluster.kubectl(['logs', 'web'])
    expect(stdout).to.contain('Started HTTP server on port 8080')
  })

  it('runs commands in pods', async () => {
    expect(await inPod(cluster, 'web', '/agnhost', '--version')).to.contain('app version')
  })

  it('resolves names of Services', async () => {
    const answer = await inPod(
      cluster,
      'client',
      '/agnhost',
      'connect',
      'web.default.svc.cluster.local:80',
      '--timeout=2s',
    )
    expect(answer).to.equal('')
  })

  it('reaches a pod through its Service, from another pod and from itself', async () => {
    expect(await fetchFrom(cluster, 'client', 'web:80')).to.contain('answers')
    // Not `web`: that is the pod's own host name, which resolves to the pod itself without the Service.
    expect(await fetchFrom(cluster, 'web', 'web.default:80')).to.contain('answers')
  })

  it('lets this machine and pods reach each other by address', async () => {
    expect(await (await fetch(`http://${podIp}:8080/hostname`)).text()).to.equal('web')
    const server = await listen(cluster.hostAddress)
    expect(await fetchFrom(cluster, 'web', `${cluster.hostAddress}:${port(server)}`)).to.contain('answers')
    server.close()
  })
})

// The end-to-end tests show that the clusters of one run reach each other, and any run sweeps after those before.
describeInLongRun('a cluster whose test process is killed', function () {
  this.timeout(120_000)
  before(async function () {
    await needsNodes(this)
    this.timeout(60 * 60_000)
    await ensurePrograms(clusterPrograms)
  })

  it('is removed with its running pods by the next run', async () => {
    const script = `
      const { startCluster } = await import('./cluster.ts')
      const cluster = await startCluster({ name: 'east', nodes: 1 })
      process.stdout.write(JSON.stringify({ id: cluster.run.id, kubeconfig: cluster.kubeconfig }))
      setInterval(() => undefined, 1000)`
    const args = ['--input-type=module', '-e', script]
    const child = spawn(process.execPath, args, { cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'inherit'] })
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    const { id, kubeconfig } = JSON.parse(line.toString()) as { id: string; kubeconfig: string }
    await kubectl(kubeconfig, ['apply', '-f', '-'], { input: web('web') })
    await kubectl(kubeconfig, ['wait', '--for=condition=Ready', 'pod/web', '--timeout=60s'])
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(leftovers(id)).to.not.deep.equal([])
    expect(await sweepRuns({ log: () => undefined })).to.include(id)
    expect(leftovers(id)).to.deep.equal([])
  })
})

describeInLongRun('clusters of one run', function () {
  this.timeout(180_000)
  const clusters: Cluster[] = []
  before(async function () {
    await needsNodes(this)
    this.timeout(60 * 60_000)
    await ensurePrograms(clusterPrograms)
    const started = await Promise.all([
      startCluster({ name: 'host' }),
      startCluster({ name: 'east', nodes: 1 }),
      startCluster({ name: 'west', nodes: 1 }),
    ])
    clusters.push(...started)
  })
  after(async () => {
    await Promise.all(clusters.map((cluster) => cluster.stop()))
    for (const { run } of clusters) expect(leftovers(run.id)).to.deep.equal([])
  })

  it('reach each other’s pods, the host cluster’s API and this machine', async () => {
    const [host, east, west] = clusters as [Cluster, Cluster, Cluster]
    const [eastIp, westIp] = await Promise.all([startWeb(east, 'web'), startWeb(west, 'web')])
    expect(await fetchFrom(east, 'web', `${westIp}:8080`)).to.contain('answers')
    expect(await fetchFrom(west, 'web', `${eastIp}:8080`)).to.contain('answers')
    expect(await fetchFrom(west, 'web', new URL(host.server).host)).to.contain('answers')
    const server = await listen(east.hostAddress)
    expect(await fetchFrom(west, 'web', `${east.hostAddress}:${port(server)}`)).to.contain('answers')
    server.close()
  })
})

async function listen(address: string): Promise<Server> {
  const server = createServer((_, response) => response.end('hello')).listen(0, address)
  await once(server, 'listening')
  return server
}

const port = (server: Server): number => (server.address() as AddressInfo).port
