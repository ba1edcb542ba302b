// What a syncer does with EndpointSlices when a list is empty by mistake: of the slices of its member, or of Services upstream.
import { expect } from 'chai'
import type { KubeObject } from '../../../src/apimachinery/meta/index.ts'
import { expired } from '../../../src/apimachinery/status/index.ts'
import { sharedInformers, type KubeClient, type WatchEvent } from '../../../src/client/index.ts'
import { managedLabel, placedOnAnnotation, syncerFinalizer } from '../../../src/crds/index.ts'
import { startSyncer } from '../../../src/syncer/syncer.ts'
import { gvrs } from '../../../src/syncer/resources/resources.ts'
import { createUpstream } from '../../../src/syncer/upstream.ts'
import { silentLogger } from '../../../src/telemetry/index.ts'
import { startCluster, waitFor } from '../../support/index.ts'
import { asWildcard, clientOf, oneCluster } from './ordinary-upstream.ts'

const namespace = 'shop'
const signal = new AbortController().signal

/** A client of an API server whose list of one resource is empty while `isWrong`. */
class Mistake {
  isWrong = false
  /** How often an object of the resource was asked for by name meanwhile. */
  asked = 0
  #endWatches = new AbortController()
  readonly resource: string

  constructor(resource: string) {
    this.resource = resource
  }

  /** Ends the watches, so that informers list. */
  turn(isWrong: boolean): void {
    this.isWrong = isWrong
    const before = this.#endWatches
    this.#endWatches = new AbortController()
    before.abort()
  }

  of(client: KubeClient): KubeClient {
    return new Proxy(client, {
      get: (target, property) => {
        const concerns = (gvr: { resource: string }): boolean => gvr.resource === this.resource
        if (property === 'list')
          return async (...args: Parameters<KubeClient['list']>): Promise<unknown> => {
            const list = await target.list(...args)
            return concerns(args[0]) && this.isWrong ? { ...list, items: [] } : list
          }
        if (property === 'tryGet')
          return async (...args: Parameters<KubeClient['tryGet']>): Promise<unknown> => {
            if (concerns(args[0]) && this.isWrong) this.asked++
            return await target.tryGet(...args)
          }
        if (property === 'watch')
          return (...args: Parameters<KubeClient['watch']>) => this.#watch(target, concerns, args)
        const value: unknown = Reflect.get(target, property)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
  }

  async *#watch(
    target: KubeClient,
    concerns: (gvr: { resource: string }) => boolean,
    args: Parameters<KubeClient['watch']>,
  ): AsyncGenerator<WatchEvent<KubeObject>> {
    if (!concerns(args[0])) {
      yield* target.watch(...args)
      return
    }
    const { signal: end } = this.#endWatches
    try {
      yield* target.watch(args[0], { ...args[1], signal: AbortSignal.any([end, args[1].signal]) })
    } finally {
      // It is not resumed: the informer lists.
      if (end.aborted) throw expired('the watch is too old')
    }
  }
}

describe('the endpoints of a Service', function () {
  this.timeout(60_000)
  const ids = oneCluster('acme')
  const stack = new AsyncDisposableStack()
  const down = `${ids.id}-${namespace}`
  const services = new Mistake('services')
  const slices = new Mistake('endpointslices')
  let up: KubeClient
  let member: KubeClient
  const until = <T>(what: string, attempt: () => Promise<T> | T): Promise<unknown> =>
    waitFor(async () => (await attempt()) || undefined, { what, deadlineMs: 30_000 })
  const sliceUpstream = (): Promise<KubeObject | undefined> =>
    up.tryGet(gvrs.endpointslices, { namespace, name: 'web-1' }, { signal })

  before(async function () {
    this.timeout(300_000)
    const life = new AbortController()
    const flags = { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] }
    up = await clientOf(stack.use(await startCluster({ name: 'up', flags })).kubeconfig, stack)
    member = await clientOf(stack.use(await startCluster({ name: 'east', flags })).kubeconfig, stack)
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
      mistake.turn(true)
      await until('the syncer to ask twice', () => mistake.asked >= 2)
      expect((await sliceUpstream())?.metadata).to.include({ uid: before?.metadata.uid })
      mistake.turn(false)
      await member.delete(gvrs.endpointslices, { namespace: down, name: 'web-1' }, { signal })
      await until('the end of the copy', async () => (await sliceUpstream()) === undefined)
      await member.create(gvrs.endpointslices, slice(down), { signal })
      await until('the endpoints', sliceUpstream)
    })

  const service: KubeObject = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace },
    spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
  }
  const slice = (within: string): KubeObject => {
    const labels = {
      [managedLabel]: 'true',
      'kubernetes.io/service-name': 'web',
      'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
    }
    return {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'web-1', namespace: within, labels },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready: true } }],
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
