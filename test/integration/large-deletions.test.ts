// The work of the controllers when much is deleted, and who waits for it: counted between the controllers and the real
// server.
import { expect } from 'chai'
import type { ClusterName, GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import type { ObjectGraph } from '#reconcile/object-graph/index.ts'
import { startControllers } from '#controllers/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import { startServedApi, untilTrue, type ServedApi, type ServedTenant } from './served-api.ts'

const namespaces = { group: '', version: 'v1', resource: 'namespaces' }
const definitions = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' }
const configMaps = { group: '', version: 'v1', resource: 'configmaps' }
const namespace = 'default'
const patience = 60_000

interface Named {
  readonly name: string
  readonly uid: string
}

describe('mass deletion', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let served: ServedApi
  /** Calls of the garbage collector to the graph, by method; `listed`: dependents it received. */
  const asked = new Map<string, number>()
  /** Objects deleted by the collector, as `TENANT/NAME`, recorded when the deletion is let through. */
  const deleted: string[] = []
  let letThrough: (tenant: string) => Promise<unknown> = () => Promise.resolve()

  before(async () => {
    served = stack.use(await startServedApi())
    const { api, signal } = served
    stack.use(
      await startControllers({
        cluster: (name) => watched(name, api.client(name as ClusterName)),
        rootCa: '',
        signClientRequest: () => Promise.reject(new Error('nothing is signed here')),
        graph: counted(api.graph),
        log: silentLogger,
        signal,
      }),
    )
  })
  after(() => stack.disposeAsync())
  beforeEach(() => {
    asked.clear()
    deleted.length = 0
  })

  function watched(tenant: string, client: KubeClient): KubeClient {
    return new Proxy(client, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property)
        if (typeof value !== 'function') return value
        if (property !== 'delete') return value.bind(target) as unknown
        return async (...args: Parameters<KubeClient['delete']>) => {
          await letThrough(tenant)
          deleted.push(`${tenant}/${args[1].name}`)
          return target.delete(...args)
        }
      },
    })
  }
  function counted<Graph extends ObjectGraph>(graph: Graph): Graph {
    return new Proxy(graph, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property)
        if (typeof value !== 'function') return value
        return (...args: unknown[]): unknown => {
          const count = (name: string, by: number): void => void asked.set(name, (asked.get(name) ?? 0) + by)
          count(String(property), 1)
          const response: unknown = Reflect.apply(value, target, args)
          if (property !== 'dependents') return response
          return (response as ReturnType<ObjectGraph['dependents']>).then((places) => {
            count('listed', places.length)
            return places
          })
        }
      },
    })
  }

  const clientOf = ({ name }: ServedTenant): KubeClient => served.api.client(name)
  const make = async (
    tenant: ServedTenant,
    name: string,
    { owner, finalizers }: { owner?: Named; finalizers?: string[] } = {},
  ): Promise<KubeObject> => {
    const reference = owner && { apiVersion: 'v1', kind: 'ConfigMap', name: owner.name, uid: owner.uid }
    const ownerReferences = reference && [{ ...reference, blockOwnerDeletion: true }]
    const metadata = {
      name,
      namespace,
      ...(ownerReferences && { ownerReferences }),
      ...(finalizers && { finalizers }),
    } as KubeObject['metadata']
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata }
    return clientOf(tenant).create<KubeObject>(configMaps, object, { signal: served.signal })
  }
  /** An owner and its dependents. */
  const tree = async (tenant: ServedTenant, name: string, size: number, finalizers: string[] = []): Promise<void> => {
    const { uid = '' } = (await make(tenant, name)).metadata
    const owned = { owner: { name, uid }, finalizers }
    await Promise.all(Array.from({ length: size }, (_, i) => make(tenant, `${name}-${i}`, owned)))
  }
  const remove = (tenant: ServedTenant, name: string, propagationPolicy: 'Background' | 'Foreground' | 'Orphan') =>
    clientOf(tenant).delete(configMaps, { namespace, name }, { propagationPolicy, signal: served.signal })
  const left = (tenant: ServedTenant): KubeObject[] =>
    (served.api.watchCache.loaded(tenant.id)?.list({ resource: 'configmaps', namespace }) ?? [])
      .map(({ bytes }) => decodeObject(bytes))
      .filter(({ metadata }) => metadata.name !== 'kube-root-ca.crt')

  it('in the foreground: looks at none of the remaining dependents after each deletion', async () => {
    const tenant = await served.tenant('foreground')
    const size = 100
    const { signal } = served
    await tree(tenant, 'top', size, ['example.dev/hold'])
    await remove(tenant, 'top', 'Foreground')
    const isHeld = () => left(tenant).every(({ metadata }) => metadata.deletionTimestamp !== undefined)
    await untilTrue(isHeld, 'all of it is being deleted', patience)
    for (let i = 0; i < size; i++) {
      expect(left(tenant)).to.have.length(1 + size - i)
      if (i === 1) asked.clear()
      // By looking up the owner's kind, the collector shows that it has processed the deletion.
      const before = asked.get('resourceOf') ?? 0
      const patch = { metadata: { finalizers: null } }
      await clientOf(tenant).patch(configMaps, { namespace, name: `top-${i}` }, 'merge', patch, { signal })
      await untilTrue(() => (asked.get('resourceOf') ?? 0) > before, 'the loop has heard of it', patience)
    }
    await untilTrue(() => left(tenant).length === 0, 'all of it is gone', patience)
    expect(asked.get('get')).to.be.within(1, 5 * size)
    expect(asked.get('listed') ?? 0).to.be.below(5)
    expect(asked.get('isBlocked')).to.be.within(1, 3 * size)
  })

  it('looks up an owner that never existed only once', async () => {
    const tenant = await served.tenant('absent')
    const owner = { name: 'never', uid: 'no-such-uid' }
    await Promise.all(Array.from({ length: 200 }, (_, i) => make(tenant, `lost-${i}`, { owner })))
    await untilTrue(() => left(tenant).length === 0, 'all of it is gone', patience)
    // All workers may look it up at the same time.
    expect(asked.get('namespaceOf')).to.be.within(1, 8)
  })

  it('orphans more dependents than one reconcile handles', async () => {
    const tenant = await served.tenant('orphans')
    await tree(tenant, 'top', 120)
    await remove(tenant, 'top', 'Orphan')
    await untilTrue(() => left(tenant).every(({ metadata }) => metadata.name !== 'top'), 'the owner is gone', patience)
    expect(left(tenant)).to.have.length(120)
    expect(left(tenant).filter(({ metadata }) => metadata.ownerReferences !== undefined)).to.deep.equal([])
    expect(deleted).to.deep.equal([])
  })

  it('in one logical cluster does not delay another', async () => {
    const [large, small] = [await served.tenant('large'), await served.tenant('small')]
    await tree(large, 'top', 400)
    await tree(small, 'top', 1)
    // Holds back all deletions of the large one until the small one's deletion is requested.
    const gate = Promise.withResolvers<undefined>()
    letThrough = (tenant) => (tenant === 'large' ? gate.promise : Promise.resolve())
    try {
      await remove(large, 'top', 'Background')
      await untilTrue(() => (asked.get('dependents') ?? 0) > 0, 'the loop has heard of it')
      await remove(small, 'top', 'Background')
      gate.resolve(undefined)
      await untilTrue(() => left(small).length === 0, 'the small one is gone', patience)
      const before = deleted.indexOf('small/top-0')
      expect(before).to.be.within(0, 60)
      await untilTrue(() => left(large).length === 0, 'the large one is gone', patience)
    } finally {
      gate.resolve(undefined)
      letThrough = () => Promise.resolve()
    }
  })

  it('of large namespaces and definitions leaves workers for other logical clusters', async () => {
    const [large, small] = [await served.tenant('crowded'), await served.tenant('tidy')]
    const { signal } = served
    const spaces = ['s0', 's1', 's2', 's3']
    const create = (tenant: ServedTenant, gvr: GroupVersionResource, object: KubeObject) =>
      clientOf(tenant).create(gvr, object, { signal })
    const space = (name: string): KubeObject => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
    const configMap = (name: string, into: string): KubeObject => ({
      ...{ apiVersion: 'v1', kind: 'ConfigMap' },
      metadata: { name, namespace: into },
    })
    for (const name of spaces) await create(large, namespaces, space(name))
    const many = spaces.flatMap((name) => Array.from({ length: 250 }, (_, i) => configMap(`${name}-${i}`, name)))
    await Promise.all(many.map((object) => create(large, configMaps, object)))
    await create(small, namespaces, space('s'))
    await create(small, configMaps, configMap('only', 's'))
    const gate = Promise.withResolvers<undefined>()
    let waiting = 0
    letThrough = (tenant) => (tenant === 'crowded' ? (waiting++, gate.promise) : Promise.resolve())
    const isGone = (tenant: ServedTenant, name: string): boolean =>
      served.api.watchCache.loaded(tenant.id)?.get('namespaces', '', name) === undefined
    try {
      for (const name of spaces) await clientOf(large).delete(namespaces, { name }, { signal })
      await untilTrue(() => waiting === spaces.length, 'all who end namespaces are at work')
      await clientOf(small).delete(namespaces, { name: 's' }, { signal })
      gate.resolve(undefined)
      await untilTrue(() => isGone(small, 's'), 'the small one is gone', patience)
      // One reconcile of each worker, and part of the next: far fewer than the thousand.
      expect(deleted.indexOf('tidy/only')).to.be.within(0, 750)
      await untilTrue(() => spaces.every((name) => isGone(large, name)), 'the large ones are gone', patience)
    } finally {
      gate.resolve(undefined)
      letThrough = () => Promise.resolve()
    }
  })

  it('removes a definition with more objects than one reconcile deletes', async () => {
    const tenant = await served.tenant('defined')
    const { signal } = served
    const names = { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' }
    const schema = { openAPIV3Schema: { type: 'object' } }
    const versions = [{ name: 'v1', served: true, storage: true, schema }]
    const crd = {
      ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
      metadata: { name: 'things.example.dev' },
      spec: { group: 'example.dev', scope: 'Namespaced', names, versions },
    }
    const client = clientOf(tenant)
    await client.create(definitions, crd, { signal })
    const isServed = async () => {
      const found = await client.get<KubeObject>(definitions, { name: crd.metadata.name }, { signal })
      return JSON.stringify(found['status'] ?? {}).includes('"type":"Established"')
    }
    await untilTrue(isServed, 'the definition is served')
    const thing = (i: number): KubeObject => ({
      ...{ apiVersion: 'example.dev/v1', kind: 'Thing' },
      metadata: { name: `t${i}`, namespace },
    })
    const things = { group: 'example.dev', version: 'v1', resource: 'things' }
    await Promise.all(Array.from({ length: 230 }, (_, i) => client.create(things, thing(i), { signal })))
    await client.delete(definitions, { name: crd.metadata.name }, { signal })
    const isGone = async () => (await client.tryGet(definitions, { name: crd.metadata.name }, { signal })) === undefined
    await untilTrue(isGone, 'the definition is gone', patience)
    expect(deleted.filter((name) => name.startsWith('defined/t'))).to.have.length(230)
  })
})
