// The Helm chart on a real host with a real node, with the image that `make image` builds.
import { expect } from 'chai'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kubectl, needsNodes, waitFor } from '#test/support/index.ts'
import { chartImage as image, startChartHost, type ChartInstallation } from './chart-installation.ts'

const namespace = 'kcp-system'

describe('the Helm chart', function () {
  this.timeout(180_000)
  const stack = new AsyncDisposableStack()
  let chart: ChartInstallation

  before(async function () {
    this.timeout(10 * 60_000)
    await needsNodes(this)
    chart = stack.use(await startChartHost())
  })
  after(() => stack.disposeAsync())

  it('serves the first request of a tenant', async () => {
    const startedAt = performance.now()
    await chart.install('install')
    await chart.createLogicalCluster('acme', 'alice')
    await chart.createLogicalCluster('bobs', 'bob')
    const alice = await chart.tenant('acme', 'alice')
    await kubectl(alice, ['create', 'namespace', 'shop'])
    await kubectl(alice, ['create', 'configmap', 'kept', '-n', 'shop', '--from-literal=a=b'])
    console.log(
      `      helm install to the first tenant's objects: ${Math.round((performance.now() - startedAt) / 1000)} s`,
    )
  })

  it('runs our image, not as root, with a read-only root file system', async () => {
    const { stdout } = await chart.host.kubectl(['get', 'pods', '-n', namespace, '-o', 'json'])
    const { items } = JSON.parse(stdout) as { items: { spec: { containers: { image: string }[] } }[] }
    expect(items.length).to.be.at.least(3)
    for (const { spec } of items)
      expect(spec.containers.map((container) => container.image)).to.deep.equal([`${image.repository}:${image.tag}`])
    const script = `
      try { fs.writeFileSync('/app/x', ''); console.log('written') } catch (error) { console.log(error.code) }
      console.log(process.getuid())`
    const exec = ['exec', '-n', namespace, 'deployment/kcp-apiserver', '--', '/usr/local/bin/node', '-e', script]
    expect((await chart.host.kubectl(exec)).stdout.trim().split('\n')).to.deep.equal(['EROFS', '65532'])
  })

  it('finds nothing wrong in `helm test`', async () => {
    await chart.helm(['test', 'kcp', '--timeout', '60s'])
  })

  it('keeps tenants apart', async () => {
    const get = ['get', 'configmaps', '-A', '-o', 'name']
    // Both kubeconfigs of bob are one file: one after the other.
    expect((await kubectl(await chart.tenant('bobs', 'bob'), get)).stdout).not.to.contain('kept')
    const others = await chart.tenant('acme', 'bob', { admitted: false })
    const { stderr, code } = await kubectl(others, get, { expectCode: 'any' })
    expect(code).to.equal(1)
    expect(stderr).to.match(/forbidden/i)
  })

  it('keeps what tenants stored over an upgrade', async () => {
    await chart.install('upgrade', 'apiserver.logLevel=debug')
    await untilKept()
  })

  it('takes its APIService along when it is uninstalled, and finds the data when it is installed again', async () => {
    await chart.helm(['uninstall', 'kcp', '--wait'])
    const { code } = await chart.host.kubectl(['get', 'apiservice', 'v1alpha1.virtual.kcp.dev'], { expectCode: 'any' })
    expect(code).to.equal(1)
    await chart.host.kubectl(['create', 'namespace', 'passing'])
    await chart.host.kubectl(['delete', 'namespace', 'passing', '--timeout=30s'])
    await chart.install('install')
    await untilKept()
  })

  it('finds nothing wrong in `helm test` with embedded storage', async function () {
    // A volume of kind is a folder in its container.
    if (process.env.KCP_TEST_CLUSTERS === 'kind') this.skip()
    const folder = await mkdtemp(join(tmpdir(), 'kcp-chart-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    // The pod runs as another user than root.
    await chmod(folder, 0o777)
    const spec = {
      capacity: { storage: '10Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      hostPath: { path: folder, type: 'Directory' },
    }
    const volume = { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'kcp-data' }, spec }
    await chart.helm(['uninstall', 'kcp', '--wait'])
    await chart.host.kubectl(['create', '-f', '-'], { input: volume })
    await chart.install('install', 'storage.mode=embedded')
    await chart.helm(['test', 'kcp', '--timeout', '60s'])
    const diagnose = [
      'exec',
      '-n',
      namespace,
      'kcp-0',
      '--',
      '/usr/local/bin/node',
      '/app/dist/src/cli/main.js',
      'diagnose',
    ]
    // It exits with 1 if anything is wrong.
    await chart.host.kubectl([...diagnose, '--root-dir', '/data/kcp'])
  })

  async function untilKept(): Promise<void> {
    const alice = await chart.tenant('acme', 'alice')
    const get = ['get', 'configmap', 'kept', '-n', 'shop', '-o', 'jsonpath={.data.a}']
    await waitFor(async () => (await kubectl(alice, get, { expectCode: 'any' })).stdout === 'b', {
      what: "the tenant's ConfigMap to be there",
      deadlineMs: 60_000,
    })
  }
})
