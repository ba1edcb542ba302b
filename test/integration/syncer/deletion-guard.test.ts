// A syncer whose workloads vanish upstream without a deletion: an empty list by mistake, or a store that lost them.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { expired } from '#apimachinery/status/index.ts'
import { sharedInformers, type KubeClient, type WatchEvent } from '#client/index.ts'
import { placedOnAnnotation, syncerFinalizer } from '#crds/index.ts'
import { startSyncer, type Syncer } from '#syncer/syncer.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { createUpstream } from '#syncer/context/upstream.ts'
import { silentLogger } from '#telemetry/index.ts'
import { startCluster, waitFor } from '#test/support/index.ts'
import { asWildcard, clientOf, oneCluster } from './ordinary-upstream.ts'

const namespace = 'shop'
const signal = new AbortController().signal
const names = Array.from({ length: 7 }, (_, i) => `web-${i}`)

describe('a syncer whose workloads vanish upstream though nobody deleted them', function () {
  this.timeout(60_000)
  const ids = oneCluster('acme')
  const stack = new AsyncDisposableStack()
  const down = `${ids.id}-${namespace}`
  /** How often each Deployment was asked for by name. */
  const asked = new Map<string, number>()
  let upstreamIs: 'right' | 'empty list' | 'lost' = 'right'
  let accepts = false
  let up: KubeClient
  let member: KubeClient
  let syncer: Syncer
  /** Ends the watches of Deployments. */
  let endWatches = new AbortController()

  before(async function () {
    this.timeout(300_000)
    const life = new AbortController()
    const flags = { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] }
    const started = async (name: string): Promise<KubeClient> =>
      clientOf(stack.use(await startCluster({ name, flags })).kubeconfig, stack)
    ;[up, member] = await Promise.all([started('up'), started('east')])
    stack.defer(() => life.abort())
    const options = { allClusters: true, log: silentLogger, signal: life.signal }
    const upstream = createUpstream({
      informers: sharedInformers(asWildcard(mistaken(up), 'acme'), options),
      client: () => mistaken(up),
      ids,
    })
    const core = { apiVersion: 'v1' } as const
    await up.create(gvrs.namespaces, { ...core, kind: 'Namespace', metadata: { name: namespace } }, { signal })
    const settings = { ...core, kind: 'ConfigMap', metadata: { name: 'settings', namespace }, data: { a: '1' } }
    await up.create(gvrs.configmaps, settings, { signal })
    const spec = { selector: { app: 'web' }, ports: [{ port: 80 }] }
    await up.create(gvrs.services, { ...core, kind: 'Service', metadata: { name: 'web', namespace }, spec }, { signal })
    for (const name of names) await up.create(gvrs.deployments, deployment(name), { signal })
    syncer = stack.use(
      startSyncer({
        member: { name: 'east', id: 'eastmember', serviceNetwork: 'Flat', acceptsDeletions: () => accepts },
        upstream,
        downstream: member,
        apiAddress: { host: 'kcp.example', port: 7443 },
        log: silentLogger,
        signal: life.signal,
      }),
    )
    await until('all copies', async () => (await copies()).join() === names.join())
    await until('the Service', () => member.tryGet(gvrs.services, { namespace: down, name: 'web' }, { signal }))
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  /** A client of an API server that makes the mistakes. */
  const mistaken = (client: KubeClient): KubeClient =>
    new Proxy(client, {
      get(target, property) {
        const isOurs = (gvr: { resource: string }): boolean => gvr.resource === 'deployments'
        if (property === 'list')
          return async (...args: Parameters<KubeClient['list']>): Promise<unknown> => {
            const list = await target.list(...args)
            return isOurs(args[0]) && upstreamIs !== 'right' ? { ...list, items: [] } : list
          }
        if (property === 'tryGet')
          return async (...args: Parameters<KubeClient['tryGet']>): Promise<unknown> => {
            const { name } = args[1]
            if (isOurs(args[0])) asked.set(name, (asked.get(name) ?? 0) + 1)
            return isOurs(args[0]) && upstreamIs === 'lost' ? undefined : await target.tryGet(...args)
          }
        if (property === 'watch')
          return async function* (...args: Parameters<KubeClient['watch']>): AsyncGenerator<WatchEvent<KubeObject>> {
            if (!isOurs(args[0])) {
              yield* target.watch(...args)
              return
            }
            const { signal: end } = endWatches
            try {
              yield* target.watch(args[0], { ...args[1], signal: AbortSignal.any([end, args[1].signal]) })
            } finally {
              // It is not resumed: the informer lists.
              if (end.aborted) throw expired('the watch is too old')
            }
          }
        const value: unknown = Reflect.get(target, property)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
  const mistake = (what: typeof upstreamIs): void => {
    upstreamIs = what
    asked.clear()
    endWatch()
  }
  const until = <T>(what: string, attempt: () => Promise<T> | T): Promise<unknown> =>
    waitFor(async () => (await attempt()) || undefined, { what, deadlineMs: 30_000 })
  const copies = async (): Promise<string[]> => {
    const { items } = await member.list(gvrs.deployments, { namespace: down, signal })
    return items.flatMap(({ metadata: { name, deletionTimestamp } }) => (deletionTimestamp ? [] : [name ?? ''])).sort()
  }
  const endWatch = (): void => {
    const before = endWatches
    endWatches = new AbortController()
    before.abort()
  }
  const allAsked = (): boolean => {
    // The watch may have begun only after the mistake, from a list that was right.
    if (asked.size === 0) endWatch()
    return names.every((name) => (asked.get(name) ?? 0) >= 2)
  }
  const expectAllThere = async (): Promise<void> => {
    expect(await copies()).to.deep.equal(names)
    for (const [resource, name] of [
      ['configmaps', 'settings'],
      ['services', 'web'],
    ] as const) {
      const copy = await member.tryGet(gvrs[resource], { namespace: down, name }, { signal })
      expect(copy?.metadata, resource).not.to.have.property('deletionTimestamp')
    }
  }

  it('deletes nothing that the server still has, and lists again', async () => {
    mistake('empty list')
    await until('the syncer to ask for each', allAsked)
    await expectAllThere()
    expect(syncer.suspendedDeletions()).to.deep.equal([])
    upstreamIs = 'right'
    const image = { spec: { template: { spec: { containers: [{ name: 'c', image: 'example/c:2' }] } } } }
    await up.patch(gvrs.deployments, { namespace, name: 'web-3' }, 'strategic', image, { signal })
    await up.patch(gvrs.configmaps, { namespace, name: 'settings' }, 'merge', { data: { a: '2' } }, { signal })
    await until('what changed meanwhile', async () => {
      const copy = await member.get(gvrs.deployments, { namespace: down, name: 'web-3' }, { signal })
      return JSON.stringify(copy).includes('example/c:2')
    })
    await expectAllThere()
  })

  it('deletes nothing and says so when the server has lost more than a handful', async () => {
    mistake('lost')
    await until('the syncer to ask for each', allAsked)
    await until('its report', () => syncer.suspendedDeletions().length > 0)
    expect(syncer.suspendedDeletions()).to.deep.equal([{ cluster: 'acme', missing: 7, total: 7 }])
    await expectAllThere()
  })

  it('goes on where they are there again, and lets go what an admin lets go', async () => {
    mistake('right')
    await until('the end of the report', () => syncer.suspendedDeletions().length === 0)
    await expectAllThere()
    mistake('lost')
    await until('the syncer to ask for each', allAsked)
    await until('its report', () => syncer.suspendedDeletions().length > 0)
    accepts = true
    await until('the copies to go', async () => (await copies()).length === 0)
    expect(syncer.suspendedDeletions()).to.deep.equal([])
  })

  const deployment = (name: string): KubeObject => {
    const placed = { east: { state: 'Syncing', since: new Date().toISOString() } }
    const labels = { app: 'web' }
    const containers = [{ name: 'c', image: 'example/c:1', envFrom: [{ configMapRef: { name: 'settings' } }] }]
    return {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: {
        name,
        namespace,
        annotations: { [placedOnAnnotation]: JSON.stringify(placed) },
        finalizers: [syncerFinalizer('east')],
      },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers } },
      },
    }
  }
})
