// The Helm chart on a real host with a real node, with the image that `make image` builds.
import { expect } from 'chai'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  cacheDir,
  ensurePrograms,
  kubectl,
  needsNodes,
  repositoryRoot,
  runCommand,
  startCluster,
  waitFor,
  type Cluster,
} from '../support/index.ts'

const namespace = 'kcp-system'
const image = { repository: 'kcp.test/kcp', tag: 'e2e' }

describe('the Helm chart', function () {
  this.timeout(180_000)
  const stack = new AsyncDisposableStack()
  let host: Cluster
  let helm: string

  before(async function () {
    this.timeout(10 * 60_000)
    await needsNodes(this)
    expect(existsSync(join(repositoryRoot, 'dist/src/cli/main.js')), "the image needs 'make build'").to.equal(true)
    ;({ helm } = await ensurePrograms(['helm']))
    const archive = join(cacheDir(), 'images', `kcp-${process.pid}.tar`)
    stack.defer(() => void runCommand('rm', ['-f', archive]))
    const name = `${image.repository}:${image.tag}`
    const [started] = await Promise.all([
      startCluster({ name: 'charted', nodes: 1 }),
      runCommand(process.execPath, ['scripts/image.ts', '--name', name, '--out', archive], { cwd: repositoryRoot }),
    ])
    host = stack.use(started)
    await host.node?.importImages(archive)
  })
  after(() => stack.disposeAsync())

  const install = (verb: 'install' | 'upgrade', ...settings: string[]): Promise<unknown> =>
    helmRun([
      ...[verb, 'kcp', join(repositoryRoot, 'charts/kcp'), '--wait', '--timeout', '120s'],
      ...[
        `image.repository=${image.repository}`,
        `image.tag=${image.tag}`,
        `hostURL=${host.server}`,
        ...settings,
      ].flatMap((setting) => ['--set', setting]),
    ])
  const helmRun = (args: string[]): Promise<unknown> => runCommand(helm, args, { env: { KUBECONFIG: host.kubeconfig } })

  it('serves the first request of a tenant', async () => {
    const startedAt = performance.now()
    await install('install')
    await createLogicalCluster('acme', 'alice')
    await createLogicalCluster('bobs', 'bob')
    const alice = await tenant('acme', 'alice')
    await kubectl(alice, ['create', 'namespace', 'shop'])
    await kubectl(alice, ['create', 'configmap', 'kept', '-n', 'shop', '--from-literal=a=b'])
    console.log(
      `      helm install to the first tenant's objects: ${Math.round((performance.now() - startedAt) / 1000)} s`,
    )
  })

  it('runs our image, not as root, with a read-only root file system', async () => {
    const { stdout } = await host.kubectl(['get', 'pods', '-n', namespace, '-o', 'json'])
    const { items } = JSON.parse(stdout) as { items: { spec: { containers: { image: string }[] } }[] }
    expect(items.length).to.be.at.least(3)
    for (const { spec } of items)
      expect(spec.containers.map((container) => container.image)).to.deep.equal([`${image.repository}:${image.tag}`])
    const script = `
      try { fs.writeFileSync('/app/x', ''); console.log('written') } catch (error) { console.log(error.code) }
      console.log(process.getuid())`
    const exec = ['exec', '-n', namespace, 'deployment/kcp-apiserver', '--', '/usr/local/bin/node', '-e', script]
    expect((await host.kubectl(exec)).stdout.trim().split('\n')).to.deep.equal(['EROFS', '65532'])
  })

  it('finds nothing wrong in `helm test`', async () => {
    await helmRun(['test', 'kcp', '--timeout', '60s'])
  })

  it('keeps tenants apart', async () => {
    const get = ['get', 'configmaps', '-A', '-o', 'name']
    // Both kubeconfigs of bob are one file: one after the other.
    expect((await kubectl(await tenant('bobs', 'bob'), get)).stdout).not.to.contain('kept')
    const others = await tenant('acme', 'bob', { admitted: false })
    const { stderr, code } = await kubectl(others, get, { expectCode: 'any' })
    expect(code).to.equal(1)
    expect(stderr).to.match(/forbidden/i)
  })

  it('keeps what tenants stored over an upgrade', async () => {
    await install('upgrade', 'apiserver.logLevel=debug')
    await untilKept()
  })

  it('takes its APIService along when it is uninstalled, and finds the data when it is installed again', async () => {
    await helmRun(['uninstall', 'kcp', '--wait'])
    const { code } = await host.kubectl(['get', 'apiservice', 'v1alpha1.virtual.kcp.dev'], { expectCode: 'any' })
    expect(code).to.equal(1)
    await host.kubectl(['create', 'namespace', 'passing'])
    await host.kubectl(['delete', 'namespace', 'passing', '--timeout=30s'])
    await install('install')
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
    await helmRun(['uninstall', 'kcp', '--wait'])
    await host.kubectl(['create', '-f', '-'], { input: volume })
    await install('install', 'storage.mode=embedded')
    await helmRun(['test', 'kcp', '--timeout', '60s'])
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
    await host.kubectl([...diagnose, '--root-dir', '/data/kcp'])
  })

  async function untilKept(): Promise<void> {
    const alice = await tenant('acme', 'alice')
    const get = ['get', 'configmap', 'kept', '-n', 'shop', '-o', 'jsonpath={.data.a}']
    await waitFor(async () => (await kubectl(alice, get, { expectCode: 'any' })).stdout === 'b', {
      what: "the tenant's ConfigMap to be there",
      deadlineMs: 60_000,
    })
  }

  async function createLogicalCluster(name: string, owner: string): Promise<void> {
    const spec = { owners: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: owner }] }
    const input = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name }, spec }
    await host.kubectl(['create', '-f', '-'], { input })
    await host.kubectl(['wait', '--for=condition=Ready', `lc/${name}`, '--timeout=60s'])
  }

  /** A kubeconfig through the host's own endpoint, made of the URL in the status. */
  async function tenant(name: string, user: string, { admitted = true } = {}): Promise<string> {
    if (admitted) await admit(name, user)
    const { stdout: url } = await host.kubectl(['get', 'lc', name, '-o', 'jsonpath={.status.url}'])
    const file = await host.kubeconfigFor({ commonName: user, organizations: [`tenants-${name}`] })
    await kubectl(file, ['config', 'set-cluster', 'charted', '--server', url])
    return file
  }

  async function admit(name: string, user: string): Promise<void> {
    const role = `tenant-${name}`
    const resource = 'logicalclusters.virtual.kcp.dev/proxy'
    const create = ['create', 'clusterrole', role, '--verb=*', `--resource=${resource}`, `--resource-name=${name}`]
    await host.kubectl(create, { expectCode: 'any' })
    await host.kubectl(['create', 'clusterrolebinding', role, `--clusterrole=${role}`, `--user=${user}`], {
      expectCode: 'any',
    })
  }
})
