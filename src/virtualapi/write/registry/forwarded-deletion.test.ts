// Deletions of objects that run elsewhere, whose end may be reported before the deletion is stored here.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ClusterId, ClusterName, KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
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
const pod = (): KubeObject => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' } },
  spec: { containers: [{ name: 'c', image: 'x' }] },
})

describe('deletion of an object that runs elsewhere', () => {
  const stack = new AsyncDisposableStack()
  let objects: ClusterObjects

  before(async () => {
    const directory = await mkdtemp(join(tmpdir(), 'kcp-forwarded-'))
    stack.defer(() => rm(directory, { recursive: true }))
    const store = stack.use(await openSqliteStore({ file: join(directory, 'objects.db') }))
    const watchCache = stack.use(await createWatchCache(store, { stamp: stampRevision, readFacts, signal }))
    objects = await watchCache.cluster('forwarded1' as ClusterId, { signal })
  })
  after(() => stack.disposeAsync())

  function target(namespace: string): RegistryTarget {
    const definition = new ClusterCatalog().findBuiltIn({ group: '', version: 'v1', resource: 'pods' })
    if (definition === undefined) throw new Error('pods are not built in')
    const cluster = {
      ...{ name: 'forwarded' as ClusterName, id: objects.cluster, uid: 'u', owners: [], deleting: false },
      creationTimestamp: '2025-01-01T00:00:00Z',
    }
    const user = { name: 'alice', groups: [], extra: {}, realm: { kind: 'host' } } as const
    const context = {
      ...{ cluster, objects, user, dryRun: false, fieldManager: '', warnings: [], now: Date.now() },
      work: new WorkBudget(),
    }
    return { definition, signal, namespace, context }
  }

  /** Deletes the pod; `elsewhere` is what happens here while it is deleted where it runs. */
  const remove = (namespace: string, elsewhere: () => Promise<unknown>, wasThere: boolean) =>
    registry.delete(
      {
        ...target(namespace),
        forward: { update: () => Promise.resolve(), delete: () => elsewhere().then(() => wasThere) },
      },
      'web',
      { gracePeriodSeconds: 0 },
    )
  const reportEnd = (namespace: string): Promise<unknown> =>
    registry.delete(target(namespace), 'web', { gracePeriodSeconds: 0 })

  it('succeeds although its end was reported before', async () => {
    const { object } = await registry.create(target('a'), pod())
    const removed = await remove('a', () => reportEnd('a'), true)
    expect(removed.deleted).to.equal(true)
    expect(removed.object.metadata.uid).to.equal(object.metadata.uid)
    expect(JSON.parse(new TextDecoder().decode(removed.bytes))).to.nested.include({
      'metadata.uid': object.metadata.uid,
      'metadata.deletionGracePeriodSeconds': 0,
    })
  })

  it('leaves a new object of the same name alone', async () => {
    await registry.create(target('b'), pod())
    let next: string | undefined
    await remove(
      'b',
      async () => {
        await reportEnd('b')
        next = (await registry.create(target('b'), pod())).object.metadata.uid
      },
      true,
    )
    const kept = JSON.parse(new TextDecoder().decode(await registry.read(target('b'), 'web'))) as KubeObject
    expect(kept.metadata.uid).to.equal(next)
  })

  it('is refused where somebody else deleted it and nothing runs elsewhere', async () => {
    await registry.create(target('c'), pod())
    const refused = await remove('c', () => reportEnd('c'), false).catch((error: unknown) => error)
    expect(isStatusError(refused, 'NotFound')).to.equal(true)
  })
})
