import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { Store } from '#store/index.ts'
import { createWatchCache, type BaseLayer, type ClusterObjects, type WatchCache } from '#store/watch-cache/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import { flowHeaders } from './flow-headers.ts'

const group = 'flowcontrol.apiserver.k8s.io'
const { signal } = new AbortController()
const bytesOf = (kind: string, name: string, spec: object): Buffer =>
  Buffer.from(JSON.stringify({ kind, apiVersion: `${group}/v1`, metadata: { name, uid: `uid of ${name}` }, spec }))
const flow = (users: readonly string[]): object => ({
  priorityLevelConfiguration: { name: 'level' },
  rules: [
    {
      subjects: users.map((name) => ({ kind: 'User', user: { name } })),
      nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
      resourceRules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'], namespaces: ['*'] }],
    },
  ],
})
const request = { user: { name: 'alice', groups: [] }, verb: 'get', path: '/version' }
const named = {
  'x-kubernetes-pf-flowschema-uid': 'uid of hers',
  'x-kubernetes-pf-prioritylevel-uid': 'uid of level',
}

describe('flowHeaders', () => {
  let directory: string
  let store: Store
  let watchCache: WatchCache
  let objects: ClusterObjects
  let clusters = 0

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kcp-flows-'))
    store = await openSqliteStore({ file: join(directory, 'objects.db') })
    watchCache = await createWatchCache(store, { stamp: stampRevision, readFacts, signal })
  })
  beforeEach(async () => {
    objects = await watchCache.cluster(`flows${++clusters}` as ClusterId, { signal })
    await create('prioritylevelconfigurations', 'PriorityLevelConfiguration', 'level', {})
    await createFlow('hers', ['alice'])
  })
  after(async () => {
    await watchCache[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
    await rm(directory, { recursive: true })
  })

  const create = (resource: string, kind: string, name: string, spec: object) =>
    objects.create({ resource: `${resource}.${group}`, namespace: '', name }, bytesOf(kind, name, spec), { signal })
  const createFlow = (name: string, users: readonly string[]) => create('flowschemas', 'FlowSchema', name, flow(users))

  it('names the FlowSchema that a request belongs to, and its priority level', () => {
    expect(flowHeaders(objects, request)).to.deep.equal(named)
  })

  it('tells requests of one user apart by what they ask for, and forgets them when a FlowSchema changes', async () => {
    const asking = (verb: string, resource: string): object => {
      const asked = { group: '', resource, subresource: '', namespace: 'default' }
      return flowHeaders(objects, { ...request, verb, path: '', resource: asked })
    }
    expect(asking('get', 'pods')).to.deep.equal(named)
    expect(asking('get', 'pods')).to.deep.equal(named)
    expect(asking('get', 'secrets')).to.deep.equal({})
    expect(asking('delete', 'pods')).to.deep.equal({})
    const hers = objects.get(`flowschemas.${group}`, '', 'hers')
    if (hers === undefined) throw new Error('the FlowSchema is gone')
    const { resource, namespace, name } = hers.key
    await objects.delete({ resource, namespace, name }, { ifRevision: hers.revision, signal })
    expect(asking('get', 'pods')).to.deep.equal({})
  })

  it('reads the FlowSchemas that all logical clusters have once, and those of a logical cluster that wrote one', async () => {
    const names = ['one', 'other']
    let read = 0
    const baseLayer: BaseLayer = {
      resources: [`flowschemas.${group}`],
      get: ({ resource, name }) => {
        if (resource !== `flowschemas.${group}` || !names.includes(name)) return undefined
        read++
        return bytesOf('FlowSchema', name, flow([`user of ${name}`]))
      },
      keys: (cluster, resource) =>
        resource === `flowschemas.${group}` ? names.map((name) => ({ cluster, resource, namespace: '', name })) : [],
    }
    await using withBase = await createWatchCache(store, { stamp: stampRevision, readFacts, baseLayer, signal })
    const [first, second, third] = await Promise.all(
      ['a', 'b', 'c'].map((id) => withBase.cluster(id as ClusterId, { signal })),
    )
    if (first === undefined || second === undefined || third === undefined) throw new Error('unreachable')
    expect(flowHeaders(first, request)).to.deep.equal({})
    expect(read).to.equal(names.length)
    expect(flowHeaders(second, request)).to.deep.equal({})
    expect(read).to.equal(names.length)
    const put = (resource: string, kind: string, name: string, spec: object) =>
      third.create({ resource: `${resource}.${group}`, namespace: '', name }, bytesOf(kind, name, spec), { signal })
    await put('prioritylevelconfigurations', 'PriorityLevelConfiguration', 'level', {})
    await put('flowschemas', 'FlowSchema', 'hers', flow(['alice']))
    expect(flowHeaders(third, request)).to.deep.equal(named)
    expect(flowHeaders(second, request)).to.deep.equal({})
  })

  it('names none while the FlowSchemas are larger than 256 KiB together', async () => {
    const entry = await createFlow(
      'large',
      Array.from({ length: 8000 }, (_, i) => `a user of the number ${i}`),
    )
    expect(flowHeaders(objects, request)).to.deep.equal({})
    const { resource, namespace, name } = entry.key
    await objects.delete({ resource, namespace, name }, { ifRevision: entry.revision, signal })
    expect(flowHeaders(objects, request)).to.deep.equal(named)
  })

  it('names none while the FlowSchemas are more than 1,000', async () => {
    await Promise.all(Array.from({ length: 1000 }, (_, i) => createFlow(`other-${i}`, [])))
    expect(flowHeaders(objects, request)).to.deep.equal({})
  })
})
