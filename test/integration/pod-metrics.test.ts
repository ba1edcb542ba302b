// `kubectl top` in a logical cluster: kcp start with a real API server as member, which has the metrics of its pods as
// objects.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { runKcp, startCluster, waitFor, type Cluster } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

const within = { deadlineMs: 60_000, intervalMs: 100 }
const crdName = 'pods.metrics.k8s.io'

/** Serves what a metrics server serves, at the same paths. */
const podMetricsCrd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: crdName, annotations: { 'api-approved.kubernetes.io': 'unapproved, for a test' } },
  spec: {
    group: 'metrics.k8s.io',
    scope: 'Namespaced',
    names: { plural: 'pods', kind: 'PodMetrics' },
    versions: [
      {
        name: 'v1beta1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
}

describe('metrics of pods in members', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let kcp: KcpInstance
  let acme: Tenant
  let bob: Tenant
  let east: Cluster

  before(async function () {
    this.timeout(300_000)
    kcp = stack.use(await startInstance())
    ;[acme, bob] = [await kcp.tenant('acme'), await kcp.tenant('bob')]
    const flags = { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] }
    east = stack.use(await startCluster({ name: 'east', flags }))
    await runKcp(['member', 'join', 'east', '--kubeconfig', east.kubeconfig, '--root-dir', kcp.rootDir])
    await kcp.admin.kubectl(['wait', '--for=condition=Ready', 'mc/east', '--timeout=60s'])
    for (const tenant of [acme, bob]) await tenant.kubectl(['run', 'web', '--image=nginx', '--labels=app=web'])
    await acme.kubectl(['run', 'young', '--image=nginx'])
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  const json = async (tenant: Tenant, path: string): Promise<{ status: number; body: Record<string, unknown> }> => {
    const { status, body } = await tenant.http.request('GET', `${tenant.base}${path}`)
    return { status, body: JSON.parse(body.toString()) as Record<string, unknown> }
  }
  const groups = async (): Promise<string[]> => {
    const { body } = await json(acme, '/apis')
    return (body['groups'] as { name: string }[]).map(({ name }) => name)
  }
  const podIn = async (namespace: RegExp): Promise<KubeObject | undefined> => {
    const { stdout } = await east.kubectl(['get', 'pods', '-A', '-o', 'json'])
    const { items } = JSON.parse(stdout) as { items: KubeObject[] }
    return items.find(({ metadata }) => metadata.name === 'web' && namespace.test(metadata.namespace ?? ''))
  }
  /** The namespace in the member of the default namespace of a logical cluster. */
  const downstream = async (name: string): Promise<string> => {
    const { stdout } = await kcp.admin.kubectl(['get', 'lc', name, '-o', 'jsonpath={.status.id}'])
    return `${stdout}-default`
  }
  const report = async (namespace: string, cpu: string): Promise<void> => {
    const object = {
      apiVersion: 'metrics.k8s.io/v1beta1',
      kind: 'PodMetrics',
      metadata: { name: 'web', namespace },
      timestamp: '2026-01-01T00:00:00Z',
      window: '15s',
      containers: [{ name: 'web', usage: { cpu, memory: '12Mi' } }],
    }
    await east.kubectl(['apply', '-f', '-'], { input: object })
  }

  it('are not served where no member has them', async () => {
    expect(await groups()).not.to.include('metrics.k8s.io')
    const { stderr } = await acme.kubectl(['top', 'pods'], { expectCode: 1 })
    expect(stderr).to.include('Metrics API not available')
  })

  it('are shown of the pods of the logical cluster alone, by their own names', async () => {
    await east.kubectl(['apply', '-f', '-'], { input: podMetricsCrd })
    await waitFor(async () => (await groups()).includes('metrics.k8s.io'), { what: 'the group', ...within })
    const [mine, theirs] = [await downstream('acme'), await downstream('bob')]
    for (const namespace of [mine, theirs])
      await waitFor(async () => (await podIn(new RegExp(namespace))) !== undefined, { what: 'the pod', ...within })
    await report(mine, '250m')
    await report(theirs, '700m')
    const pod = async (): Promise<string> => {
      const { stdout } = await acme.kubectl(['get', 'pod', 'web', '-o', 'jsonpath={.metadata.annotations}'])
      return stdout
    }
    await waitFor(async () => (await pod()).includes('kcp.dev/member'), { what: 'the pod to be known', ...within })
    const top = async (...args: string[]): Promise<string> => {
      const { stdout } = await acme.kubectl(['top', 'pods', '--no-headers', ...args])
      return stdout.trim().replaceAll(/\s+/g, ' ')
    }
    expect(await top()).to.equal('web 250m 12Mi')
    expect(await top('-A', '--containers')).to.equal('default web web 250m 12Mi')
    expect(await top('-l', 'app=web')).to.equal('web 250m 12Mi')
    const { body } = await json(acme, '/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/web')
    expect(body['metadata']).to.deep.include({ namespace: 'default', labels: { app: 'web' } })
    expect((await json(acme, '/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/young')).status).to.equal(404)
    expect((await json(acme, '/apis/metrics.k8s.io/v1beta1/nodes')).body['items']).to.deep.equal([])
  })

  it('show what the pods of the logical cluster use on each node', async () => {
    const binding = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'web' },
      target: { kind: 'Node', name: 'n1' },
    }
    const namespace = await downstream('acme')
    await east.kubectl(['create', '--raw', `/api/v1/namespaces/${namespace}/pods/web/binding`, '-f', '-'], {
      input: binding,
    })
    const nodes = async (): Promise<unknown> => (await json(acme, '/apis/metrics.k8s.io/v1beta1/nodes')).body['items']
    await waitFor(async () => ((await nodes()) as unknown[]).length > 0, { what: 'the node', ...within })
    expect(await nodes()).to.deep.equal([
      {
        kind: 'NodeMetrics',
        apiVersion: 'metrics.k8s.io/v1beta1',
        metadata: { name: 'n1', creationTimestamp: '2026-01-01T00:00:00Z' },
        timestamp: '2026-01-01T00:00:00Z',
        window: '15s',
        usage: { cpu: '250m', memory: '12Mi' },
      },
    ])
    const { stdout } = await acme.kubectl(['top', 'nodes', '--no-headers'])
    expect(stdout.trim()).to.match(/^n1 +250m +12Mi$/)
  })

  it('are shown to who may view a namespace', async () => {
    await acme.kubectl(['create', 'rolebinding', 'viewer', '--clusterrole=view', '--user=viewer'])
    const { stdout } = await acme.kubectl(['top', 'pods', '--no-headers', '--as=viewer'])
    expect(stdout).to.match(/^web/)
    await acme.kubectl(['top', 'pods', '-n', 'kube-system', '--as=viewer'], { expectCode: 1 })
  })

  it('cannot be written', async () => {
    const { stderr } = await acme.kubectl(['delete', 'pods.v1beta1.metrics.k8s.io', 'web'], { expectCode: 1 })
    expect(stderr).to.include('Error from server (MethodNotAllowed)')
  })
})
