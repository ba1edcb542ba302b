// The kustomize base in a real host: an overlay of it installs everything, and its removal leaves what tenants stored.
// That it has the objects of the chart is a static check (`scripts/verify.ts kustomize`).
import { expect } from 'chai'
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { repositoryRoot, startCluster, type Cluster } from '#test/support/index.ts'

describe('the kustomize base', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let host: Cluster
  let overlay: string

  before(async () => {
    overlay = await realpath(await mkdtemp(join(tmpdir(), 'kcp-overlay-')))
    stack.defer(() => rm(overlay, { recursive: true, force: true }))
    const patch = [
      { op: 'add', path: '/spec/template/spec/containers/0/args/-', value: '--host-url=https://api.example:6443' },
    ]
    const kustomization = {
      resources: [relative(overlay, join(repositoryRoot, 'config/default'))],
      images: [{ name: 'kcp.dev/kcp', newName: 'registry.example/kcp', newTag: 'v9' }],
      patches: [{ target: { kind: 'Deployment', name: 'kcp-operator' }, patch: JSON.stringify(patch) }],
    }
    await writeFile(join(overlay, 'kustomization.yaml'), JSON.stringify(kustomization))
    host = stack.use(await startCluster({ name: 'host', nodes: 0 }))
  })
  after(() => stack.disposeAsync())

  const lines = async (args: string[]): Promise<string[]> => (await host.kubectl(args)).stdout.trim().split('\n')

  it('installs everything in one go, with what an overlay changes', async () => {
    await host.kubectl(['apply', '-k', overlay])
    const path = '-o=jsonpath={range .items[*]}{.metadata.name} {.spec.template.spec.containers[0].image}{"\\n"}{end}'
    expect(await lines(['get', 'deployments', '-n', 'kcp-system', path])).to.deep.equal([
      'kcp-apiserver registry.example/kcp:v9',
      'kcp-operator registry.example/kcp:v9',
    ])
    const args = '-o=jsonpath={.spec.template.spec.containers[0].args}'
    const [text] = await lines(['get', 'deployment', 'kcp-operator', '-n', 'kcp-system', args])
    expect(text).to.contain('--host-url=https://api.example:6443')
    const account = '--as=system:serviceaccount:kcp-system:kcp-apiserver'
    expect(await lines(['auth', 'can-i', 'create', 'records.storage.kcp.dev', account])).to.deep.equal(['yes'])
  })

  it('changes nothing when it is applied again', async () => {
    await host.kubectl(['apply', '-k', overlay])
    // Not what apply prints: it calls PodDisruptionBudgets configured each time.
    expect(await lines(['diff', '-k', overlay])).to.deep.equal([''])
  })

  it('leaves namespace, CustomResourceDefinitions and data when config/manager alone is deleted', async () => {
    const cluster = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name: 'acme' } }
    await host.kubectl(['create', '-f', '-'], { input: cluster })
    await host.kubectl(['delete', '-k', join(repositoryRoot, 'config/manager'), '--wait=false'])
    expect(await lines(['get', 'logicalclusters.kcp.dev', '-o', 'name'])).to.deep.equal(['logicalcluster.kcp.dev/acme'])
    expect(await lines(['get', 'namespace', 'kcp-system', '-o', 'name'])).to.deep.equal(['namespace/kcp-system'])
  })
})
