// Tests quotas on the real write path: registry, watch cache, embedded store.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ClusterId, ClusterName, KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import type { Store } from '#store/index.ts'
import { createWatchCache, type ClusterObjects, type WatchCache } from '#store/watch-cache/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { createAdmission } from '#virtualapi/write/admission/admission.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import { ClusterCatalog } from '#virtualapi/catalog/cluster-catalog.ts'
import { outdatedQuotas } from '#virtualapi/write/quota/index.ts'
import { readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import { Registry } from './registry.ts'
import type { RegistryTarget } from './write.ts'
import { Conversions } from '#virtualapi/write/conversion/conversions.ts'

const noConversions = new Conversions({ outbound: { post: () => Promise.reject(new Error('there are no webhooks')) } })

const tenant: UserInfo = { name: 'alice', groups: [], extra: {}, realm: { kind: 'host' } }
const installation: UserInfo = { name: 'syncer', groups: [], extra: {}, realm: { kind: 'installation' } }
const registry = new Registry({ admission: createAdmission({ plugins: [] }), conversions: noConversions })
const catalog = new ClusterCatalog()
const { signal } = new AbortController()

describe('quotas', () => {
  let directory: string
  let store: Store
  let watchCache: WatchCache
  let objects: ClusterObjects

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kcp-quotas-'))
    store = await openSqliteStore({ file: join(directory, 'objects.db') })
    watchCache = await createWatchCache(store, { stamp: stampRevision, readFacts, signal })
    objects = await watchCache.cluster('quotas0001' as ClusterId, { signal })
  })
  after(async () => {
    await watchCache[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
    await rm(directory, { recursive: true })
  })

  function target(
    resource: string,
    namespace: string,
    { user = tenant, dryRun = false }: { user?: UserInfo; dryRun?: boolean } = {},
  ): RegistryTarget {
    const definition = catalog.findBuiltIn({ group: '', version: 'v1', resource })
    if (definition === undefined) throw new Error(`${resource} is not built in`)
    const cluster = {
      name: 'quotas' as ClusterName,
      id: objects.cluster,
      uid: 'u',
      creationTimestamp: '2025-01-01T00:00:00Z',
      owners: [],
      deleting: false,
    }
    const context = {
      ...{ cluster, objects, user, dryRun, fieldManager: '', warnings: [], now: Date.now() },
      work: new WorkBudget(),
    }
    return { definition, signal, namespace, context }
  }

  const map = (name: string): KubeObject => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } })
  const pod = (name: string, cpu: string): KubeObject => ({
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name } },
    spec: { containers: [{ name: 'c', image: 'x', resources: { requests: { cpu } } }] },
  })
  const limit = (namespace: string, name: string, hard: Record<string, string>): Promise<unknown> =>
    registry.create(target('resourcequotas', namespace), {
      ...{ apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name }, spec: { hard } },
    })

  /** Runs the writes at once. Returns how many succeeded, and the messages of the others. */
  async function results(writes: readonly Promise<unknown>[]): Promise<{ done: number; refused: string[] }> {
    const settled = await Promise.allSettled(writes)
    const reasons = settled.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
    const refused = reasons.map((reason) => (isStatusError(reason, 'Forbidden') ? reason.message : String(reason)))
    return { done: settled.length - reasons.length, refused }
  }

  it('admit exactly as many of many creates at once as there is room for', async () => {
    await limit('many', 'q', { configmaps: '7' })
    const names = Array.from({ length: 40 }, (_, index) => `m${index}`)
    const { done, refused } = await results(
      names.map((name) => registry.create(target('configmaps', 'many'), map(name))),
    )
    expect(done).to.equal(7)
    expect(new Set(refused.map((message) => message.replace(/"m\d+"/, 'NAME')))).to.deep.equal(
      new Set([
        'configmaps NAME is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=7, limited: configmaps=7',
      ]),
    )
    expect(objects.count({ resource: 'configmaps', namespace: 'many' })).to.equal(7)
  })

  it('add up what pods request, whatever order they come in', async () => {
    await limit('compute', 'q', { 'requests.cpu': '1' })
    const names = Array.from({ length: 20 }, (_, index) => `p${index}`)
    const { done } = await results(names.map((name) => registry.create(target('pods', 'compute'), pod(name, '150m'))))
    expect(done).to.equal(6)
    const [quota] = outdatedQuotas(objects, 'compute', Date.now())
    expect(quota?.['status']).to.deep.equal({ hard: { 'requests.cpu': '1' }, used: { 'requests.cpu': '900m' } })
  })

  it('hold nothing for writes that failed, and for dry runs', async () => {
    await limit('fails', 'q', { configmaps: '2' })
    await registry.create(target('configmaps', 'fails'), map('a'))
    const twice = [1, 2, 3].map(() => registry.create(target('configmaps', 'fails'), map('a')))
    expect((await results(twice)).done).to.equal(0)
    const dry = [1, 2, 3].map((n) => registry.create(target('configmaps', 'fails', { dryRun: true }), map(`d${n}`)))
    expect((await results(dry)).done).to.equal(3)
    expect((await results([registry.create(target('configmaps', 'fails'), map('b'))])).done).to.equal(1)
    const third = target('configmaps', 'fails', { dryRun: true })
    expect((await results([registry.create(third, map('c'))])).done).to.equal(0)
  })

  it('give room back when an object is deleted or a pod has ended', async () => {
    await limit('back', 'q', { pods: '1' })
    const pods = target('pods', 'back')
    await registry.create(pods, pod('a', '1'))
    expect((await results([registry.create(pods, pod('b', '1'))])).done).to.equal(0)
    await registry.update(pods, 'a', {
      subresource: 'status',
      change: (current) => ({ ...structuredClone(current as KubeObject), status: { phase: 'Succeeded' } }),
    })
    await registry.create(pods, pod('b', '1'))
    await registry.delete(pods, 'b', { gracePeriodSeconds: 0 })
    expect((await results([registry.create(pods, pod('c', '1'))])).done).to.equal(1)
  })

  it('count what members create, and refuse it never', async () => {
    await limit('members', 'q', { pods: '1' })
    const own = target('pods', 'members', { user: installation })
    for (const name of ['a', 'b']) await registry.create(own, pod(name, '1'))
    const { refused } = await results([registry.create(target('pods', 'members'), pod('c', '1'))])
    expect(refused).to.deep.equal([
      'pods "c" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=1',
    ])
  })
})
