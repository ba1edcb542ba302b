// A host of the oldest supported Kubernetes version: it takes everything that an installation has, and serves the first
// tenant.
import { expect } from 'chai'
import { join } from 'node:path'
import { createHelm } from '#test/e2e/helm.ts'
import { createLogicalCluster, installOnHost, type Installation } from '#test/e2e/installation.ts'
import { kubectl, repositoryRoot, startCluster, type Cluster } from '#test/support/index.ts'

describe('a host that runs Kubernetes 1.30', function () {
  this.timeout(180_000)
  const stack = new AsyncDisposableStack()
  let host: Cluster

  before(async function () {
    this.timeout(60 * 60_000) // a cold cache builds that Kubernetes first
    host = stack.use(await startCluster({ name: 'host', version: '1.30', controllerManager: true }))
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  it('accepts every object of the chart', async () => {
    await using helm = await createHelm('default')
    // Without --wait: no node runs the pods of the chart. What serves below are processes.
    await helm.run(
      host.kubeconfig,
      'install',
      'kcp',
      join(repositoryRoot, 'charts/kcp'),
      '--set',
      `hostURL=${host.server}`,
    )
    const crds = ['logicalclusters', 'memberclusters', 'placements'].map((plural) => `crd/${plural}.kcp.dev`)
    await host.kubectl(['wait', '--for=condition=Established', ...crds, 'crd/records.storage.kcp.dev', '--timeout=30s'])
    const { stdout } = await host.kubectl(['version', '-o', 'json'])
    expect(JSON.parse(stdout)).to.have.nested.property('serverVersion.minor', '30')
  })

  describe('with an installation', () => {
    let kcp: Installation
    before(async () => {
      // No pods run behind the chart's Service: the processes register their own address instead.
      await host.kubectl(['delete', 'apiservice/v1alpha1.virtual.kcp.dev', '--ignore-not-found'])
      await host.kubectl(['delete', 'service', '-n', 'kcp-system', '--all'])
      await host.kubectl(['wait', '--for=delete', 'endpoints/kcp-apiserver', '--timeout=30s', '-n', 'kcp-system'])
      kcp = stack.use(await installOnHost({ host }))
    })

    it('serves the first request of a tenant through its own endpoint', async () => {
      await createLogicalCluster(kcp, 'acme', 'alice')
      await host.kubectl(['wait', '--for=condition=Available', 'apiservice/v1alpha1.virtual.kcp.dev', '--timeout=60s'])
      const alice = await kcp.tenant('acme', 'alice')
      await kubectl(alice, ['create', 'namespace', 'shop'])
      await kubectl(alice, ['create', 'configmap', 'kept', '-n', 'shop', '--from-literal=a=b'])
      const get = ['get', 'configmap', 'kept', '-n', 'shop', '-o', 'jsonpath={.data.a}']
      expect((await kubectl(alice, get)).stdout).to.equal('b')
    })

    it('is a member whose ValidatingAdmissionPolicies keep the syncer to its own namespaces', async () => {
      await kcp.join(host)
      await host.kubectl(['wait', '--for=condition=Ready', `mc/${host.name}`, '--timeout=60s'])
      const account = '--as=system:serviceaccount:kcp-system:kcp-syncer'
      const create = ['create', 'configmap', 'astray', '-n', 'default', account, '--dry-run=server']
      const { stderr, code } = await host.kubectl(create, { expectCode: 'any' })
      expect(code).to.equal(1)
      expect(stderr).to.contain('kcp writes only in namespaces that it created')
    })
  })
})
