// A member of an older Kubernetes version: what it does not know keeps away the workloads that use it, and no others.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { runKcp, startCluster, waitFor, type Cluster } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from '#test/integration/kcp-instance.ts'

const within = { deadlineMs: 60_000, intervalMs: 100 }

describe('a member that runs Kubernetes 1.31', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let kcp: KcpInstance
  let acme: Tenant
  let old: Cluster
  let present: Cluster

  const join = async (member: Cluster): Promise<void> => {
    const flags = ['--kubeconfig', member.kubeconfig, '--root-dir', kcp.rootDir]
    await runKcp(['member', 'join', member.name, ...flags])
    await kcp.admin.kubectl(['wait', '--for=condition=Ready', `mc/${member.name}`, '--timeout=60s'])
  }
  const get = async (tenant: Tenant, path: string): Promise<KubeObject> =>
    JSON.parse((await tenant.http.request('GET', `${tenant.base}${path}`)).text) as KubeObject
  const workload = (name: string): Promise<KubeObject> =>
    get(acme, `/apis/apps/v1/namespaces/default/deployments/${name}`)
  const heldText = async (name: string): Promise<string> => {
    const { conditions = [] } = (await workload(name))['status'] as { conditions?: Record<string, string>[] }
    const placed = conditions.find(({ type }) => type === 'Placed')
    return placed === undefined ? '' : `${placed['reason'] ?? ''}: ${placed['message'] ?? ''}`
  }
  const placedOn = async (name: string): Promise<string[]> =>
    Object.keys(JSON.parse((await workload(name)).metadata.annotations?.['kcp.dev/placed-on'] ?? '{}') as object)
  /** The fields that a member does not know; undefined until they were compared. */
  const fieldsOf = async (member: string): Promise<unknown[] | undefined> => {
    const { status } = await get(kcp.admin, `/apis/kcp.dev/v1alpha1/memberclusters/${member}`)
    return (status as { unsupportedFields?: unknown[] } | undefined)?.unsupportedFields
  }
  const apply = (object: object) => acme.kubectl(['apply', '-f', '-'], { input: object })

  before(async function () {
    this.timeout(60 * 60_000) // a cold cache builds that Kubernetes first
    kcp = stack.use(await startInstance())
    acme = await kcp.tenant('acme')
    const started = await Promise.all([startCluster({ name: 'old', version: '1.31' }), startCluster({ name: 'new' })])
    for (const cluster of started) stack.use(cluster)
    ;[old, present] = started
    await join(old)
    await waitFor(async () => (await fieldsOf('old')) !== undefined, { what: 'what it does not know', ...within })
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  it('takes workloads that use what it knows', async () => {
    await apply(deployment('plain', {}))
    await waitFor(async () => (await placedOn('plain')).join() === 'old', {
      what: 'the workload to be placed',
      ...within,
    })
  })

  it('is told, by its path, of a field that it does not know; a member that knows it takes the workload', async () => {
    await apply(deployment('sized', { resources: { limits: { cpu: '1' } } }))
    await waitFor(async () => (await heldText('sized')) !== '', { what: 'the workload to be held', ...within })
    expect(await heldText('sized')).to.equal(
      'FieldsUnsupported: member cluster "old" does not know spec.template.spec.resources',
    )
    await join(present)
    await waitFor(async () => (await placedOn('sized')).join() === 'new', { what: 'the workload on new', ...within })
    expect(await placedOn('plain')).to.deep.equal(['old'])
    await waitFor(async () => (await fieldsOf('new'))?.length === 0, { what: 'new to know all fields', ...within })
  })
})

function deployment(name: string, spec: object): object {
  const labels = { app: name }
  const containers = [{ name: 'main', image: 'example/any:1' }]
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers, ...spec } } },
  }
}
