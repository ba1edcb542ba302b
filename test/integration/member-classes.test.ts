// The classes of members, as tenants see and use them: kcp start with two real API servers as members.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { runKcp, startCluster, waitFor, type Cluster } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

const within = { deadlineMs: 60_000, intervalMs: 100 }

describe('the classes of members', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let kcp: KcpInstance
  let acme: Tenant
  let east: Cluster

  const storageClass = (name: string, annotations = {}) => ({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name, annotations },
    provisioner: `${name}.example`,
    parameters: { secret: 'of-the-member' },
    volumeBindingMode: 'WaitForFirstConsumer',
  })
  const isDefault = { 'storageclass.kubernetes.io/is-default-class': 'true' }
  const apply = (to: Pick<Cluster, 'kubectl'> | Tenant, object: object) =>
    to.kubectl(['apply', '-f', '-'], { input: object })
  const join = async (member: Cluster): Promise<void> => {
    const flags = ['--kubeconfig', member.kubeconfig, '--root-dir', kcp.rootDir]
    await runKcp(['member', 'join', member.name, ...flags])
  }
  const read = async (tenant: Tenant, path: string): Promise<KubeObject | undefined> => {
    const { status, body } = await tenant.http.request('GET', `${tenant.base}${path}`)
    return status === 200 ? (JSON.parse(body.toString()) as KubeObject) : undefined
  }
  const names = async (group: string, resource: string): Promise<string[]> => {
    const list = await read(acme, `/apis/${group}/v1/${resource}`)
    return ((list as unknown as { items?: KubeObject[] }).items ?? []).map(({ metadata }) => metadata.name ?? '')
  }

  before(async function () {
    this.timeout(300_000)
    kcp = stack.use(await startInstance())
    acme = await kcp.tenant('acme')
    const started = await Promise.all([startCluster({ name: 'east' }), startCluster({ name: 'west' })])
    for (const cluster of started) stack.use(cluster)
    const [first, west] = started
    east = first
    for (const object of [
      storageClass('fast', isDefault),
      {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'IngressClass',
        metadata: { name: 'edge' },
        spec: { controller: 'example.com/edge' },
      },
      { apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'sandbox' }, handler: 'runsc' },
      { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: 'high' }, value: 1000 },
    ])
      await apply(east, object)
    await apply(west, storageClass('slow'))
    for (const cluster of started) await join(cluster)
    await kcp.admin.kubectl(['wait', '--for=condition=Ready', 'mc/east', 'mc/west', '--timeout=60s'])
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  it('are shown in logical clusters, without what only the member may know', async () => {
    const shown = async (): Promise<string> =>
      [
        ...(await names('storage.k8s.io', 'storageclasses')),
        ...(await names('networking.k8s.io', 'ingressclasses')),
        ...(await names('node.k8s.io', 'runtimeclasses')),
        ...(await names('scheduling.k8s.io', 'priorityclasses')).filter((name) => !name.startsWith('system-')),
      ].join()
    await waitFor(async () => (await shown()) === 'fast,slow,edge,sandbox,high', { what: 'the classes', ...within })
    const fast = await read(acme, '/apis/storage.k8s.io/v1/storageclasses/fast')
    expect(fast?.['provisioner']).to.equal('fast.example')
    expect(fast?.['volumeBindingMode']).to.equal('WaitForFirstConsumer')
    expect(fast?.['parameters']).to.equal(undefined)
    // Not a default: west has another opinion, and a claim keeps the class it is given.
    expect(fast?.metadata.annotations).to.deep.equal({ 'kcp.dev/projected-from': 'east' })
  })

  it('hold a workload that names a RuntimeClass that no member has, until a member has it', async () => {
    await apply(acme, deployment('db', { runtimeClassName: 'micro' }))
    const held = async (): Promise<string> => {
      const found = await read(acme, '/apis/apps/v1/namespaces/default/deployments/db')
      const { conditions = [] } = found?.['status'] as { conditions?: Record<'type' | 'reason' | 'message', string>[] }
      const placed = conditions.find(({ type }) => type === 'Placed')
      return placed === undefined ? '' : `${placed.reason}: ${placed.message}`
    }
    await waitFor(async () => (await held()) !== '', { what: 'the workload to be held', ...within })
    expect(await held()).to.equal(
      'ClassMissing: member cluster "east" has no RuntimeClass "micro"; member cluster "west" has no RuntimeClass "micro"',
    )
    const micro = { apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'micro' }, handler: 'runsc' }
    await apply(east, micro)
    await waitFor(async () => (await placedOn('db')).join() === 'east', { what: 'the workload on east', ...within })
    await waitFor(async () => (await held()) === '', { what: 'the condition to go', ...within })
    await east.kubectl(['delete', 'runtimeclass', 'micro'])
  })

  it('lead a workload to the member that has the named one', async () => {
    await apply(acme, deployment('boxed', { runtimeClassName: 'sandbox' }))
    await apply(acme, claim('data', 'fast'))
    await apply(acme, deployment('db2', { volumes: [{ name: 'd', persistentVolumeClaim: { claimName: 'data' } }] }))
    for (const name of ['boxed', 'db2']) {
      await waitFor(async () => (await placedOn(name)).length > 0, { what: `a decision about ${name}`, ...within })
      expect(await placedOn(name)).to.deep.equal(['east'])
    }
  })

  it('do not hold a workload whose StorageClass no member has: volumes made by hand may have its name', async () => {
    await apply(acme, claim('by-hand', 'kept'))
    await apply(acme, deployment('kept', { volumes: [{ name: 'd', persistentVolumeClaim: { claimName: 'by-hand' } }] }))
    await waitFor(async () => (await placedOn('kept')).length === 1, { what: 'a decision', ...within })
  })

  it('give a priority of a tenant the class of the member with the next lower value', async () => {
    const mine = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: 'mine' }, value: 5000 }
    await apply(acme, mine)
    await apply(acme, deployment('first', { priorityClassName: 'mine' }, { 'kcp.dev/clusters': 'east' }))
    const copy = async (): Promise<KubeObject | undefined> => {
      const { stdout } = await east.kubectl(['get', 'deployments', '-A', '-o', 'json'])
      const { items } = JSON.parse(stdout) as { items: KubeObject[] }
      return items.find(({ metadata }) => metadata.name === 'first')
    }
    await waitFor(async () => (await copy()) !== undefined, { what: 'the copy in east', ...within })
    const { template } = (await copy())?.['spec'] as { template: { spec: { priorityClassName?: string } } }
    expect(template.spec.priorityClassName).to.equal('high')
  })

  it('are missed by an Ingress that names one of none: a warning says so, and an Event which member lacks it', async () => {
    const ingress = {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata: { name: 'shop', namespace: 'default' },
      spec: { ingressClassName: 'lane', defaultBackend: { service: { name: 'shop', port: { number: 80 } } } },
    }
    const { stderr } = await apply(acme, ingress)
    expect(stderr).to.include('spec.ingressClassName: no member cluster has the IngressClass "lane"; there are: edge')
    const told = async (): Promise<string> =>
      (await acme.kubectl(['events', '--for', 'ingress/shop', '--no-headers'])).stdout
    await waitFor(async () => (await told()).includes('ClassMissing'), { what: 'the Event', ...within })
    expect(await told()).to.match(/member cluster "\w+" has no IngressClass "lane": nothing there serves the Ingress/)
  })

  it('leave a class of that name alone that a tenant made, and end with the member', async () => {
    await acme.kubectl(['delete', 'storageclass', 'slow'])
    await waitFor(async () => (await names('storage.k8s.io', 'storageclasses')).includes('slow'), {
      what: 'the class to be shown again',
      ...within,
    })
    await apply(acme, { ...storageClass('own'), provisioner: 'tenant.example' })
    await apply(east, storageClass('own'))
    await apply(east, storageClass('last'))
    const has = async (name: string): Promise<boolean> =>
      (await names('storage.k8s.io', 'storageclasses')).includes(name)
    await waitFor(() => has('last'), { what: 'the class that came later', ...within })
    expect((await read(acme, '/apis/storage.k8s.io/v1/storageclasses/own'))?.['provisioner']).to.equal('tenant.example')
    await east.kubectl(['delete', 'storageclass', 'last', 'own'])
    await waitFor(async () => !(await has('last')), { what: 'the class to go', ...within })
    expect(await has('own')).to.equal(true)
  })

  const placedOn = async (name: string): Promise<string[]> =>
    Object.keys(JSON.parse((await annotationsOf('deployments', name))['kcp.dev/placed-on'] ?? '{}') as object)
  const annotationsOf = async (resource: string, name: string): Promise<Record<string, string>> =>
    (await read(acme, `/apis/apps/v1/namespaces/default/${resource}/${name}`))?.metadata.annotations ?? {}
})

function claim(name: string, storageClassName: string): object {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default' },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '1Gi' } } },
  }
}

function deployment(name: string, spec: object, annotations = {}): object {
  const labels = { app: name }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default', annotations },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'example/any:1' }], ...spec } },
    },
  }
}
