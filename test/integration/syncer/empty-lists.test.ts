// A syncer whose list of EndpointSlices is empty by mistake: the slices of its member, or those of Services upstream.
import { expect } from 'chai'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { sharedInformers, type KubeClient } from '#client/index.ts'
import { managedLabel, placedOnAnnotation, syncerFinalizer } from '#crds/index.ts'
import { startSyncer } from '#syncer/syncer.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { createUpstream } from '#syncer/context/upstream.ts'
import { silentLogger } from '#telemetry/index.ts'
import { startCluster, waitFor, type ClusterOptions } from '#test/support/index.ts'
import { Mistake } from './mistake.ts'
import { asWildcard, clientOf, oneCluster } from './ordinary-upstream.ts'
import { simulateKubelet } from './played-member.ts'

const namespace = 'shop'
const signal = new AbortController().signal

describe('the endpoints of a Service', function () {
  this.timeout(60_000)
  const ids = oneCluster('acme')
  const stack = new AsyncDisposableStack()
  const down = `${ids.id}-${namespace}`
  const services = new Mistake('services')
  const slices = new Mistake('endpointslices')
  let up: KubeClient
  let member: KubeClient
  /** In the member. */
  let pod: KubeObject | undefined
  const until = <T>(what: string, attempt: () => Promise<T> | T): Promise<unknown> =>
    waitFor(async () => (await attempt()) || undefined, { what, deadlineMs: 30_000 })
  const sliceUpstream = (): Promise<KubeObject | undefined> =>
    up.tryGet(gvrs.endpointslices, { namespace, name: 'web-1' }, { signal })

  before(async function () {
    this.timeout(300_000)
    const life = new AbortController()
    const flags = { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] }
    // Endpoints are believed only with the addresses of pods of a workload that the member has.
    const controllers = '--controllers=deployment-controller,replicaset-controller,serviceaccount-controller'
    const ofMember = { 'kube-controller-manager': [controllers] }
    const started = async (options: ClusterOptions): Promise<KubeClient> =>
      clientOf(stack.use(await startCluster(options)).kubeconfig, stack)
    ;[up, member] = await Promise.all([
      started({ name: 'up', flags }),
      started({ name: 'east', controllerManager: true, flags: ofMember }),
    ])
    simulateKubelet(member, { subnet: '10.1.2', signal: life.signal })
    stack.defer(() => life.abort())
    const options = { allClusters: true, log: silentLogger, signal: life.signal }
    const client = services.of(up)
    const upstream = createUpstream({
      informers: sharedInformers(asWildcard(client, 'acme'), options),
      client: () => client,
      ids,
    })
    await up.create(gvrs.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }, { signal })
    await up.create(gvrs.services, service, { signal })
    await up.create(gvrs.deployments, deployment(), { signal })
    stack.use(
      startSyncer({
        member: { name: 'east', id: 'eastmember', serviceNetwork: 'Flat' },
        upstream,
        downstream: slices.of(member),
        apiAddress: { host: 'kcp.example', port: 7443 },
        log: silentLogger,
        signal: life.signal,
      }),
    )
    await until('the Service', () => member.tryGet(gvrs.services, { namespace: down, name: 'web' }, { signal }))
    await until('its pod upstream', async () => {
      const [shown] = (await up.list(gvrs.pods, { namespace, signal })).items
      const { name = '' } = shown?.metadata ?? {}
      pod = shown && (await member.tryGet(gvrs.pods, { namespace: down, name }, { signal }))
      return (pod?.['status'] as { podIP?: string } | undefined)?.podIP !== undefined
    })
    await member.create(gvrs.endpointslices, slice(down), { signal })
    await until('its endpoints', sliceUpstream)
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  for (const [title, mistake] of [
    ['the list of slices of the member', slices],
    ['the list of Services upstream', services],
  ] as const)
    it(`stay where ${title} is empty by mistake, and go with their slice later`, async () => {
      const before = await sliceUpstream()
      mistake.asked = 0
      mistake.turn(true)
      await until('the syncer to ask twice', () => mistake.asked >= 2)
      expect((await sliceUpstream())?.metadata).to.include({ uid: before?.metadata.uid })
      mistake.turn(false)
      await member.delete(gvrs.endpointslices, { namespace: down, name: 'web-1' }, { signal })
      await until('the end of the copy', async () => (await sliceUpstream()) === undefined)
      await member.create(gvrs.endpointslices, slice(down), { signal })
      await until('the endpoints', sliceUpstream)
    })

  it('come upstream with the list of Services that has theirs again', async () => {
    services.asked = 0
    services.turn(true)
    await until('the syncer to ask again', () => services.asked >= 2)
    await member.create(gvrs.endpointslices, slice(down, 'web-2'), { signal })
    await sleep(1000)
    services.turn(false)
    await until('the copy', () => up.tryGet(gvrs.endpointslices, { namespace, name: 'web-2' }, { signal }))
  })

  const service: KubeObject = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace },
    spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
  }
  const slice = (within: string, name = 'web-1'): KubeObject => {
    const labels = {
      [managedLabel]: 'true',
      'kubernetes.io/service-name': 'web',
      'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
    }
    const targetRef = { kind: 'Pod', name: pod?.metadata.name, namespace: within, uid: pod?.metadata.uid }
    return {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name, namespace: within, labels },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.1.2.1'], conditions: { ready: true }, targetRef }],
      ports: [{ name: '', port: 80, protocol: 'TCP' }],
    }
  }
  const deployment = (): KubeObject => {
    const placed = { east: { state: 'Serving', since: new Date().toISOString() } }
    const labels = { app: 'web' }
    return {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: {
        name: 'web',
        namespace,
        annotations: { [placedOnAnnotation]: JSON.stringify(placed) },
        finalizers: [syncerFinalizer('east')],
      },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'example/c:1' }] } },
      },
    }
  }
})
