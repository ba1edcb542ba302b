// The answers of a real server with its operator to tenants' writes that concern placement.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { crdOf, placementKind } from '#crds/index.ts'
import { waitFor } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

describe('a tenant that writes a target', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let kcp: KcpInstance
  let tenant: Tenant

  before(async () => {
    kcp = stack.use(await startInstance())
    for (const [name, region] of [
      ['berlin', 'eu'],
      ['boston', 'us'],
    ]) {
      const metadata = { name, labels: { region } }
      await kcp.admin.kubectl(['create', '-f', '-'], {
        input: { apiVersion: 'kcp.dev/v1alpha1', kind: 'MemberCluster', metadata },
      })
    }
    tenant = await kcp.tenant('acme')
    await kcp.admin.kubectl(['label', 'lc/acme', 'region=eu'])
    await kcp.admin.kubectl(['create', '-f', '-'], {
      input: {
        apiVersion: 'kcp.dev/v1alpha1',
        kind: 'Placement',
        metadata: { name: 'eu-only' },
        spec: {
          logicalClusterSelector: { matchLabels: { region: 'eu' } },
          require: { labelSelector: { matchLabels: { region: 'eu' } } },
        },
      },
    })
  })
  after(() => stack.disposeAsync())

  const deployment = (name: string, clusters?: string): object => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, ...(clusters !== undefined && { annotations: { 'kcp.dev/clusters': clusters } }) },
    spec: {
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'x' }] } },
    },
  })
  const dryRun = async (input: object): Promise<string> => {
    const args = ['apply', '--dry-run=server', '-f', '-']
    return (await tenant.kubectl(args, { input, expectCode: 'any' })).stderr
  }

  it('is refused what admins forbid, once the server knows the rule', async () => {
    const refusal = await waitFor(
      async () => {
        const text = await dryRun(deployment('web', 'boston'))
        return text.includes('forbidden') ? text : undefined
      },
      { what: 'the rule to be known', deadlineMs: 20_000 },
    )
    expect(refusal).to.contain(
      'annotation kcp.dev/clusters: Placement "eu-only" of the administrators does not allow member cluster "boston"; allowed: "berlin"',
    )
    const annotate = ['annotate', 'namespace/default', 'kcp.dev/clusters=boston']
    expect((await tenant.kubectl(annotate, { expectCode: 1 })).stderr).to.contain('allowed: "berlin"')
  })

  it('is told by a dry run why the workload would wait, without names of members that are not for it', async () => {
    expect(await dryRun(deployment('web'))).to.equal(
      'Warning: would be held: member cluster "berlin" is not Ready; Placement "eu-only" of the administrators does not allow a member cluster\n',
    )
  })

  it('sees the members that it may use, and no others', async () => {
    const { stdout } = await tenant.kubectl(['get', 'members', '--show-labels', '--no-headers'])
    expect(stdout.trim().split('\n')).to.have.length(1)
    expect(stdout).to.match(/^berlin +\S+ +False +ClusterNotReady .*region=eu/)
    const other = await kcp.tenant('other')
    const names = (await other.kubectl(['get', 'members', '-o', 'name'])).stdout.trim().split('\n')
    expect(names).to.deep.equal(['member.kcp.dev/berlin', 'member.kcp.dev/boston'])
    const explained = await tenant.kubectl(['explain', 'members.status.serviceNetwork'])
    expect(explained.stdout).to.contain('its pods and those of other Flat members reach each other')
    const watch = `${tenant.base}/apis/kcp.dev/v1alpha1/members?watch=true&timeoutSeconds=1`
    const events = (await tenant.http.request('GET', watch)).text.trim().split('\n')
    expect(events.map((line) => (JSON.parse(line) as { object: KubeObject }).object.metadata.name)).to.deep.equal([
      'berlin',
    ])
    const refused = await tenant.kubectl(['delete', 'member', 'berlin'], { expectCode: 'any' })
    expect(refused.stderr).to.contain('MethodNotAllowed')
  })

  it('is refused a forbidden member in a Placement of its own', async () => {
    const home = { apiVersion: 'kcp.dev/v1alpha1', kind: 'Placement', metadata: { name: 'home' } }
    const create = (clusters: string[]) =>
      tenant.kubectl(['create', '-f', '-'], { input: { ...home, spec: { clusters } }, expectCode: 'any' })
    expect((await create(['berlin', 'boston'])).stderr).to.contain(
      'spec.clusters: Placement "eu-only" of the administrators does not allow member cluster "boston"',
    )
    expect((await create(['berlin'])).stderr).to.equal('')
  })

  it('has the definition of Placements from the start', async () => {
    const explained = await tenant.kubectl(['explain', 'placement.spec.clusters'])
    expect(explained.stdout).to.contain('Names of member clusters; workloads run on all of them')
    const listed = await tenant.kubectl(['api-resources', '--api-group=kcp.dev', '--no-headers', '--namespaced=false'])
    expect(listed.stdout).to.match(/^placements +pl +kcp\.dev\/v1alpha1 +false +Placement$/m)
    const service = await tenant.kubectl(['get', 'apiservice', 'v1alpha1.kcp.dev', '--no-headers'])
    expect(service.stdout).to.match(/^v1alpha1\.kcp\.dev +Local +True /)
  })

  it('keeps a definition that was applied before there was one from the start, until it is deleted', async () => {
    const other = await kcp.tenant('earlier')
    const definition = structuredClone(crdOf(placementKind))
    delete definition.spec.versions[0]?.schema.openAPIV3Schema.properties?.['spec']?.properties?.['replicas']
    await other.kubectl(['replace', '-f', '-'], { input: definition })
    const create = (field: object) =>
      other.kubectl(['create', '--validate=strict', '-f', '-'], {
        input: { ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'Placement' }, metadata: { name: 'home' }, spec: field },
        expectCode: 'any',
      })
    expect((await create({ replicas: { mode: 'Divide' } })).stderr).to.contain('unknown field "spec.replicas"')
    expect((await create({ clusters: ['berlin'] })).stderr).to.equal('')
    await other.kubectl(['delete', 'crd', 'placements.kcp.dev', '--timeout=20s'])
    expect((await other.kubectl(['get', 'placements'], { expectCode: 1 })).stderr).to.match(/NotFound|resource type/)
    await other.kubectl(['create', '-f', '-'], { input: crdOf(placementKind) })
    expect((await create({ replicas: { mode: 'Divide' } })).stderr).to.equal('')
  })
})
