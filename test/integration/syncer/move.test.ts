import { expect } from 'chai'
import { cloneJson, type KubeObject } from '#apimachinery/meta/index.ts'
import { memberControllers } from '#cli/roles/member-controllers.ts'
import { createInformer, loadKubeconfig, sharedInformers, type KubeClient } from '#client/index.ts'
import {
  kcpCrds,
  memberClusters,
  placedOn,
  placements,
  workloadKinds,
  type MemberCluster,
  type Placement,
} from '#crds/index.ts'
import { ensureCrds, explainWorkload, PlacementInputs, previewDrain, startOperator } from '#operator/index.ts'
import { joinMember } from '#syncer/index.ts'
import { createLogger } from '#telemetry/index.ts'
import { createPki, createPkiMaterial } from '#virtualapi/index.ts'
import {
  isLongRun,
  itInLongRun,
  kubectl,
  startCluster,
  waitFor,
  type Cluster,
  type ClusterOptions,
} from '#test/support/index.ts'
import { asWildcard, clientOf } from './ordinary-upstream.ts'
import { simulateKubelet, type SimulatedKubelet } from './played-member.ts'

const signal = new AbortController().signal
const namespace = 'shop'
const deployments = { group: 'apps', version: 'v1', resource: 'deployments' }
const statefulSets = { group: 'apps', version: 'v1', resource: 'statefulsets' }
const services = { group: '', version: 'v1', resource: 'services' }
const namespaces = { group: '', version: 'v1', resource: 'namespaces' }
const ingresses = { group: 'networking.k8s.io', version: 'v1', resource: 'ingresses' }
const pods = { group: '', version: 'v1', resource: 'pods' }
const budgets = { group: 'policy', version: 'v1', resource: 'poddisruptionbudgets' }
const autoscalers = { group: 'autoscaling', version: 'v2', resource: 'horizontalpodautoscalers' }
const logicalClusters = { group: 'kcp.dev', version: 'v1alpha1', resource: 'logicalclusters' }

describe('the operator and two members', function () {
  this.timeout(90_000)
  const stack = new AsyncDisposableStack()
  let host: KubeClient
  let up: KubeClient
  let upKubeconfig: string
  /** What each pod of the application `api` uses; undefined: there are no metrics. */
  let cpuPerPod: string | undefined
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
  const setSpec = async (name: string, spec: object): Promise<unknown> =>
    await host.patch(memberClusters, { name }, 'merge', { spec }, { signal })
  const join = async (name: string, cluster: string): Promise<unknown> => {
    const memberKubeconfig = await loadKubeconfig({ file: members[cluster]!.cluster.kubeconfig }, { trusted: true })
    return await joinMember({ name, memberKubeconfig, clusters: host, serviceNetwork: 'Flat', log, signal })
  }

  before(async function () {
    this.timeout(300_000)
    const life = new AbortController()
    const started = async (options: ClusterOptions): Promise<Cluster> => stack.use(await startCluster(options))
    const [hostCluster, upCluster, ofMembers] = await Promise.all([
      started({ name: 'host' }),
      started({ name: 'up', flags: { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] } }),
      Promise.all(['east', 'west'].map((name) => started({ name, controllerManager: true }))),
    ])
    host = await clientOf(hostCluster.kubeconfig, stack)
    up = await clientOf(upCluster.kubeconfig, stack)
    upKubeconfig = upCluster.kubeconfig
    await Promise.all([host, up].map((client) => ensureCrds(client, { crds: kcpCrds(), signal })))
    for (const [index, cluster] of ofMembers.entries()) {
      const client = await clientOf(cluster.kubeconfig, stack)
      members[cluster.name] = {
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
    const advertise = { host: 'kcp.example', port: 7443 }
    const controllers = memberControllers({
      advertise,
      drainSeconds: 2,
      soakSeconds: 1,
      rebalanceSeconds: 1,
      autoscaleSeconds: 1,
    }).filter(({ name }) => name !== 'logical-cluster')
    stack.use(
      await startOperator({
        clusters: host,
        virtual: (basePath) =>
          basePath === '/clusters/*' ? asWildcard(up, 'acme') : withPodMetrics(up, () => cpuPerPod),
        urls: () => ({ url: 'https://kcp.example' }),
        issuer: createPki(await createPkiMaterial()),
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

  it('tells which installation had joined the member before', async () => {
    const memberKubeconfig = await loadKubeconfig({ file: members['east']!.cluster.kubeconfig }, { trusted: true })
    const takenFrom = async (clusters: KubeClient): Promise<string | undefined> =>
      (await joinMember({ name: 'east', memberKubeconfig, clusters, serviceNetwork: 'Flat', log, signal })).takenFrom
    const uidBeside = async (clusters: KubeClient): Promise<string | undefined> =>
      (await clusters.get<KubeObject>(namespaces, { name: 'kube-system' }, { signal })).metadata.uid
    expect(await takenFrom(host)).to.equal(undefined)
    expect(await takenFrom(up)).to.equal(await uidBeside(host))
    expect(await takenFrom(host)).to.equal(await uidBeside(up))
    await up.delete(memberClusters, { name: 'east' }, { signal })
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
    const watched = new AbortController()
    await using stopped = new AsyncDisposableStack()
    stopped.defer(() => watched.abort())
    const shown: KubeObject[] = []
    const states = createInformer<KubeObject>({ client: up, gvr: deployments, log, signal: watched.signal })
    states.onChange(({ after }) => after?.metadata.name === 'web' && shown.push(after as KubeObject))
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
    // What the scheduler does to the old copy is not what the tenant did: GitOps would wait for a paused rollout.
    const statuses = shown.map(({ status }) => JSON.stringify(status))
    expect(statuses.filter((text) => text.includes('Paused'))).to.deep.equal([])
    // Who watches sees the pods of a member as long as the copy, and not longer.
    const countsOf = ({ status }: KubeObject): unknown => (status as { replicas?: number } | undefined)?.replicas
    const after = shown.filter(({ metadata }) => !metadata.finalizers?.includes('syncer.kcp.dev/east')).map(countsOf)
    expect(after)
      .to.deep.equal(after.map(() => 2))
      .and.not.to.deep.equal([])
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

  it('moves a StatefulSet ordinal by ordinal: each ends once, and never runs twice', async () => {
    const labels = { app: 'db' }
    const template = { metadata: { labels }, spec: { containers: [{ name: 'db', image: 'example/db:1' }] } }
    const ref = { namespace, name: 'db' }
    await up.create(
      statefulSets,
      {
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        metadata: { ...ref, annotations: { 'kcp.dev/clusters': 'east' } },
        spec: { replicas: 3, serviceName: 'db', selector: { matchLabels: labels }, template },
      },
      { signal },
    )
    const statesOf = async (): Promise<string> => {
      const { metadata } = await up.get<KubeObject>(statefulSets, ref, { signal })
      const copies = JSON.parse(metadata.annotations?.['kcp.dev/placed-on'] ?? '{}') as Record<
        string,
        { state: string }
      >
      return Object.entries(copies)
        .map(([member, { state }]) => `${member} ${state}`)
        .join()
    }
    await until('it to serve in east', async () => (await statesOf()) === 'east Serving')
    const annotations = { 'kcp.dev/clusters': 'west' }
    await up.patch(statefulSets, ref, 'merge', { metadata: { annotations } }, { signal })
    const podsIn = async (member: string): Promise<KubeObject[]> =>
      (await members[member]!.client.list<KubeObject>(pods, { labelSelector: 'app=db', signal })).items
    const uids = new Map<string, Set<string>>()
    let fewest = Infinity
    await until(
      'it to serve in west',
      async () => {
        // West first: what runs there has ended in east before.
        const west = await podsIn('west')
        const east = await podsIn('east')
        for (const { metadata } of [...west, ...east])
          uids.set(metadata.name ?? '', (uids.get(metadata.name ?? '') ?? new Set()).add(metadata.uid ?? ''))
        const twice = west.filter((pod) => east.some(({ metadata }) => metadata.name === pod.metadata.name))
        expect(twice, 'ordinals that run twice').to.deep.equal([])
        fewest = Math.min(fewest, west.length + east.length)
        return (await statesOf()) === 'west Serving'
      },
      60_000,
    )
    expect([...uids].map(([name, { size }]) => [name, size]).sort()).to.deep.equal([
      ['db-0', 2],
      ['db-1', 2],
      ['db-2', 2],
    ])
    expect(fewest, 'pods that ran at the same time').to.equal(2)
    await until('the whole status', async () => {
      const { status } = await up.get<KubeObject>(statefulSets, ref, { signal })
      return (status as { availableReplicas?: number }).availableReplicas === 3
    })
    await up.delete(statefulSets, ref, { signal })
    await until('it to be gone', async () => (await up.tryGet(statefulSets, ref, { signal })) === undefined)
  })

  itInLongRun(
    'leaves the Ingress in a member that it moves from until clients have forgotten the address',
    async () => {
      const space = 'outside'
      const ref = { namespace: space, name: 'site' }
      const labels = { app: 'site' }
      await up.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: space } }, { signal })
      const move = { drainSeconds: 5, soakSeconds: 1, forwardSeconds: 6 }
      const apiVersion = 'kcp.dev/v1alpha1'
      const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': space } }
      const placement = { apiVersion, kind: 'Placement', metadata: { name: space }, spec: { namespaceSelector, move } }
      await up.create(placements, placement, { signal })
      const template = { metadata: { labels }, spec: { containers: [{ name: 'site', image: 'example/site:1' }] } }
      const spec = { replicas: 1, selector: { matchLabels: labels }, template }
      const metadata = { ...ref, annotations: { 'kcp.dev/clusters': 'east' } }
      await up.create(deployments, { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec }, { signal })
      const ports = [{ port: 80 }]
      const service = { apiVersion: 'v1', kind: 'Service', metadata: ref, spec: { selector: labels, ports } }
      await up.create(services, service, { signal })
      const defaultBackend = { service: { name: 'site', port: { number: 80 } } }
      const ingress = { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: ref, spec: { defaultBackend } }
      await up.create(ingresses, ingress, { signal })

      const copyIn = async (member: string, gvr: typeof ingresses): Promise<KubeObject | undefined> => {
        const { items } = await members[member]!.client.list<KubeObject>(gvr, { signal })
        return items.find((one) => one.metadata.name === 'site')
      }
      const giveAddress = async (member: string, ip: string): Promise<void> => {
        const copy = await until(`the Ingress in ${member}`, () => copyIn(member, ingresses))
        const at = { namespace: copy.metadata.namespace ?? '', name: 'site' }
        const status = { loadBalancer: { ingress: [{ ip }] } }
        await members[member]!.client.patch(ingresses, at, 'merge', { status }, { subresource: 'status', signal })
      }
      const addresses = async (): Promise<string> =>
        JSON.stringify((await up.get<KubeObject>(ingresses, ref, { signal }))['status'])
      const stateIn = async (member: string): Promise<string | undefined> => {
        const object = await up.get<KubeObject>(deployments, ref, { signal })
        return placedOn(object)[member]?.state
      }
      await giveAddress('east', '192.0.2.1')
      await until('the address of east', async () => (await addresses()).includes('192.0.2.1'))
      await until('the copy in east', async () => (await stateIn('east')) === 'Serving')
      const to = { metadata: { annotations: { 'kcp.dev/clusters': 'west' } } }
      await up.patch(deployments, ref, 'merge', to, { signal })
      await giveAddress('west', '192.0.2.2')
      await until('east to forward', async () => (await stateIn('east')) === 'Forwarding', 60_000)
      await until('the pods in east to be gone', async () => (await copyIn('east', deployments)) === undefined)
      await until('the address of west alone', async () => !(await addresses()).includes('192.0.2.1'))
      expect(await addresses()).to.include('192.0.2.2')
      const { metadata: since } = await up.list<KubeObject>(ingresses, { signal })
      for (const gvr of [ingresses, services]) expect(await copyIn('east', gvr), gvr.resource).to.not.equal(undefined)
      await until('the end of the move', async () => (await stateIn('east')) === undefined)
      await until('the end of the Ingress in east', async () => (await copyIn('east', ingresses)) === undefined)
      expect(await copyIn('west', ingresses)).to.not.equal(undefined)
      const last = await up.patch<KubeObject>(
        ingresses,
        ref,
        'merge',
        { metadata: { labels: { end: '' } } },
        { signal },
      )
      const followed = up.watch<KubeObject>(ingresses, { resourceVersion: since.resourceVersion ?? '', signal })
      for await (const { object } of followed) {
        expect(JSON.stringify(object['status']), 'once told no more').to.not.include('192.0.2.1')
        if (object.metadata.resourceVersion === last.metadata.resourceVersion) break
      }
      await up.delete(placements, { name: space }, { signal })
      for (const gvr of [deployments, services, ingresses]) await up.delete(gvr, ref, { signal })
      await until('the end of all in west', async () => (await copyIn('west', deployments)) === undefined)
    },
  )

  /**
   * Watches which pods of an application end in a member from now on; `stop` tells whether each took requests when it
   * ended.
   */
  const endingPods = async (member: string, app: string): Promise<{ stop: () => Promise<string[]> }> => {
    const { client } = members[member]!
    const end = new AbortController()
    const { metadata } = await client.list<KubeObject>(pods, { labelSelector: `app=${app}`, signal })
    const serving = new Map<string, string>()
    const follow = async (): Promise<void> => {
      const from = { resourceVersion: metadata.resourceVersion ?? '', labelSelector: `app=${app}`, signal: end.signal }
      for await (const { object } of client.watch<KubeObject>(pods, from)) {
        const { name = '', deletionTimestamp, labels } = object.metadata
        if (deletionTimestamp !== undefined) serving.set(name, labels?.['kcp.dev/serving'] ?? '')
      }
    }
    const followed = follow().catch((error: unknown) => {
      if (!end.signal.aborted) throw error
    })
    return {
      async stop() {
        end.abort()
        await followed
        return [...serving.values()]
      },
    }
  }

  itInLongRun(
    'divides a Deployment, and divides it again when it is scaled, by hand or by metrics, and when a member leaves and returns',
    async function () {
      this.timeout(300_000)
      const space = 'divided'
      const ref = { namespace: space, name: 'api' }
      const labels = { app: 'api' }
      await up.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: space } }, { signal })
      await up.create(
        placements,
        {
          apiVersion: 'kcp.dev/v1alpha1',
          kind: 'Placement',
          metadata: { name: 'divided' },
          spec: {
            namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': space } },
            replicas: { mode: 'Divide' },
          },
        },
        { signal },
      )
      const resources = { requests: { cpu: '100m' } }
      const template = {
        metadata: { labels },
        spec: { containers: [{ name: 'api', image: 'example/api:1', resources }] },
      }
      const spec = { replicas: 12, selector: { matchLabels: labels }, template }
      await up.create(deployments, { apiVersion: 'apps/v1', kind: 'Deployment', metadata: ref, spec }, { signal })
      const replicasIn = async (member: string): Promise<number> => {
        const { items } = await members[member]!.client.list<KubeObject>(deployments, { signal })
        const copy = items.find(({ metadata }) => metadata.name === 'api')
        return (copy?.['spec'] as { replicas?: number } | undefined)?.replicas ?? 0
      }
      /** As `kubectl rollout status` judges it. */
      const isRolledOut = async (replicas: number): Promise<boolean> => {
        const { metadata, status } = await up.get<KubeObject>(deployments, ref, { signal })
        const counts = status as Record<string, number | undefined>
        return (
          counts['observedGeneration'] === metadata.generation &&
          ['replicas', 'updatedReplicas', 'availableReplicas'].every((field) => counts[field] === replicas)
        )
      }
      const untilDivided = (east: number, west: number): Promise<unknown> =>
        until(
          `${east} in east and ${west} in west`,
          async () =>
            (await replicasIn('east')) === east &&
            (await replicasIn('west')) === west &&
            (await isRolledOut(east + west)),
          90_000,
        )
      const scale = async (replicas: number): Promise<unknown> =>
        await up.patch(deployments, ref, 'merge', { spec: { replicas } }, { subresource: 'scale', signal })
      await untilDivided(6, 6)
      await scale(30)
      await untilDivided(15, 15)
      await scale(6)
      await untilDivided(3, 3)
      await setSpec('west', { taints: [{ key: 'divided', effect: 'NoExecute' }] })
      await untilDivided(6, 0)
      const ended = await endingPods('east', 'api')
      await setSpec('west', { taints: null })
      await untilDivided(3, 3)
      const withdrawn = await ended.stop()
      expect(withdrawn, 'labels of the pods that ended').to.deep.equal(['false', 'false', 'false'])

      const metadata = { namespace: space, name: 'api' }
      const budget = { minAvailable: 4, selector: { matchLabels: labels } }
      await up.create(
        budgets,
        { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata, spec: budget },
        { signal },
      )
      for (const member of ['east', 'west'])
        await until(`the part of the budget in ${member}`, async () => {
          const { items } = await members[member]!.client.list<KubeObject>(budgets, { signal })
          const copy = items.find((one) => one.metadata.name === 'api')
          return (copy?.['spec'] as { minAvailable?: number } | undefined)?.minAvailable === 2
        })
      const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'api' }
      const target = { type: 'Utilization', averageUtilization: 50 }
      const scaler = {
        ...{ scaleTargetRef, minReplicas: 1, maxReplicas: 50 },
        metrics: [{ type: 'Resource', resource: { name: 'cpu', target } }],
        behavior: { scaleDown: { stabilizationWindowSeconds: 0 } },
      }
      await up.create(
        autoscalers,
        { apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler', metadata, spec: scaler },
        { signal },
      )
      const scalingActive = async (): Promise<string | undefined> => {
        const { status } = await up.get<KubeObject>(autoscalers, ref, { signal })
        const { conditions = [] } = (status ?? {}) as { conditions?: { type: string; reason: string }[] }
        return conditions.find(({ type }) => type === 'ScalingActive')?.reason
      }
      await until('the autoscaler to miss metrics', async () => (await scalingActive()) === 'FailedGetResourceMetric')
      // 75 % of what they ask for, then 25 %: at a target of 50 %, half as many again, and then half as many.
      cpuPerPod = '75m'
      await until('the autoscaler to find metrics', async () => (await scalingActive()) === 'ValidMetricFound')
      await until('replicas to be added', async () => (await replicasIn('east')) + (await replicasIn('west')) >= 9)
      cpuPerPod = '50m'
      await until('the number to stay', async () => {
        const { status } = await up.get<KubeObject>(autoscalers, ref, { signal })
        const { currentReplicas, desiredReplicas, currentMetrics } = status as Record<string, unknown>
        return currentReplicas === desiredReplicas && JSON.stringify(currentMetrics).includes('"averageUtilization":50')
      })
      cpuPerPod = '1m'
      await up.patch(autoscalers, ref, 'merge', { spec: { minReplicas: 6 } }, { signal })
      await untilDivided(3, 3)
      const { status: scaled } = await up.get<KubeObject>(autoscalers, ref, { signal })
      expect(scaled).to.deep.include({ desiredReplicas: 6 })
      await up.delete(autoscalers, ref, { signal })
      cpuPerPod = undefined

      for (const { kubelet } of Object.values(members)) kubelet.hold('api-')
      const bad = { progressDeadlineSeconds: 5, template: { spec: { containers: [{ name: 'api', image: 'bad:1' }] } } }
      await up.patch(deployments, ref, 'strategic', { spec: bad }, { signal })
      const stopped = await until('the rollout to stop in all members', async () => {
        const { status } = await up.get<KubeObject>(deployments, ref, { signal })
        const { conditions = [] } = status as { conditions?: { reason: string }[] }
        const isOver = conditions.some(({ reason }) => reason === 'ProgressDeadlineExceeded')
        return isOver && (status as { updatedReplicas?: number }).updatedReplicas === 2 && status
      })
      expect(stopped).to.deep.include({ replicas: 8, availableReplicas: 6 })
      const told = await kubectl(upKubeconfig, ['rollout', 'status', 'deployment/api', '-n', space], { expectCode: 1 })
      expect(told.stderr).to.contain('exceeded its progress deadline')
      for (const { kubelet } of Object.values(members)) kubelet.release()
      await untilDivided(3, 3)

      await up.delete(deployments, ref, { signal })
      await until('it to be gone', async () => (await up.tryGet(deployments, ref, { signal })) === undefined)
      await up.delete(placements, { name: 'divided' }, { signal })
    },
  )

  it('follows a Placement of the tenant if nothing is annotated', async () => {
    await up.create(
      placements,
      { apiVersion: 'kcp.dev/v1alpha1', kind: 'Placement', metadata: { name: 'home' }, spec: { clusters: ['east'] } },
      { signal },
    )
    await target(null)
    await until('back in east', () => isPlaced({ east: 'Serving' }), 60_000)
    const { status } = await until('the status of the Placement', async () => {
      const found = await up.get<Placement>(placements, { name: 'home' }, { signal })
      return found.status?.workloads === 1 ? found : undefined
    })
    expect(status).to.deep.include({ held: 0, clusters: [{ name: 'east', workloads: 1 }], rejected: [] })
    expect(status?.conditions?.[0]).to.include({ type: 'Scheduled', status: 'True', reason: 'AllPlaced' })
  })

  it('tells what a drain would do, and why the application runs where it does, without changing anything', async () => {
    await up.delete(placements, { name: 'home' }, { signal })
    const life = new AbortController()
    const informerOptions = { log, signal: life.signal }
    const ofTenants = asWildcard(up, 'acme')
    using inputs = new PlacementInputs({
      informers: sharedInformers(host, informerOptions),
      tenantInformers: sharedInformers(ofTenants, { ...informerOptions, allClusters: true }),
    })
    await inputs.synced(signal)
    const kind = workloadKinds.find((row) => row.kind === 'Deployment')!
    const web = { kind, cluster: 'acme', namespace, name: 'web' }
    const explained = explainWorkload(inputs, web)!
    expect(explained.members.map(({ cluster, chosen, current }) => [cluster, chosen, current])).to.deep.equal([
      ['east', true, true],
      ['west', false, false],
    ])
    expect(explained.source).to.equal('no rule')
    expect(explained.balance).to.equal('is not moved: no Placement of the administrators turns rebalancing on')
    const [preview] = previewDrain(inputs, 'east')
    expect(preview).to.deep.equal({
      logicalCluster: 'acme',
      kind: 'Deployment',
      namespace,
      name: 'web',
      to: ['west'],
    })
    expect(await placed()).to.deep.equal({ east: 'Serving' })
    life.abort()
  })

  const drained = async (name: string): Promise<string | undefined> => {
    const { status } = await host.get<MemberCluster>(memberClusters, { name }, { signal })
    const found = status?.conditions?.find(({ type }) => type === 'Drained')
    return found && `${found.status} ${found.reason}`
  }

  it('says what a drain cannot move and why, and moves it when there is room', async () => {
    await setSpec('west', { capacity: { limits: { pods: '1' } } })
    await setSpec('east', { state: 'Draining' })
    await until('the drain to be Held', async () => (await drained('east')) === 'False Held', 60_000)
    const { status } = await host.get<MemberCluster>(memberClusters, { name: 'east' }, { signal })
    const { name, state, message } = status!.remaining![0]!
    expect([status!.held, name, state]).to.deep.equal([1, 'web', 'Held'])
    expect(message).to.contain('member cluster "west" has no room: it needs pods=3; free: pods=1 of pods=1')
    expect(await placed()).to.deep.equal({ east: 'Serving' })
    await setSpec('west', { capacity: null })
    await until('it moves', () => isPlaced({ west: 'Serving' }), 60_000)
    const history = JSON.parse((await workload())?.metadata.annotations?.['kcp.dev/placement-history'] ?? '[]') as {
      from: string[]
      to: string[]
      cause: string
    }[]
    expect(history[0]).to.deep.include({ from: ['east'], to: ['west'], cause: 'Drain' })
    const { items } = await up.list<KubeObject>({ group: '', version: 'v1', resource: 'events' }, { namespace, signal })
    const messages = items.map(({ reason, message }) => `${String(reason)}: ${String(message)}`)
    expect(messages).to.include(
      'Moving: moves from member cluster "east" to "west" (Drain): member cluster "east" is being drained',
    )
    expect(messages).to.include('Placed: runs on member cluster "west"')
    await until('east Drained', async () => (await drained('east')) === 'True Empty')
    await setSpec('east', { state: 'Active' })
    await until('east takes workloads', async () => (await drained('east')) === undefined)
  })

  it('moves what does not tolerate a taint of effect NoExecute, and keeps away from it', async () => {
    await setSpec('west', { taints: [{ key: 'repair', effect: 'NoExecute' }] })
    await until('back in east', () => isPlaced({ east: 'Serving' }), 60_000)
    await setSpec('west', { taints: null })
  })

  it('moves a workload from a fuller to an emptier member once an admin turns that on, and tells why', async () => {
    await setSpec('east', { capacity: { limits: { pods: '4' } } })
    await setSpec('west', { capacity: { limits: { pods: '40' } } })
    const rebalance = { thresholdPercent: 20, cooldownSeconds: 0 }
    const metadata = { name: 'balance' }
    const placement = {
      apiVersion: 'kcp.dev/v1alpha1' as const,
      kind: 'Placement' as const,
      metadata,
      spec: { rebalance },
    }
    await host.create<Placement>(placements, placement, { signal })
    await until('it moves', () => isPlaced({ west: 'Serving' }), 60_000)
    const { items } = await up.list<KubeObject>({ group: '', version: 'v1', resource: 'events' }, { namespace, signal })
    expect(items.map(({ reason, message }) => `${String(reason)}: ${String(message)}`)).to.include(
      'Rebalanced: moves from member cluster "east" to "west" (Rebalance): member cluster "east" is 75 % full, "west" will be 8 % full with this workload; Placement "balance" moves workloads for a difference of 20 percentage points',
    )
    await host.delete(placements, metadata, { signal })
    await setSpec('east', { capacity: null })
    await setSpec('west', { capacity: null })
  })

  it('does not let a tenant choose a member that an admin does not allow', async () => {
    const spec = { clusters: ['west'] }
    await host.create(
      placements,
      { apiVersion: 'kcp.dev/v1alpha1', kind: 'Placement', metadata: { name: 'in-west' }, spec },
      { signal },
    )
    await target('east')
    await until('east Held', () => isPlaced({ west: 'Serving', east: 'Held' }))
    expect((await workload())?.metadata.annotations?.['kcp.dev/held']).to.equal(
      'Placement "in-west" of the administrators does not allow member cluster "east"',
    )
    await host.delete(placements, { name: 'in-west' }, { signal })
    await target(null)
    await until('west alone', () => isPlaced({ west: 'Serving' }))
  })

  // Two and a half minutes: a member is lost after 40 s, the Placement tolerates 41 s, and the return takes as long.
  if (isLongRun)
    it('starts the application elsewhere when its member does not answer, and keeps one copy when that is back', async () => {
      await up.create(
        placements,
        {
          apiVersion: 'kcp.dev/v1alpha1',
          kind: 'Placement',
          metadata: { name: 'hasty' },
          spec: { failover: { tolerationSeconds: 41 } },
        },
        { signal },
      )
      const { cluster } = members['west']!
      await cluster.processes.get('kube-apiserver')!.kill()
      await until('east serves', async () => (await placed())['east'] === 'Serving', 120_000)
      const { status } = await host.get<MemberCluster>(memberClusters, { name: 'west' }, { signal })
      expect(status?.conditions?.find(({ type }) => type === 'Ready')).to.include({ status: 'Unknown', reason: 'Lost' })
      await up.delete(placements, { name: 'hasty' }, { signal })
      await cluster.processes.get('kube-apiserver')!.start()
      await until('one copy', () => isPlaced({ east: 'Serving' }), 90_000)
      await setSpec('east', { state: 'Draining' })
      await until('back in west', () => isPlaced({ west: 'Serving' }), 90_000)
      await setSpec('east', { state: 'Active' })
    }).timeout(300_000)

  it('drains a member that is deleted and leaves no object of ours in it', async () => {
    await host.delete(memberClusters, { name: 'west' }, { signal })
    await until(
      'west gone',
      async () => (await host.tryGet(memberClusters, { name: 'west' }, { signal })) === undefined,
      60_000,
    )
    expect(await placed()).to.deep.equal({ east: 'Serving' })
    await until(
      'kcp-system gone',
      async () => (await members['west']!.client.tryGet(namespaces, { name: 'kcp-system' }, { signal })) === undefined,
    )
  })

  it('waits for a member that is away, and releases it when an admin removes it by force', async () => {
    const { cluster } = members['east']!
    await cluster.processes.get('kube-apiserver')!.kill()
    await host.delete(memberClusters, { name: 'east' }, { signal })
    const held = await host.get<MemberCluster>(memberClusters, { name: 'east' }, { signal })
    expect(held.metadata.finalizers).to.deep.equal(['kcp.dev/member'])
    expect((await workload())?.metadata.finalizers).to.deep.equal(['syncer.kcp.dev/east'])
    await host.patch(memberClusters, { name: 'east' }, 'merge', { metadata: { finalizers: null } }, { signal })
    await until('nothing to wait for', async () => (await workload())?.metadata.finalizers === undefined)
    expect((await workload())?.metadata.annotations).to.not.have.property('status.kcp.dev/east')
    expect((await up.list(pods, { namespace, signal })).items).to.be.empty
  })

  it('runs the application nowhere when no member is requested', async () => {
    await target('none')
    await until('no copy', () => isPlaced({}), 60_000)
    await until('no pod', async () => (await up.list(pods, { namespace, signal })).items.length === 0)
  })
})

/**
 * A client of an upstream that tells what each pod of the application `api` uses; without a value it has no such API.
 */
function withPodMetrics(client: KubeClient, cpuPerPod: () => string | undefined): KubeClient {
  return new Proxy(client, {
    get(target, property) {
      if (property === 'list')
        return async (...[gvr, options]: Parameters<KubeClient['list']>): Promise<unknown> => {
          const cpu = cpuPerPod()
          if (gvr.group !== 'metrics.k8s.io' || cpu === undefined) return await target.list(gvr, options)
          const { items } = await target.list<KubeObject>(pods, { ...options, labelSelector: 'app=api' })
          const measured = {
            timestamp: new Date().toISOString(),
            window: '0s',
            containers: [{ name: 'api', usage: { cpu } }],
          }
          return { metadata: {}, items: items.map(({ metadata }) => ({ metadata, ...measured })) }
        }
      const value: unknown = Reflect.get(target, property)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
