import { expect } from 'chai'
import { cloneJson, type KubeObject } from '../../../src/apimachinery/meta/index.ts'
import { memberControllers } from '../../../src/cli/roles/member-controllers.ts'
import { loadKubeconfig, type KubeClient } from '../../../src/client/index.ts'
import { kcpCrds, memberClusters, placements, type MemberCluster } from '../../../src/crds/index.ts'
import { ensureCrds, startOperator } from '../../../src/operator/index.ts'
import { joinMember } from '../../../src/syncer/index.ts'
import { createLogger } from '../../../src/telemetry/index.ts'
import { startCluster, waitFor, type Cluster } from '../../support/index.ts'
import { asWildcard, clientOf } from './ordinary-upstream.ts'
import { simulateKubelet, type SimulatedKubelet } from './played-member.ts'

const signal = new AbortController().signal
const namespace = 'shop'
const deployments = { group: 'apps', version: 'v1', resource: 'deployments' }
const services = { group: '', version: 'v1', resource: 'services' }
const namespaces = { group: '', version: 'v1', resource: 'namespaces' }
const pods = { group: '', version: 'v1', resource: 'pods' }
const logicalClusters = { group: 'kcp.dev', version: 'v1alpha1', resource: 'logicalclusters' }

describe('the operator and two members', function () {
  this.timeout(90_000)
  const stack = new AsyncDisposableStack()
  let host: KubeClient
  let up: KubeClient
  const log = createLogger({ level: (process.env['KCP_TEST_LOG'] as 'debug' | undefined) ?? 'error' })
  const members: Record<string, { client: KubeClient; cluster: Cluster; kubelet: SimulatedKubelet }> = {}

  const until = async <T>(
    what: string,
    attempt: () => Promise<T | undefined | false>,
    deadlineMs = 30_000,
  ): Promise<T> => await waitFor(async () => (await attempt()) || undefined, { what, deadlineMs })
  const workload = async (): Promise<KubeObject | undefined> =>
    await up.tryGet(deployments, { namespace, name: 'web' }, { signal })
  const placed = async (): Promise<Record<string, string>> => {
    const text = (await workload())?.metadata.annotations?.['kcp.dev/placed-on'] ?? '{}'
    return Object.fromEntries(
      Object.entries(JSON.parse(text) as Record<string, { state: string }>).map(([member, { state }]) => [
        member,
        state,
      ]),
    )
  }
  const isPlaced = async (expected: Record<string, string>): Promise<boolean> => {
    const states = await placed()
    return (
      Object.keys(states).length === Object.keys(expected).length &&
      Object.entries(expected).every(([member, state]) => states[member] === state)
    )
  }
  const target = async (clusters: string | null): Promise<void> => {
    await up.patch(
      deployments,
      { namespace, name: 'web' },
      'merge',
      { metadata: { annotations: { 'kcp.dev/clusters': clusters } } },
      { signal },
    )
  }
  const join = async (name: string, cluster: string): Promise<unknown> => {
    const memberKubeconfig = await loadKubeconfig({ file: members[cluster]!.cluster.kubeconfig }, { trusted: true })
    return await joinMember({ name, memberKubeconfig, clusters: host, serviceNetwork: 'Flat', log, signal })
  }

  before(async function () {
    this.timeout(300_000)
    const life = new AbortController()
    const hostCluster = stack.use(await startCluster({ name: 'host' }))
    host = await clientOf(hostCluster.kubeconfig, stack)
    const upCluster = stack.use(
      await startCluster({ name: 'up', flags: { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] } }),
    )
    up = await clientOf(upCluster.kubeconfig, stack)
    await ensureCrds(host, { crds: kcpCrds(), signal })
    await ensureCrds(up, { crds: kcpCrds(), signal })
    for (const [index, name] of ['east', 'west'].entries()) {
      const cluster = stack.use(await startCluster({ name, controllerManager: true }))
      const client = await clientOf(cluster.kubeconfig, stack)
      members[name] = {
        client,
        cluster,
        kubelet: simulateKubelet(client, { subnet: `10.9${index}.0`, signal: life.signal }),
      }
    }
    await host.create(
      logicalClusters,
      { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name: 'acme' } },
      { signal },
    )
    const controllers = memberControllers({ advertise: { host: 'kcp.example', port: 7443 }, drainSeconds: 3 }).filter(
      ({ name }) => name !== 'logical-cluster',
    )
    stack.use(
      await startOperator({
        clusters: host,
        virtual: (basePath) => (basePath === '/clusters/*' ? asWildcard(up, 'acme') : up),
        urls: () => ({ url: 'https://kcp.example' }),
        controllers,
        log,
        signal: life.signal,
      }),
    )
    stack.defer(() => life.abort())
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  it('reports what blocks an application while there is no member', async () => {
    await up.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }, { signal })
    const labels = { app: 'web' }
    const template = { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'example/web:1' }] } }
    await up.create(
      services,
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'web', namespace },
        spec: { selector: labels, ports: [{ port: 80 }] },
      },
      { signal },
    )
    const spec = { replicas: 2, selector: { matchLabels: labels }, template }
    await up.create(
      deployments,
      { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace }, spec },
      { signal },
    )
    const told = await until('the reason', async () => {
      const { items } = await up.list<KubeObject>(
        { group: '', version: 'v1', resource: 'events' },
        { namespace, signal },
      )
      return items.find(({ reason }) => reason === 'NoClusterFits')
    })
    expect(told).to.include({ message: 'there is no member cluster' })
    expect((await workload())?.metadata).to.not.have.any.keys('annotations', 'finalizers')
  })

  it('joins a member, which becomes Ready and receives the application', async () => {
    await join('east', 'east')
    await until('east Ready', async () => {
      const { status } = await host.get<MemberCluster>(memberClusters, { name: 'east' }, { signal })
      return status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')
    })
    await until('it serves in east', () => isPlaced({ east: 'Serving' }))
    expect((await workload())?.metadata.annotations).to.not.have.property('kcp.dev/held')
  })

  it('refuses to register the same cluster under another name, and renews it under the same', async () => {
    await join('east', 'east')
    let refused: unknown
    await join('orient', 'east').catch((error: unknown) => (refused = error))
    expect((refused as Error | undefined)?.message).to.contain('registered already, as "east"')
  })

  it('keeps the application in place when another member joins', async () => {
    await join('west', 'west')
    await until('west Ready', async () => {
      const { status } = await host.get<MemberCluster>(memberClusters, { name: 'west' }, { signal })
      return status?.conditions?.some(({ type, status }) => type === 'Schedulable' && status === 'True')
    })
    expect(await placed()).to.deep.equal({ east: 'Serving' })
  })

  it('keeps the old copy while the new target does not exist', async () => {
    await target('mars')
    await until('mars Held', () => isPlaced({ east: 'Serving', mars: 'Held' }))
    expect((await workload())?.metadata.annotations?.['kcp.dev/held']).to.contain('"mars"')
  })

  it('reports in a condition what blocks a move, until the tenant changes the target', async () => {
    const condition = async (): Promise<{ status: string; reason: string; message: string } | undefined> => {
      const { conditions = [] } = ((await workload())?.['status'] ?? {}) as { conditions?: { type: string }[] }
      return conditions.find(({ type }) => type === 'Placed') as Awaited<ReturnType<typeof condition>>
    }
    const found = await until('the condition', condition)
    expect(found).to.include({ status: 'False', reason: 'ClusterNotFound' })
    expect(found.message).to.contain('"mars"')
    await target('east')
    await until('no condition', async () => (await condition()) === undefined && (await isPlaced({ east: 'Serving' })))
  })

  it('keeps the old copy serving until the new one is complete, and then moves', async () => {
    members['west']!.kubelet.hold('web-')
    await target('west')
    await until('west Applied', () => isPlaced({ east: 'Serving', west: 'Applied' }))
    members['west']!.kubelet.release()
    const seen = new Set<string>()
    let fewest = Infinity
    await until(
      'the move',
      async () => {
        const object = cloneJson(await workload())
        const { availableReplicas = 0 } = (object?.['status'] ?? {}) as { availableReplicas?: number }
        fewest = Math.min(fewest, availableReplicas)
        seen.add(JSON.stringify(await placed()))
        return await isPlaced({ west: 'Serving' })
      },
      60_000,
    )
    expect([...seen]).to.include('{"east":"Draining","west":"Serving"}')
    expect(fewest).to.equal(2)
    await until(
      'east clean',
      async () =>
        (await members['east']!.client.list(namespaces, { labelSelector: 'kcp.dev/managed=true', signal })).items
          .length === 0,
    )
    await until('pods of west alone', async () => {
      const { items } = await up.list(pods, { namespace, signal })
      return items.length === 2 && items.every(({ metadata }) => metadata.annotations?.['kcp.dev/member'] === 'west')
    })
  })

  it('follows a Placement of the tenant if nothing is annotated', async () => {
    await up.create(
      placements,
      { apiVersion: 'kcp.dev/v1alpha1', kind: 'Placement', metadata: { name: 'home' }, spec: { clusters: ['east'] } },
      { signal },
    )
    await target(null)
    await until('back in east', () => isPlaced({ east: 'Serving' }), 60_000)
  })

  it('drains a member that is deleted and leaves no object of ours in it', async () => {
    await up.delete(placements, { name: 'home' }, { signal })
    await host.delete(memberClusters, { name: 'east' }, { signal })
    await until(
      'east gone',
      async () => (await host.tryGet(memberClusters, { name: 'east' }, { signal })) === undefined,
      60_000,
    )
    expect(await placed()).to.deep.equal({ west: 'Serving' })
    await until(
      'kcp-system gone',
      async () => (await members['east']!.client.tryGet(namespaces, { name: 'kcp-system' }, { signal })) === undefined,
    )
  })

  it('waits for a member that is away, and releases it when an admin removes it by force', async () => {
    const { cluster } = members['west']!
    await cluster.processes.get('kube-apiserver')!.kill()
    await host.delete(memberClusters, { name: 'west' }, { signal })
    const held = await host.get<MemberCluster>(memberClusters, { name: 'west' }, { signal })
    expect(held.metadata.finalizers).to.deep.equal(['kcp.dev/member'])
    expect((await workload())?.metadata.finalizers).to.deep.equal(['syncer.kcp.dev/west'])
    await host.patch(memberClusters, { name: 'west' }, 'merge', { metadata: { finalizers: null } }, { signal })
    await until('nothing to wait for', async () => (await workload())?.metadata.finalizers === undefined)
    expect((await workload())?.metadata.annotations).to.not.have.property('status.kcp.dev/west')
    expect((await up.list(pods, { namespace, signal })).items).to.be.empty
  })

  it('runs the application nowhere when no member is requested', async () => {
    await target('none')
    await until('no copy', () => isPlaced({}), 60_000)
    await until('no pod', async () => (await up.list(pods, { namespace, signal })).items.length === 0)
  })
})
