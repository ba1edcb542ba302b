import { expect } from 'chai'
import { clusterIdOf, type KubeObject } from '#apimachinery/meta/index.ts'
import { memberLoss } from '#operator/member-cluster/apply.ts'
import { asWildcard, clientOf, oneCluster } from './ordinary-upstream.ts'
import { simulateKubelet, type SimulatedKubelet } from './played-member.ts'
import { startCluster, waitFor, type Cluster, type ClusterOptions } from '#test/support/index.ts'
import { sharedInformers, type KubeClient } from '#client/index.ts'
import {
  kcpCrds,
  locatorAnnotation,
  managedLabel,
  memberClusters,
  memberStatusAnnotation,
  placedOnAnnotation,
  syncerFinalizer,
  type CopyState,
} from '#crds/index.ts'
import { ensureCrds, lostMembersController, startOperator } from '#operator/index.ts'
import { createLogger } from '#telemetry/index.ts'
import { createPki, createPkiMaterial } from '#virtualapi/index.ts'
import { startSyncer } from '#syncer/syncer.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { createUpstream, type Upstream } from '#syncer/context/upstream.ts'

const namespace = 'shop'
const signal = new AbortController().signal

function web(image: string, states: Record<string, CopyState>): KubeObject {
  const labels = { app: 'web' }
  const container = {
    name: 'web',
    image,
    envFrom: [{ configMapRef: { name: 'settings' } }],
    env: [{ name: 'NS', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } }],
  }
  const placed = Object.fromEntries(
    Object.entries(states).map(([member, state]) => [member, { state, since: new Date().toISOString() }]),
  )
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace, annotations: { [placedOnAnnotation]: JSON.stringify(placed) } },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [container] } },
    },
  }
}

describe('a syncer between a logical cluster and real members', function () {
  this.timeout(60_000)
  const ids = oneCluster('acme')
  const stack = new AsyncDisposableStack()
  const down = `${ids.id}-${namespace}`
  let up: KubeClient
  let upstream: Upstream
  const members: Record<string, { client: KubeClient; kubelet: SimulatedKubelet; cluster: Cluster }> = {}

  before(async function () {
    this.timeout(300_000)
    const life = new AbortController()
    const log = createLogger({ level: (process.env['KCP_TEST_LOG'] as 'debug' | undefined) ?? 'error' })
    const upstreamFlags = { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] }
    const started = async (options: ClusterOptions): Promise<Cluster> => stack.use(await startCluster(options))
    const [upCluster, ofMembers] = await Promise.all([
      started({ name: 'up', flags: upstreamFlags }),
      Promise.all(['east', 'west'].map((name) => started({ name, controllerManager: true }))),
    ])
    up = await clientOf(upCluster.kubeconfig, stack)
    stack.defer(() => life.abort())
    const informers = sharedInformers(asWildcard(up, 'acme'), { allClusters: true, log, signal: life.signal })
    upstream = createUpstream({ informers, client: () => up, ids })
    await ensureCrds(up, { crds: kcpCrds(), signal })
    const hostInformers = sharedInformers(up, { log, signal: life.signal })
    stack.use(
      await startOperator({
        clusters: up,
        virtual: (basePath) => (basePath === '/clusters/*' ? asWildcard(up, 'acme') : up),
        urls: () => ({ url: 'https://kcp.example' }),
        issuer: createPki(await createPkiMaterial()),
        controllers: [lostMembersController()],
        log,
        signal: life.signal,
      }),
    )
    for (const [index, cluster] of ofMembers.entries()) {
      const { name } = cluster
      const object = { apiVersion: 'kcp.dev/v1alpha1', kind: 'MemberCluster', metadata: { name } }
      await up.create(memberClusters, object, { signal })
      const client = await clientOf(cluster.kubeconfig, stack)
      const kubelet = simulateKubelet(client, { subnet: `10.9${index}.0`, signal: life.signal })
      const loss = memberLoss(name, hostInformers)
      const member = { name, id: `${name}member`, serviceNetwork: 'Flat' as const, loss }
      stack.use(
        startSyncer({
          member,
          upstream,
          downstream: client,
          apiAddress: { host: 'kcp.example', port: 7443 },
          nameserver: '10.0.0.53',
          log,
          signal: life.signal,
        }),
      )
      members[name] = { client, kubelet, cluster }
    }
    stack.defer(() => life.abort())
    await up.create(gvrs.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }, { signal })
    await up.create(
      gvrs.configmaps,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace }, data: { a: '1' } },
      { signal },
    )
    await up.create(
      gvrs.configmaps,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'unused', namespace }, data: { a: '1' } },
      { signal },
    )
    const ports = [{ port: 80, targetPort: 8080 }]
    await up.create(
      gvrs.services,
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'web', namespace },
        spec: { selector: { app: 'web' }, ports },
      },
      { signal },
    )
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  const get = async (
    client: KubeClient,
    resource: keyof typeof gvrs,
    space: string,
    name: string,
  ): Promise<KubeObject | undefined> =>
    await client.tryGet(gvrs[resource], space === '' ? { name } : { namespace: space, name }, { signal })
  const list = async (client: KubeClient, resource: keyof typeof gvrs, space: string): Promise<KubeObject[]> =>
    (await client.list(gvrs[resource], { namespace: space, signal })).items
  const until = async <T>(what: string, attempt: () => Promise<T | undefined | false>): Promise<T> => {
    const found = await waitFor(async () => (await attempt()) || undefined, { what, deadlineMs: 20_000 })
    return found
  }
  const place = async (states: Record<string, CopyState>): Promise<void> => {
    const { annotations } = web('', states).metadata
    await up.patch(gvrs.deployments, { namespace, name: 'web' }, 'merge', { metadata: { annotations } }, { signal })
  }
  const status = (object: KubeObject | undefined): Record<string, unknown> =>
    (object?.['status'] ?? {}) as Record<string, unknown>

  it('copies a Deployment and the objects it refers to into the member, and nothing else', async () => {
    await up.create(gvrs.deployments, web('example/web:1', { east: 'Syncing' }), { signal })
    const copy = await until('the copy', () => get(members['east']!.client, 'deployments', down, 'web'))
    expect(JSON.stringify(copy['spec'])).to.contain('"value":"shop"').and.contain('kcp.example')
    expect(await get(members['east']!.client, 'configmaps', down, 'settings')).to.have.nested.property('data.a', '1')
    expect(await get(members['east']!.client, 'configmaps', down, 'unused')).to.equal(undefined)
    const service = await until('the service', () => get(members['east']!.client, 'services', down, 'web'))
    expect(service).to.have.deep.nested.property('spec.selector', { app: 'web', 'kcp.dev/serving': 'true' })
    expect(await get(members['west']!.client, 'namespaces', '', down)).to.equal(undefined)
  })

  it('copies status, ReplicaSets, pods and endpoints up as if the tenant’s own cluster had made them', async () => {
    await until('the status, of what is asked for now', async () => {
      const object = await get(up, 'deployments', namespace, 'web')
      const seen = status(object)
      return seen['availableReplicas'] === 2 && seen['observedGeneration'] === object?.metadata.generation && object
    })
    const pods = await until('pods', async () => {
      const found = await list(up, 'pods', namespace)
      return found.length === 2 && found.every((pod) => status(pod)['phase'] === 'Running') && found
    })
    const [replicaSet] = await list(up, 'replicasets', namespace)
    expect(replicaSet!.metadata.annotations).to.have.property('deployment.kubernetes.io/revision', '1')
    expect(pods[0]!.metadata.ownerReferences?.[0]?.uid).to.equal(replicaSet!.metadata.uid)
    for (const object of [...pods, replicaSet!]) {
      expect(JSON.stringify({ spec: object['spec'], labels: object.metadata.labels })).to.not.match(/kcp/)
    }
    const [slice] = await until('endpoints', async () => {
      const found = await list(up, 'endpointslices', namespace)
      return (found[0]?.['endpoints'] as unknown[] | undefined)?.length === 2 && found
    })
    expect(slice!.metadata.annotations).to.have.property('kcp.dev/member', 'east')
  })

  it('copies a changed ConfigMap, a scale and a pod deletion down', async () => {
    await up.patch(gvrs.configmaps, { namespace, name: 'settings' }, 'merge', { data: { a: '2' } }, { signal })
    await until(
      'the new data',
      async () =>
        ((await get(members['east']!.client, 'configmaps', down, 'settings'))?.['data'] as { a?: string } | undefined)
          ?.a === '2',
    )
    await up.patch(gvrs.deployments, { namespace, name: 'web' }, 'merge', { spec: { replicas: 3 } }, { signal })
    const pods = await until('three pods', async () => {
      const found = await list(up, 'pods', namespace)
      return found.length === 3 && found
    })
    const { name = '', annotations } = pods[0]!.metadata
    await up.delete(gvrs.pods, { namespace, name }, { signal })
    await until('the pod replaced', async () => {
      const found = await list(members['east']!.client, 'pods', down)
      return found.length === 3 && found.every(({ metadata }) => metadata.uid !== annotations?.['kcp.dev/member-uid'])
    })
    await until('three pods again', async () => (await list(up, 'pods', namespace)).length === 3)
  })

  it('shows a pod as Terminating until it is deleted in the member', async () => {
    const { client, kubelet } = members['east']!
    const scale = async (replicas: number): Promise<void> => {
      await up.patch(gvrs.deployments, { namespace, name: 'web' }, 'merge', { spec: { replicas } }, { signal })
    }
    const arePods = (count: number) => async () => {
      const found = await list(up, 'pods', namespace)
      return (
        found.length === count &&
        found.every((pod) => pod.metadata.deletionTimestamp === undefined && status(pod)['phase'] === 'Running')
      )
    }
    await until('three pods that run', arePods(3))
    kubelet.hold('web')
    await scale(2)
    const going = await until('one that is going', async () =>
      (await list(up, 'pods', namespace)).find(({ metadata }) => metadata.deletionTimestamp !== undefined),
    )
    const { name = '', deletionGracePeriodSeconds } = going.metadata
    expect(await get(client, 'pods', down, name)).to.have.nested.property(
      'metadata.deletionGracePeriodSeconds',
      deletionGracePeriodSeconds,
    )
    kubelet.release()
    await until('the two that are left', arePods(2))
    await scale(3)
    await until('three pods again', arePods(3))
  })

  it('keeps the rollout history over a rollout and its undo', async () => {
    const template = (image: string): object => ({
      spec: { template: { spec: { containers: [{ name: 'web', image }] } } },
    })
    await up.patch(gvrs.deployments, { namespace, name: 'web' }, 'strategic', template('example/web:2'), { signal })
    const revisions = async (): Promise<Record<string, unknown>> =>
      Object.fromEntries(
        (await list(up, 'replicasets', namespace)).map((one) => [
          one.metadata.annotations?.['deployment.kubernetes.io/revision'] ?? '',
          (one['spec'] as { replicas: number }).replicas,
        ]),
      )
    await until('revision 2', async () => {
      const seen = await revisions()
      return seen['2'] === 3 && seen['1'] === 0
    })
    await up.patch(gvrs.deployments, { namespace, name: 'web' }, 'strategic', template('example/web:1'), { signal })
    await until('revision 3 in place of 1', async () => {
      const seen = await revisions()
      return seen['3'] === 3 && seen['2'] === 0 && seen['1'] === undefined
    })
    expect(await list(up, 'replicasets', namespace)).to.have.length(2)
  })

  it('records annotations of a Deployment with its revisions, and where it should run with all of them', async () => {
    const annotate = async (annotations: Record<string, string | null>): Promise<void> => {
      await up.patch(gvrs.deployments, { namespace, name: 'web' }, 'merge', { metadata: { annotations } }, { signal })
    }
    const seen = async (): Promise<string[]> =>
      (await list(up, 'replicasets', namespace))
        .map(({ metadata: { annotations = {} } }) =>
          ['deployment.kubernetes.io/revision', 'example.com/owner', 'kcp.dev/clusters']
            .map((name) => annotations[name] ?? '-')
            .join(' '),
        )
        .sort()
    await annotate({ 'example.com/owner': 'me', 'kcp.dev/clusters': 'east' })
    await until('both', async () => (await seen()).join() === '2 - east,3 me east')
    await annotate({ 'example.com/owner': null, 'kcp.dev/clusters': null })
    await until('both without', async () => (await seen()).join() === '2 - -,3 me -')
  })

  it('copies the endpoints of each member to the other while an application is in both', async () => {
    await place({ east: 'Serving', west: 'Syncing' })
    const known = async (member: string): Promise<unknown> =>
      JSON.parse(
        (await get(up, 'services', namespace, 'web'))?.metadata.annotations?.[`status.kcp.dev/${member}`] ?? '{}',
      )
    for (const member of ['east', 'west']) {
      await until(
        `six endpoints known in ${member}`,
        async () => JSON.stringify(await known(member)) === '{"endpoints":{"east":3,"west":3}}',
      )
    }
    const object = await until('the sum', async () => {
      const seen = await get(up, 'deployments', namespace, 'web')
      return status(seen)['availableReplicas'] === 6 && seen
    })
    expect(object.metadata.finalizers).to.include.members([syncerFinalizer('east'), syncerFinalizer('west')])
    await until(
      'one ReplicaSet with six pods',
      async () =>
        (await list(up, 'replicasets', namespace)).filter((one) => (one['spec'] as { replicas: number }).replicas === 6)
          .length === 1,
    )
  })

  it('shows Events of a ReplicaSet on the one upstream, whatever its name in the member', async () => {
    const { client } = members['west']!
    const [own] = await until('the ReplicaSets in west', async () => {
      const found = await list(client, 'replicasets', down)
      return found.length > 0 && found
    })
    const names = (await list(up, 'replicasets', namespace)).map(({ metadata }) => metadata.name)
    expect(names).not.to.include(own!.metadata.name)
    const { name, uid } = own!.metadata
    const involvedObject = { apiVersion: 'apps/v1', kind: 'ReplicaSet', namespace: down, name, uid }
    const metadata = { name: 'refused', namespace: down }
    const now = new Date().toISOString().replace(/\.\d+/, '')
    const event = { type: 'Warning', reason: 'FailedCreate', message: 'exceeded quota', firstTimestamp: now }
    const object = { apiVersion: 'v1', kind: 'Event', metadata, involvedObject, ...event, lastTimestamp: now }
    const events = { group: '', version: 'v1', resource: 'events' }
    await client.create(events, object, { signal })
    const seen = await until('the Event', () =>
      up.tryGet<KubeObject>(events, { namespace, name: 'refused' }, { signal }),
    )
    expect(names).to.include((seen['involvedObject'] as { name?: string }).name)
  })

  it('makes the pods and endpoints of a lost member not ready until it answers, and leaves no Service without endpoints', async () => {
    const setLost = async (name: string, isLost: boolean): Promise<void> => {
      const reason = isLost ? 'Lost' : 'Answers'
      const lastTransitionTime = new Date().toISOString().replace(/\.\d+/, '')
      const ready = { type: 'Ready', status: isLost ? 'Unknown' : 'True', reason, message: '', lastTransitionTime }
      const patch = { status: { conditions: [ready] } }
      await up.patch(memberClusters, { name }, 'merge', patch, { subresource: 'status', signal })
    }
    const podsAre = async (member: string, expected: string): Promise<boolean> => {
      const pods = (await list(up, 'pods', namespace)).filter(
        ({ metadata }) => metadata.annotations?.['kcp.dev/member'] === member,
      )
      const ready = (pod: KubeObject): unknown =>
        (status(pod)['conditions'] as { type: string; status: string }[]).find(({ type }) => type === 'Ready')?.status
      return pods.length > 0 && pods.every((pod) => ready(pod) === expected)
    }
    const readyEndpoints = async (client: KubeClient, space: string, member: string, remote = true): Promise<number> =>
      (await list(client, 'endpointslices', space))
        .filter(
          ({ metadata: { labels, annotations } }) => (remote ? labels : annotations)?.['kcp.dev/member'] === member,
        )
        .flatMap((slice) => (slice['endpoints'] ?? []) as { conditions: { ready?: boolean } }[])
        .filter(({ conditions }) => conditions.ready === true).length
    const [east, west] = ['east', 'west'].map((name) => members[name]!.client)
    await until('both serve', async () => (await podsAre('east', 'True')) && (await podsAre('west', 'True')))
    await until('remote ones', async () => (await readyEndpoints(west!, down, 'east')) === 3)

    await setLost('east', true)
    await until('its pods not Ready', () => podsAre('east', 'False'))
    await until('its endpoints not ready', async () => (await readyEndpoints(up, namespace, 'east', false)) === 0)
    await until('also in west', async () => (await readyEndpoints(west!, down, 'east')) === 0)
    expect(await podsAre('west', 'True')).to.equal(true)
    expect(await readyEndpoints(up, namespace, 'west', false)).to.equal(3)

    await setLost('west', true)
    await until('no endpoint ready', async () => (await readyEndpoints(up, namespace, 'west', false)) === 0)
    // The last ones stay in the other member.
    expect(await readyEndpoints(east!, down, 'west')).to.equal(3)
    await setLost('west', false)
    await setLost('east', false)
    await until('Ready again', async () => (await podsAre('east', 'True')) && (await podsAre('west', 'True')))
    await until('all endpoints', async () => (await readyEndpoints(west!, down, 'east')) === 3)
    expect(await readyEndpoints(up, namespace, 'east', false)).to.equal(3)
  })

  it('removes endpoints of a draining copy from both members while its pods still run', async () => {
    await place({ east: 'Draining', west: 'Serving' })
    await until('no endpoint of east', async () => {
      const { annotations = {} } = (await get(up, 'services', namespace, 'web'))?.metadata ?? {}
      return ['east', 'west'].every((member) => annotations[`status.kcp.dev/${member}`] === '{"endpoints":{"west":3}}')
    })
    expect(await list(members['east']!.client, 'pods', down)).to.have.length(3)
  })

  it('leaves a member clean after the copy is gone', async () => {
    await place({ east: 'Terminating', west: 'Serving' })
    await until(
      'the finalizer of east gone',
      async () =>
        !(await get(up, 'deployments', namespace, 'web'))?.metadata.finalizers?.includes(syncerFinalizer('east')),
    )
    await until(
      'the namespace in east gone',
      async () => (await get(members['east']!.client, 'namespaces', '', down)) === undefined,
    )
    await until('three pods left upstream', async () => (await list(up, 'pods', namespace)).length === 3)
    await until(
      'status of west alone',
      async () => status(await get(up, 'deployments', namespace, 'web'))['replicas'] === 3,
    )
  })

  it('copies token Secrets down as Opaque ones, which the member’s controllers do not touch', async () => {
    const space = 'tokens'
    const east = members['east']!.client
    await up.create(gvrs.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: space } }, { signal })
    const account = 'kubernetes.io/service-account.name'
    for (const [name, of] of [
      ['own', 'default'],
      ['lost', 'nobody'],
    ] as const) {
      const metadata = { name, namespace: space, annotations: { [account]: of } }
      const type = 'kubernetes.io/service-account-token'
      const data = { token: Buffer.from(`upstream ${name}`).toString('base64') }
      await up.create(gvrs.secrets, { apiVersion: 'v1', kind: 'Secret', metadata, type, data }, { signal })
    }
    const object = web('example/web:1', { east: 'Syncing' })
    const spec = object['spec'] as { template: { spec: { containers: { envFrom: object[] }[] } } }
    for (const container of spec.template.spec.containers)
      container.envFrom = ['own', 'lost'].map((name) => ({ secretRef: { name } }))
    await up.create(gvrs.deployments, { ...object, metadata: { ...object.metadata, namespace: space } }, { signal })
    const below = `${ids.id}-${space}`
    await until('the copy', () => get(east, 'deployments', below, 'web'))
    for (const name of ['own', 'lost']) {
      const copy = await until(`the copy of ${name}`, () => get(east, 'secrets', below, name))
      expect(copy['type']).to.equal('Opaque')
      expect(copy['data']).to.deep.equal({ token: Buffer.from(`upstream ${name}`).toString('base64') })
      expect(copy.metadata.annotations).not.to.have.property(account)
    }
  })

  it('copies the pull Secrets of the ServiceAccount that a workload uses', async () => {
    const space = 'tokens'
    const secret = { apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/dockerconfigjson' }
    for (const name of ['pull', 'later']) {
      const data = { '.dockerconfigjson': Buffer.from(`{"auths":{"${name}.example":{}}}`).toString('base64') }
      await up.create(gvrs.secrets, { ...secret, metadata: { name, namespace: space }, data }, { signal })
    }
    const account = { namespace: space, name: 'default' }
    const object = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: account }
    await up.create(gvrs.serviceaccounts, object, { signal })
    for (const name of ['pull', 'later']) {
      await up.patch(gvrs.serviceaccounts, account, 'merge', { imagePullSecrets: [{ name }] }, { signal })
      await until(`the copy of ${name}`, () => get(members['east']!.client, 'secrets', `${ids.id}-${space}`, name))
    }
    await until(
      'the Secret that is not used any more gone',
      async () => (await get(members['east']!.client, 'secrets', `${ids.id}-${space}`, 'pull')) === undefined,
    )
  })

  it('replaces an immutable copy of a deleted object by that of the new one of its name', async () => {
    const space = 'tokens'
    const east = members['east']!.client
    const below = { name: 'fixed', namespace: `${ids.id}-${space}` }
    const fixed = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'fixed', namespace: space } }
    await up.create(gvrs.configmaps, { ...fixed, data: { a: 'new' } }, { signal })
    const path = '/spec/template/spec/containers/0/envFrom/-'
    const added = { op: 'add', path, value: { configMapRef: { name: 'fixed' } } }
    await up.patch(gvrs.deployments, { namespace: space, name: 'web' }, 'json', [added], { signal })
    const copy = await until('the copy', () => get(east, 'configmaps', below.namespace, 'fixed'))
    // As if it had been deleted and created again while the member did not answer.
    const locator = JSON.parse(copy.metadata.annotations?.[locatorAnnotation] ?? '{}') as object
    const annotations = { [locatorAnnotation]: JSON.stringify({ ...locator, uid: 'that of the older one' }) }
    const older = { metadata: { annotations }, immutable: true, data: { a: 'old' } }
    await east.patch(gvrs.configmaps, below, 'merge', older, { signal })
    await until('the new data', async () => {
      const now = await get(east, 'configmaps', below.namespace, 'fixed')
      return (now?.['data'] as { a?: string } | undefined)?.a === 'new' && now?.metadata.uid !== copy.metadata.uid
    })
  })

  it('reports a ConfigMap that cannot be synced only while that is so', async () => {
    const space = 'tokens'
    const east = members['east']!.client
    const below = { name: 'clash', namespace: `${ids.id}-${space}` }
    const metadata = { ...below, labels: { [managedLabel]: 'true' } }
    await east.create(gvrs.configmaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata }, { signal })
    // The syncer has heard of it once it answers what happened afterwards.
    const fixed = async (): Promise<string | undefined> =>
      (await get(east, 'configmaps', below.namespace, 'fixed'))?.metadata.uid
    const deleted = await fixed()
    await east.delete(gvrs.configmaps, { name: 'fixed', namespace: below.namespace }, { signal })
    await until('the copy again', async () => ![undefined, deleted].includes(await fixed()))
    const ref = { name: 'clash', namespace: space }
    await up.create(gvrs.configmaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: ref }, { signal })
    const added = {
      op: 'add',
      path: '/spec/template/spec/containers/0/envFrom/-',
      value: { configMapRef: { name: 'clash' } },
    }
    await up.patch(gvrs.deployments, { namespace: space, name: 'web' }, 'json', [added], { signal })
    const said = async (): Promise<string | undefined> =>
      (await get(up, 'configmaps', space, 'clash'))?.metadata.annotations?.[memberStatusAnnotation('east')]
    expect(await until('the error', said)).to.contain('was not made by kcp')
    await east.delete(gvrs.configmaps, below, { signal })
    await up.patch(gvrs.configmaps, ref, 'merge', { data: { a: '1' } }, { signal })
    await until('the end of the error', async () => (await said()) === undefined)
    expect(await get(east, 'configmaps', below.namespace, 'clash')).not.to.equal(undefined)
    await up.delete(gvrs.deployments, { namespace: space, name: 'web' }, { signal })
    await until('it gone', async () => (await get(up, 'deployments', space, 'web')) === undefined)
  })

  it('reports upstream why an object cannot be synced', async () => {
    const foreign = `${ids.id}-taken`
    await members['west']!.client.create(
      gvrs.namespaces,
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: foreign } },
      { signal },
    )
    await up.create(gvrs.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'taken' } }, { signal })
    const object = web('example/web:1', { west: 'Syncing' })
    await up.create(gvrs.deployments, { ...object, metadata: { ...object.metadata, namespace: 'taken' } }, { signal })
    const conditions = await until('the condition', async () => {
      const seen = await get(up, 'deployments', 'taken', 'web')
      return (status(seen)['conditions'] as { type: string; message: string }[] | undefined)?.filter(
        ({ type }) => type === 'Synced',
      )
    })
    expect(conditions[0]?.message).to.contain('not of this logical cluster')
    expect(await list(members['west']!.client, 'deployments', foreign)).to.be.empty
  })

  it('finishes an upstream deletion only when nothing is left in the member', async () => {
    await up.delete(gvrs.deployments, { namespace: 'taken', name: 'web' }, { signal })
    const other = `${ids.id}-other`
    await up.create(gvrs.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } }, { signal })
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace: 'other' } }
    await up.create(gvrs.services, { ...service, spec: { ports: [{ port: 80 }] } }, { signal })
    await until('a Service in reach', () => get(members['west']!.client, 'services', other, 'web'))
    // The logical cluster is deleted at the moment in which the last workload is deleted.
    upstream.informers.deployments.onChange(({ after }) => {
      if (after === undefined) ids.forget()
    })
    await up.delete(gvrs.deployments, { namespace, name: 'web' }, { signal })
    await until('the deployment gone', async () => (await get(up, 'deployments', namespace, 'web')) === undefined)
    for (const name of [down, other])
      await until(
        `the namespace ${name} gone from west`,
        async () => (await get(members['west']!.client, 'namespaces', '', name)) === undefined,
      )
  })

  it('deletes objects created in a member while their logical cluster was deleted, and nothing of others', async () => {
    const { client } = members['east']!
    const make = async (clusterId: string): Promise<string> => {
      const name = `${clusterId}-late`
      const locator = { cluster: 'acme', clusterId, namespace: '', name: 'late', uid: '' }
      const annotations = { [locatorAnnotation]: JSON.stringify(locator) }
      const metadata = { name, labels: { [managedLabel]: 'true' }, annotations }
      await client.create(gvrs.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata }, { signal })
      return name
    }
    const gone = async (name: string): Promise<unknown> =>
      await until(`${name} gone`, async () => (await get(client, 'namespaces', '', name)) === undefined)
    const before = await make(ids.id)
    const foreign = await make(clusterIdOf('uid of another installation’s'))
    ids.end()
    await gone(before)
    await gone(await make(ids.id))
    expect((await get(client, 'namespaces', '', foreign))?.metadata.deletionTimestamp).to.equal(undefined)
  })
})
