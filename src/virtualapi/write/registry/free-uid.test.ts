// Copies of members' objects, whose uid a member chose.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ClusterId, ClusterName, KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { createWatchCache, type ClusterObjects } from '#store/watch-cache/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { createAdmission } from '#virtualapi/write/admission/admission.ts'
import { ClusterCatalog } from '#virtualapi/catalog/cluster-catalog.ts'
import { Conversions } from '#virtualapi/write/conversion/conversions.ts'
import { readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import { Registry } from './registry.ts'
import type { RegistryTarget } from './write.ts'

const conversions = new Conversions({ outbound: { post: () => Promise.reject(new Error('there are no webhooks')) } })
const registry = new Registry({ admission: createAdmission({ plugins: [] }), conversions })
const { signal } = new AbortController()

describe('a copy of an object in a member', () => {
  const stack = new AsyncDisposableStack()
  let objects: ClusterObjects

  before(async () => {
    const directory = await mkdtemp(join(tmpdir(), 'kcp-uids-'))
    stack.defer(() => rm(directory, { recursive: true }))
    const store = stack.use(await openSqliteStore({ file: join(directory, 'objects.db') }))
    const watchCache = stack.use(await createWatchCache(store, { stamp: stampRevision, readFacts, signal }))
    objects = await watchCache.cluster('copies1' as ClusterId, { signal })
  })
  after(() => stack.disposeAsync())

  function target(resource: string, namespace: string): RegistryTarget {
    const definition = new ClusterCatalog().findBuiltIn({ group: '', version: 'v1', resource })
    if (definition === undefined) throw new Error(`${resource} are not built in`)
    const cluster = {
      ...{ name: 'copies' as ClusterName, id: objects.cluster, uid: 'u', owners: [], deleting: false },
      creationTimestamp: '2025-01-01T00:00:00Z',
    }
    const user = { name: 'alice', groups: [], extra: {}, realm: { kind: 'host' } } as const
    const context = {
      ...{ cluster, objects, user, dryRun: false, fieldManager: '', warnings: [], now: Date.now() },
      work: new WorkBudget(),
    }
    return { definition, signal, namespace, context }
  }
  const copy = async (metadata: ObjectMeta, namespace = 'a'): Promise<string | undefined> => {
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [{ name: 'c', image: 'x' }] } }
    return (await registry.create(target('pods', namespace), pod, { keepUid: true })).object.metadata.uid
  }
  const owned = async (name: string, owner: { kind: string; name: string; uid: string }): Promise<void> => {
    const metadata = { name, ownerReferences: [{ apiVersion: 'v1', ...owner }] }
    const object: KubeObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata }
    await registry.create(target('configmaps', 'a'), object)
  }

  it('keeps a uid that nothing else has', async () =>
    expect(await copy({ name: 'one', uid: 'first' })).to.equal('first'))

  it('gets a new uid if an object of its kind has that one, in any namespace', async () => {
    expect(await copy({ name: 'two', uid: 'first' })).not.to.equal('first')
    expect(await copy({ name: 'two', uid: 'first' }, 'b')).not.to.equal('first')
  })

  it('gets a new uid if an object of another kind has that one', async () => {
    const metadata = { name: 'owner', uid: 'of another kind' }
    const { object } = await registry.create(target('configmaps', 'a'), {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata,
    })
    const { uid } = object.metadata
    for (const namespace of ['a', 'b']) expect(await copy({ name: 'alike', uid: uid! }, namespace)).not.to.equal(uid)
  })

  it('gets a new uid if objects name that one as the uid of another owner', async () => {
    await owned('child', { kind: 'ReplicationController', name: 'web', uid: 'taken' })
    expect(await copy({ name: 'thief', uid: 'taken' })).not.to.equal('taken')
  })

  it('keeps a uid whose object is gone', async () => {
    expect(await copy({ name: 'gone', uid: 'third' })).to.equal('third')
    expect(await copy({ name: 'other', uid: 'third' })).not.to.equal('third')
    const { key, revision } = objects.get('pods', 'a', 'gone')!
    await objects.delete(key, { ifRevision: revision, signal })
    expect(await copy({ name: 'gone', uid: 'third' })).to.equal('third')
  })

  it('is compared with the objects that changed since the last copy, not with all', async () => {
    await copy({ name: 'before', uid: 'fourth' })
    let lists = 0
    const all = objects
    const list: ClusterObjects['list'] = (scope) => {
      if (scope.resource === 'pods') lists++
      return all.list(scope)
    }
    objects = new Proxy(all, {
      get(watchCache, property) {
        const value: unknown = property === 'list' ? list : Reflect.get(watchCache, property)
        return typeof value === 'function' ? (value.bind(watchCache) as unknown) : value
      },
    })
    for (let i = 0; i < 20; i++) expect(await copy({ name: `many-${i}`, uid: `uid-${i}` })).to.equal(`uid-${i}`)
    objects = all
    // The first of them reads all, because the counted objects are others to it.
    expect(lists).to.equal(1)
  })

  it('keeps its uid if it is created again and its dependents are still there', async () => {
    await owned('claim', { kind: 'Pod', name: 'again', uid: 'second' })
    expect(await copy({ name: 'again', uid: 'second' })).to.equal('second')
  })
})
