// The special behaviour of single kinds: pods and Jobs that must not run twice, objects that members make, and a member
// whose rights are old.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import { sharedInformers, type KubeClient } from '#client/index.ts'
import { memberUidAnnotation, placedOnAnnotation } from '#crds/index.ts'
import { createLogger, type Logger } from '#telemetry/index.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { startSyncer, type Syncer } from '#syncer/syncer.ts'
import { namespaceLabel } from '#syncer/transform/dependents-down.ts'
import { createUpstream, type Upstream } from '#syncer/context/upstream.ts'
import { startCluster, waitFor, type ClusterOptions } from '#test/support/index.ts'
import { asWildcard, clientOf, oneCluster } from './ordinary-upstream.ts'
import { simulateKubelet } from './played-member.ts'

const namespace = 'shop'
const signal = new AbortController().signal
type Resource = keyof typeof gvrs

const placed = (state = 'Serving'): Record<string, string> => ({
  [placedOnAnnotation]: JSON.stringify({ east: { state } }),
})
const containers = [{ name: 'main', image: 'example/any:1' }]
const labels = { app: 'web' }

function object(apiVersion: string, kind: string, name: string, spec: object, annotations = {}): KubeObject {
  return { apiVersion, kind, metadata: { name, namespace, annotations }, spec }
}

describe('a syncer and the rules of single kinds', function () {
  this.timeout(60_000)
  const ids = oneCluster('acme')
  const down = `${ids.id}-${namespace}`
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  let log: Logger
  let up: KubeClient
  let east: KubeClient
  let upstream: Upstream
  let syncer: Syncer
  /** Each try of a test that is run again has objects of its own. */
  let attempts = 0

  const start = (downstream = east): Syncer =>
    startSyncer({
      member: { name: 'east', id: 'eastmember', serviceNetwork: 'Flat' },
      upstream,
      downstream,
      apiAddress: { host: 'kcp.example', port: 7443 },
      log,
      signal: life.signal,
    })

  before(async function () {
    this.timeout(300_000)
    log = createLogger({ level: (process.env['KCP_TEST_LOG'] as 'debug' | undefined) ?? 'error' })
    const flags = { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] }
    const started = async (options: ClusterOptions): Promise<KubeClient> =>
      clientOf(stack.use(await startCluster(options)).kubeconfig, stack)
    ;[up, east] = await Promise.all([
      started({ name: 'up', flags }),
      started({ name: 'east', controllerManager: true }),
    ])
    stack.defer(async () => {
      life.abort()
      await syncer[Symbol.asyncDispose]()
    })
    simulateKubelet(east, { subnet: '10.90.0', signal: life.signal })
    const informers = sharedInformers(asWildcard(up, 'acme'), { allClusters: true, log, signal: life.signal })
    upstream = createUpstream({ informers, client: () => up, ids })
    syncer = start()
    await up.create(gvrs.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }, { signal })
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  const of = (client: KubeClient, resource: Resource, name: string): Promise<KubeObject | undefined> => {
    const space = resource === 'namespaces' ? {} : { namespace: client === up ? namespace : down }
    return client.tryGet<KubeObject>(gvrs[resource], { ...space, name }, { signal })
  }
  const list = async (client: KubeClient, resource: Resource): Promise<KubeObject[]> =>
    (await client.list<KubeObject>(gvrs[resource], { namespace: client === up ? namespace : down, signal })).items
  const create = (resource: Resource, wanted: KubeObject): Promise<KubeObject> =>
    up.create(gvrs[resource], wanted, { signal })
  const until = <T>(what: string, attempt: () => Promise<T | undefined | false>): Promise<T> =>
    waitFor(async () => (await attempt()) || undefined, { what, deadlineMs: 30_000 })
  const statusOf = (one: KubeObject | undefined): Record<string, unknown> =>
    (one?.['status'] ?? {}) as Record<string, unknown>
  /** The kubelet says how a pod in the member ended. */
  const end = (pod: KubeObject, phase: string): Promise<KubeObject> => {
    const ended = { terminated: { exitCode: 0, finishedAt: new Date().toISOString().replace(/\.\d+/, '') } }
    const containerStatuses = [{ name: 'main', image: 'i', imageID: 'i', ready: false, restartCount: 0, state: ended }]
    const ref = { namespace: down, name: pod.metadata.name ?? '' }
    return east.patch(
      gvrs.pods,
      ref,
      'merge',
      { status: { phase, containerStatuses } },
      { subresource: 'status', signal },
    )
  }

  it('knows a pod of a tenant again after a restart, and does not run it twice', async () => {
    await create('pods', object('v1', 'Pod', 'bare', { containers, restartPolicy: 'Never' }, placed()))
    const live = await until('the pod', () => of(east, 'pods', 'bare'))
    await until('its status upstream', async () => statusOf(await of(up, 'pods', 'bare'))['podIP'] !== undefined)
    await syncer[Symbol.asyncDispose]()
    // As if the syncer had been killed before it wrote which pod of the member this is.
    const metadata = { annotations: { [memberUidAnnotation]: null } }
    await up.patch(gvrs.pods, { namespace, name: 'bare' }, 'merge', { metadata }, { signal })
    syncer = start()
    const adopted = await until('the pod to be known again', async () => {
      const found = await of(up, 'pods', 'bare')
      return found?.metadata.annotations?.[memberUidAnnotation] === live.metadata.uid && found
    })
    expect(statusOf(adopted)['phase']).to.equal('Running')
    expect((await of(east, 'pods', 'bare'))?.metadata.uid).to.equal(live.metadata.uid)
  })

  it('ends a pod of a tenant with the pod of the member, instead of running it again', async () => {
    await east.delete(gvrs.pods, { namespace: down, name: 'bare' }, { gracePeriodSeconds: 0, signal })
    await until('the pod to end upstream', async () => (await of(up, 'pods', 'bare')) === undefined)
    expect(await of(east, 'pods', 'bare')).to.equal(undefined)
  })

  it('tells how a Job ended, and never runs it again', async () => {
    const template = { spec: { containers, restartPolicy: 'Never' } }
    await create('jobs', object('batch/v1', 'Job', 'once', { template, backoffLimit: 0 }, placed()))
    const pod = await until('its pod', async () =>
      (await list(east, 'pods')).find(({ metadata }) => metadata.name?.startsWith('once-')),
    )
    const copy = await until('the copy of the pod', () => of(up, 'pods', pod.metadata.name ?? ''))
    const job = await of(up, 'jobs', 'once')
    expect(copy.metadata.ownerReferences?.[0]).to.include({ kind: 'Job', uid: job?.metadata.uid })
    expect(copy.metadata.labels).to.include({ 'batch.kubernetes.io/controller-uid': job?.metadata.uid })
    await end(pod, 'Succeeded')
    await until(
      'the Job to be complete upstream',
      async () => statusOf(await of(up, 'jobs', 'once'))['succeeded'] === 1,
    )
    await until('its condition', async () =>
      JSON.stringify(statusOf(await of(up, 'jobs', 'once'))).includes('"Complete"'),
    )
    await east.delete(gvrs.jobs, { namespace: down, name: 'once' }, { propagationPolicy: 'Background', signal })
    await until('its pod to go', async () => (await of(up, 'pods', pod.metadata.name ?? '')) === undefined)
    // Whatever happens to it upstream now causes a reconcile.
    const metadata = { labels: { reconciled: 'true' } }
    await up.patch(gvrs.jobs, { namespace, name: 'once' }, 'merge', { metadata }, { signal })
    await create('pods', object('v1', 'Pod', 'later', { containers }, placed()))
    await until('a later pod', () => of(east, 'pods', 'later'))
    expect(await of(east, 'jobs', 'once')).to.equal(undefined)
    expect(statusOf(await of(up, 'jobs', 'once'))['succeeded']).to.equal(1)
  })

  it('shows the Jobs that a CronJob makes, and deletes those that are deleted upstream', async () => {
    const tick = `tick${attempts++}`
    const job = `${tick}-1`
    const template = { metadata: { labels }, spec: { containers, restartPolicy: 'Never' } }
    const spec = { schedule: '* * * * *', suspend: true, jobTemplate: { spec: { template } } }
    const cronJob = await create('cronjobs', object('batch/v1', 'CronJob', tick, spec))
    const lastScheduleTime = '2026-01-01T00:00:00Z'
    const ref = { namespace, name: tick }
    const ran = { status: { lastScheduleTime } }
    await up.patch(gvrs.cronjobs, ref, 'merge', ran, { subresource: 'status', signal })
    await up.patch(gvrs.cronjobs, ref, 'merge', { metadata: { annotations: placed() } }, { signal })
    const copy = await until('the CronJob, going on with its schedule', async () => {
      const found = await of(east, 'cronjobs', tick)
      return statusOf(found)['lastScheduleTime'] === lastScheduleTime && found
    })
    // As its controller would, without a minute of waiting.
    const owner = {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      name: tick,
      uid: copy.metadata.uid ?? '',
      controller: true,
    }
    const { metadata, spec: ofJob } = (copy['spec'] as { jobTemplate: KubeObject & { spec: { template: KubeObject } } })
      .jobTemplate
    // An ordinary upstream gives the Job another uid, which must not be in its selector.
    const { template: ofPods } = ofJob
    const podLabels = { ...ofPods.metadata.labels, ...labels }
    const selected = { ...ofPods, metadata: { ...ofPods.metadata, labels: podLabels } }
    const made: KubeObject = {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { ...metadata, name: job, namespace: down, ownerReferences: [owner] },
      spec: { ...ofJob, template: selected, manualSelector: true, selector: { matchLabels: labels } },
    }
    const live = await east.create(gvrs.jobs, made, { signal })
    const shown = await until('the Job upstream', async () => {
      const found = await of(up, 'jobs', job)
      return found?.metadata.annotations?.[memberUidAnnotation] === live.metadata.uid && found
    })
    expect(shown.metadata.ownerReferences?.[0]).to.include({ kind: 'CronJob', uid: cronJob.metadata.uid })
    expect(JSON.stringify(shown)).to.not.contain('kcp.example')
    for (const [side, where] of [
      ['in the member', east],
      ['upstream', up],
    ] as const)
      await until(`its pod ${side}`, async () =>
        (await list(where, 'pods')).some(({ metadata: { name } }) => name?.startsWith(`${job}-`)),
      )
    await up.delete(gvrs.jobs, { namespace, name: job }, { propagationPolicy: 'Background', signal })
    await until('the Job to be deleted in the member', async () => (await of(east, 'jobs', job)) === undefined)
  })

  it('runs a ReplicationController, with its pods and status', async () => {
    const selector = { app: 'band' }
    const spec = { replicas: 2, selector, template: { metadata: { labels: selector }, spec: { containers } } }
    const ref = { namespace, name: 'band' }
    await create('replicationcontrollers', object('v1', 'ReplicationController', 'band', spec, placed()))
    const replicas = async (): Promise<unknown> =>
      statusOf(await of(up, 'replicationcontrollers', 'band'))['readyReplicas']
    await until('both replicas', async () => (await replicas()) === 2)
    const owner = await of(up, 'replicationcontrollers', 'band')
    const pods = await until('both pods upstream', async () => {
      const found = (await list(up, 'pods')).filter(({ metadata }) => metadata.labels?.['app'] === 'band')
      return found.length === 2 && found
    })
    for (const { metadata } of pods) {
      const [reference] = metadata.ownerReferences ?? []
      expect(reference).to.include({ kind: 'ReplicationController', name: 'band', uid: owner?.metadata.uid })
    }
    await up.patch(gvrs.replicationcontrollers, ref, 'merge', { spec: { replicas: 1 } }, { signal })
    await until('one replica', async () => (await replicas()) === 1)
    await up.delete(gvrs.replicationcontrollers, ref, { propagationPolicy: 'Background', signal })
    await until('it to be gone', async () => (await of(up, 'replicationcontrollers', 'band')) === undefined)
    expect(await of(east, 'replicationcontrollers', 'band')).to.equal(undefined)
  })

  it('gives a StatefulSet its claims, and keeps the namespace of their data', async () => {
    const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } }
    const spec = {
      serviceName: 'db',
      replicas: 1,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claim }],
    }
    await create('statefulsets', object('apps/v1', 'StatefulSet', 'db', spec, placed()))
    const shown = await until('the claim upstream', () => of(up, 'persistentvolumeclaims', 'data-db-0'))
    expect(shown.metadata.labels).to.deep.equal(labels)
    for (const resource of ['pods', 'jobs', 'cronjobs', 'statefulsets'] as const)
      for (const { metadata } of await list(up, resource))
        await up.delete(gvrs[resource], { namespace, name: metadata.name ?? '' }, { gracePeriodSeconds: 0, signal })
    await until('the workloads to go', async () => (await list(up, 'statefulsets')).length === 0)
    await create('pods', object('v1', 'Pod', 'again', { containers }, placed()))
    await until('a pod beside the data', () => of(east, 'pods', 'again'))
    expect(await of(east, 'persistentvolumeclaims', 'data-db-0')).to.have.nested.property('metadata.uid')
  })

  for (const { partition, updated } of [
    { partition: 0, updated: ['part-1', 'part-2'] },
    { partition: 2, updated: ['part-2'] },
  ])
    it(`rolls out its part of a StatefulSet once that may go on, from ordinal ${partition}`, async () => {
      const image = 'example/any:2'
      const selector = { app: 'part' }
      const placedAs = (more: object): Record<string, string> => ({
        [placedOnAnnotation]: JSON.stringify({ east: { state: 'Serving', start: 1, replicas: 2, ...more } }),
      })
      const template = { metadata: { labels: selector }, spec: { containers, terminationGracePeriodSeconds: 0 } }
      const spec = {
        ...{ serviceName: 'part', replicas: 3, podManagementPolicy: 'Parallel', template },
        selector: { matchLabels: selector },
        updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition } },
      }
      await create('statefulsets', object('apps/v1', 'StatefulSet', 'part', spec, placedAs({})))
      const pods = async (): Promise<KubeObject[]> =>
        (await list(east, 'pods')).filter(({ metadata }) => metadata.labels?.['app'] === 'part')
      const isReady = (pod: KubeObject): boolean => statusOf(pod)['podIP'] !== undefined
      const withImage = async (): Promise<string[]> =>
        (await pods())
          .filter((pod) => isReady(pod) && JSON.stringify(pod['spec']).includes(image))
          .map(({ metadata }) => metadata.name ?? '')
          .sort()
      await until('two pods', async () => (await pods()).filter(isReady).length === 2)
      const change = (metadata: object, more: object = {}): Promise<KubeObject> =>
        up.patch(gvrs.statefulsets, { namespace, name: 'part' }, 'merge', { metadata, ...more }, { signal })
      await change({ annotations: placedAs({ paused: true }) })
      await until('the pause', async () =>
        JSON.stringify((await of(east, 'statefulsets', 'part'))?.['spec']).includes('"type":"OnDelete"'),
      )
      const uids = (await pods()).map(({ metadata }) => metadata.uid).sort()
      await change(
        {},
        { spec: { template: { ...template, spec: { ...template.spec, containers: [{ name: 'main', image }] } } } },
      )
      await until('the new revision', async () => {
        const copy = await of(east, 'statefulsets', 'part')
        const { currentRevision, updateRevision, observedGeneration } = statusOf(copy)
        return updateRevision !== currentRevision && observedGeneration === copy?.metadata.generation
      })
      expect((await pods()).map(({ metadata }) => metadata.uid).sort()).to.deep.equal(uids)
      await change({ annotations: placedAs({}) })
      await until('the rollout', async () => (await withImage()).join() === updated.join())
      await until('both pods', async () => (await pods()).filter(isReady).length === 2)
      expect(await withImage()).to.deep.equal(updated)
      await up.delete(gvrs.statefulsets, { namespace, name: 'part' }, { propagationPolicy: 'Background', signal })
      await until('it to be gone', async () => (await of(up, 'statefulsets', 'part')) === undefined)
    })

  it('gives NetworkPolicies the labels of upstream namespaces to select', async () => {
    const ingress = [{ from: [{ namespaceSelector: { matchLabels: { team: 'a' } } }] }]
    await create(
      'networkpolicies',
      object('networking.k8s.io/v1', 'NetworkPolicy', 'web', { podSelector: {}, ingress }),
    )
    const policy = await until('the policy', () => of(east, 'networkpolicies', 'web'))
    const { matchLabels } = (
      policy['spec'] as { ingress: [{ from: [{ namespaceSelector: { matchLabels: object } }] }] }
    ).ingress[0].from[0].namespaceSelector
    const patch = (team: string | null): Promise<KubeObject> =>
      up.patch(gvrs.namespaces, { name: namespace }, 'merge', { metadata: { labels: { team } } }, { signal })
    const labelsBelow = async (): Promise<Record<string, string>> =>
      (await east.get<KubeObject>(gvrs.namespaces, { name: down }, { signal })).metadata.labels ?? {}
    await patch('a')
    await until('the label', async () => (await labelsBelow())[namespaceLabel('team')] === 'a')
    expect(await labelsBelow()).to.include(matchLabels)
    await patch(null)
    await until('the label to go', async () => !(namespaceLabel('team') in (await labelsBelow())))
  })

  it('tells the addresses of a load balancer', async () => {
    const spec = { type: 'LoadBalancer', selector: labels, ports: [{ port: 80 }] }
    await create('services', { ...object('v1', 'Service', 'front', spec) })
    await until('the Service', () => of(east, 'services', 'front'))
    const status = { loadBalancer: { ingress: [{ ip: '203.0.113.7' }] } }
    const ref = { namespace: down, name: 'front' }
    await east.patch(gvrs.services, ref, 'merge', { status }, { subresource: 'status', signal })
    await until('the address upstream', async () =>
      JSON.stringify(statusOf(await of(up, 'services', 'front'))).includes('203.0.113.7'),
    )
  })

  it('syncs the kinds that an old member allows', async () => {
    await syncer[Symbol.asyncDispose]()
    syncer = start(withoutRights(east, 'cronjobs'))
    await create('pods', object('v1', 'Pod', 'allowed', { containers }, placed()))
    await until('the pod', () => of(east, 'pods', 'allowed'))
  })
})

/** A member that joined before this resource was synced. */
function withoutRights(client: KubeClient, resource: string): KubeClient {
  return new Proxy(client, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property)
      if (typeof value !== 'function') return value
      return (...args: unknown[]): unknown => {
        const [gvr] = args as [{ group: string; version: string; resource: string }]
        if (gvr.resource === resource) throw forbidden(gvr, '', 'not allowed')
        return Reflect.apply(value, target, args) as unknown
      }
    },
  })
}
