// The endpoints over a real registry, watch cache and store, without the stages that come before them.
import { Buffer } from 'node:buffer'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ClusterId, ClusterName, JsonObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { systemClock } from '#async/index.ts'
import { createWatchCache, type WatchCache } from '#store/watch-cache/index.ts'
import type { Store } from '#store/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { createAdmission } from '#virtualapi/write/admission/admission.ts'
import { ClusterCatalog } from '#virtualapi/catalog/cluster-catalog.ts'
import { readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import { Registry } from '#virtualapi/write/registry/registry.ts'
import { parseRequest } from '#virtualapi/request/parse-request.ts'
import { Exchange } from '#virtualapi/request/exchange.ts'
import type { EndpointDependencies } from './call/dependencies.ts'
import { dispatch } from './dispatch.ts'
import { Conversions } from '#virtualapi/write/conversion/conversions.ts'

const noConversions = new Conversions({ outbound: { post: () => Promise.reject(new Error('there are no webhooks')) } })

const { signal } = new AbortController()
const cluster = {
  name: 'acme' as ClusterName,
  id: 'endpoints1' as ClusterId,
  uid: 'u',
  creationTimestamp: '2025-01-01T00:00:00Z',
  owners: [],
  deleting: false,
}

interface ObjectBody {
  readonly kind: string
  readonly message?: string
  readonly reason?: string
  readonly metadata: {
    readonly name?: string
    readonly resourceVersion?: string
    readonly continue?: string
    readonly remainingItemCount?: number
  }
  readonly spec: { readonly replicas?: number; readonly nodeName?: string }
  readonly status: { readonly disruptionsAllowed?: number; readonly disruptedPods?: object }
  readonly items: readonly { readonly metadata: { readonly name: string } }[]
  readonly data?: Readonly<Record<string, string>>
  readonly details?: { readonly causes?: readonly { readonly message: string }[] }
}

describe('endpoints', () => {
  let directory: string
  let store: Store
  let watchCache: WatchCache
  let dependencies: EndpointDependencies

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kcp-endpoints-'))
    store = await openSqliteStore({ file: join(directory, 'objects.db') })
    watchCache = await createWatchCache(store, { stamp: stampRevision, readFacts, signal })
    const registry = new Registry({ admission: createAdmission({ plugins: [] }), conversions: noConversions })
    dependencies = {
      watchCache,
      registry,
      catalog: new ClusterCatalog(),
      clock: systemClock,
    } as Partial<EndpointDependencies> as EndpointDependencies
  })
  after(async () => {
    await watchCache[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
    await rm(directory, { recursive: true })
  })

  /** Sends a request to its endpoint; an error becomes its Status. */
  async function ask(
    method: string,
    path: string,
    { body, type = 'application/json' }: { body?: unknown; type?: string } = {},
  ): Promise<{ code: number; body: ObjectBody }> {
    const url = `/clusters/acme${path}`
    const exchange = new Exchange({
      method,
      url,
      rawHeaders: body === undefined ? [] : ['Content-Type', type],
      peerCertificate: undefined,
      body: () => Promise.resolve(Buffer.from(body === undefined ? '' : JSON.stringify(body))),
      signal,
    })
    exchange.info = parseRequest(method, url, { hasBearerToken: false })
    exchange.cluster = cluster
    exchange.user = { name: 'alice', groups: [], extra: {}, realm: { kind: 'cluster', id: cluster.id } }
    try {
      const response = await dispatch(exchange, dependencies)
      if (response.kind !== 'bytes' && response.kind !== 'chunks') throw new Error(`unexpected answer ${response.kind}`)
      const { status, body: bytes } =
        response.kind === 'chunks' ? { ...response, body: Buffer.concat([...response.chunks]) } : response
      return { code: status, body: JSON.parse(Buffer.from(bytes).toString()) as ObjectBody }
    } catch (error) {
      if (!isStatusError(error)) throw error
      return { code: error.code, body: error.status as unknown as ObjectBody }
    }
  }

  /** Creates an object and, if given, writes its status. */
  async function create(collection: string, object: JsonObject, status?: JsonObject): Promise<void> {
    const created = await ask('POST', collection, { body: object })
    expect(created.code, created.body.message).to.equal(201)
    if (status === undefined) return
    const path = `${collection}/${created.body.metadata.name ?? ''}/status`
    const written = await ask('PUT', path, { body: { ...created.body, status } })
    expect(written.code, written.body.message).to.equal(200)
  }

  describe('of an eviction', () => {
    let count = 0

    /** A namespace with one pod and, where `budget` is given, a PodDisruptionBudget that selects it. */
    async function podWithBudget(pod: JsonObject, budget?: JsonObject): Promise<string> {
      const namespace = `/namespaces/evict-${++count}`
      const spec = { containers: [{ name: 'c', image: 'x' }] }
      await create(`/api/v1${namespace}/pods`, { metadata: { name: 'web', labels: { app: 'web' } }, spec }, pod)
      if (budget !== undefined)
        await create(
          `/apis/policy/v1${namespace}/poddisruptionbudgets`,
          { metadata: { name: 'budget' }, spec: { selector: { matchLabels: { app: 'web' } }, minAvailable: 1 } },
          budget,
        )
      return namespace
    }

    const evict = (namespace: string, options: JsonObject = {}) =>
      ask('POST', `/api/v1${namespace}/pods/web/eviction`, {
        body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'web' }, ...options },
      })

    const ready = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }
    const unready = { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] }
    const spent = {
      observedGeneration: 1,
      disruptionsAllowed: 0,
      desiredHealthy: 1,
      currentHealthy: 1,
      expectedPods: 1,
    }
    const free = { ...spent, disruptionsAllowed: 1, currentHealthy: 2 }
    const missing = { ...spent, desiredHealthy: 2 }
    for (const { title, pod, budget, code, message } of [
      { title: 'allows it without a budget', pod: ready, budget: undefined, code: 201 },
      { title: 'allows it within the budget', pod: ready, budget: free, code: 201 },
      {
        title: 'refuses it if the budget is spent',
        pod: ready,
        budget: spent,
        code: 429,
        message: 'The disruption budget budget needs 1 healthy pods and has 1 currently',
      },
      {
        title: 'refuses it if the controller has not seen the budget',
        pod: ready,
        budget: { ...free, observedGeneration: 0 },
        code: 429,
        message: 'The disruption budget budget is still being processed by the server.',
      },
      { title: 'allows it for a pod that has ended', pod: { phase: 'Succeeded' }, budget: spent, code: 201 },
      { title: 'allows it for a pod that has not started', pod: { phase: 'Pending' }, budget: spent, code: 201 },
      { title: 'allows it for an unready pod if enough are healthy', pod: unready, budget: spent, code: 201 },
      {
        title: 'refuses it for an unready pod if too few are healthy',
        pod: unready,
        budget: missing,
        code: 429,
        message: 'The disruption budget budget needs 2 healthy pods and has 1 currently',
      },
    ])
      it(title, async () => {
        const namespace = await podWithBudget(pod, budget)
        const { code: answered, body } = await evict(namespace)
        expect(answered, body.message).to.equal(code)
        expect(body.details?.causes?.[0]?.message).to.equal(message)
      })

    it('charges the budget for a ready pod', async () => {
      const namespace = await podWithBudget(ready, free)
      await evict(namespace)
      const { body } = await ask('GET', `/apis/policy/v1${namespace}/poddisruptionbudgets/budget`)
      expect(body.status.disruptionsAllowed).to.equal(0)
      expect(body.status.disruptedPods).to.have.all.keys('web')
    })

    it('does not charge the budget with the uid of another pod', async () => {
      const namespace = await podWithBudget(ready, free)
      const { code } = await evict(namespace, { deleteOptions: { preconditions: { uid: 'other' } } })
      expect(code).to.equal(409)
      const { body } = await ask('GET', `/apis/policy/v1${namespace}/poddisruptionbudgets/budget`)
      expect(body.status.disruptionsAllowed).to.equal(1)
    })

    it('refuses an Eviction of another name', async () => {
      const namespace = await podWithBudget(ready)
      const { code, body } = await evict(namespace, { metadata: { name: 'db' } })
      expect(code).to.equal(400)
      expect(body.message).to.equal('name in URL does not match name in Eviction object')
    })
  })

  describe('of a scale', () => {
    const path = '/apis/apps/v1/namespaces/scale/deployments'
    before(async () => {
      const metadata = { labels: { app: 'web' } }
      const template = { metadata, spec: { containers: [{ name: 'c', image: 'x' }] } }
      const spec = { replicas: 2, selector: { matchLabels: { app: 'web' } }, template }
      await create(path, { metadata: { name: 'web' }, spec })
    })
    const scale = (replicas: unknown) => ({
      kind: 'Scale',
      apiVersion: 'autoscaling/v1',
      metadata: { name: 'web', namespace: 'scale' },
      spec: { replicas },
    })

    it('reads the replicas of a workload', async () => {
      const { body } = await ask('GET', `${path}/web/scale`)
      expect(body).to.include({ kind: 'Scale' })
      expect(body.spec.replicas).to.equal(2)
    })
    it('writes them with PUT', async () => {
      expect(await ask('PUT', `${path}/web/scale`, { body: scale(3) })).to.have.nested.property('body.spec.replicas', 3)
      expect((await ask('GET', `${path}/web`)).body.spec.replicas).to.equal(3)
    })
    it('writes them with PATCH', async () => {
      const type = 'application/merge-patch+json'
      const { body } = await ask('PATCH', `${path}/web/scale`, { body: { spec: { replicas: 5 } }, type })
      expect(body.spec.replicas).to.equal(5)
    })
    for (const { title, body, code } of [
      { title: 'a negative number', body: scale(-1), code: 422 },
      { title: 'a text', body: scale('5'), code: 400 },
      { title: 'another kind', body: { ...scale(1), kind: 'Deployment', apiVersion: 'apps/v1' }, code: 400 },
      { title: 'another name', body: { ...scale(1), metadata: { name: 'db' } }, code: 400 },
      { title: 'another namespace', body: { ...scale(1), metadata: { name: 'web', namespace: 'x' } }, code: 400 },
    ])
      it(`refuses ${title} with ${code}`, async () => {
        expect(await ask('PUT', `${path}/web/scale`, { body })).to.have.property('code', code)
      })
    it('does not take DELETE', async () => {
      expect(await ask('DELETE', `${path}/web/scale`)).to.have.property('code', 405)
    })
  })

  describe('of a list', () => {
    const path = '/api/v1/namespaces/list/configmaps'
    before(async () => {
      for (const name of ['a', 'b', 'c', 'd', 'e']) {
        const labels = { odd: String('ace'.includes(name)) }
        await create(path, { metadata: { name, labels } })
      }
    })
    const names = ({ items }: ObjectBody): string => items.map(({ metadata }) => metadata.name).join('')

    for (const { query, expected, remaining } of [
      { query: '', expected: 'abcde', remaining: undefined },
      { query: '?limit=2', expected: 'ab', remaining: 3 },
      { query: '?limit=5', expected: 'abcde', remaining: undefined },
      { query: '?labelSelector=odd%3Dtrue', expected: 'ace', remaining: undefined },
      // With a selector the number of remaining items is unknown.
      { query: '?labelSelector=odd%3Dtrue&limit=2', expected: 'ac', remaining: undefined },
      { query: '?fieldSelector=metadata.name%3Dc', expected: 'c', remaining: undefined },
      { query: '?fieldSelector=metadata.name%3Dx', expected: '', remaining: undefined },
    ])
      it(`answers "${query}" with "${expected}"`, async () => {
        const { body } = await ask('GET', path + query)
        expect(names(body)).to.equal(expected)
        expect(body.metadata.remainingItemCount).to.equal(remaining)
      })

    it('continues where the last page ended, in the same state', async () => {
      const { body: first } = await ask('GET', `${path}?limit=2`)
      await create(path, { metadata: { name: 'cc' } })
      const { body: second } = await ask('GET', `${path}?limit=2&continue=${first.metadata.continue ?? ''}`)
      const { body: third } = await ask('GET', `${path}?limit=2&continue=${second.metadata.continue ?? ''}`)
      expect([names(first), names(second), names(third)]).to.deep.equal(['ab', 'cd', 'e'])
      expect(third.metadata.resourceVersion).to.equal(first.metadata.resourceVersion)
      expect(third.metadata.continue).to.equal(undefined)
      await ask('DELETE', `${path}/cc`)
    })

    it('refuses an unsupported field selector', async () => {
      expect(await ask('GET', `${path}?fieldSelector=data.x%3D1`)).to.have.property('code', 400)
    })
  })

  describe('of a patch', () => {
    const path = '/api/v1/namespaces/patch/configmaps'
    before(() => create(path, { metadata: { name: 'c' }, data: { a: '1' } }))

    for (const { type, body, data } of [
      { type: 'application/merge-patch+json', body: { data: { b: '2' } }, data: { a: '1', b: '2' } },
      {
        type: 'application/json-patch+json',
        body: [{ op: 'replace', path: '/data/a', value: '3' }],
        data: { a: '3', b: '2' },
      },
      {
        type: 'application/strategic-merge-patch+json',
        body: { data: { b: null }, kind: 'Secret' },
        data: { a: '3' },
      },
      { type: 'application/strategic-merge-patch+json', body: null, data: { a: '3' } },
    ])
      it(`applies ${JSON.stringify(body)} as ${type}`, async () => {
        const response = await ask('PATCH', `${path}/c`, { body, type })
        expect(response.body.data, response.body.message).to.deep.equal(data)
        expect(response.body.kind).to.equal('ConfigMap')
      })

    for (const { title, type, body, name, code } of [
      { title: 'an object', type: 'application/json', body: {}, name: 'c', code: 415 },
      { title: 'a missing object', type: 'application/merge-patch+json', body: {}, name: 'x', code: 404 },
      {
        title: 'another name',
        type: 'application/merge-patch+json',
        body: { metadata: { name: 'd' } },
        name: 'c',
        code: 400,
      },
      {
        title: 'a wrong type',
        type: 'application/merge-patch+json',
        body: { data: { a: 1 } },
        name: 'c',
        code: 422,
      },
      { title: 'a list', type: 'application/merge-patch+json', body: [], name: 'c', code: 400 },
    ])
      it(`refuses ${title} with ${code}`, async () => {
        expect(await ask('PATCH', `${path}/${name}`, { body, type })).to.have.property('code', code)
      })
  })

  describe('of a binding', () => {
    const path = '/api/v1/namespaces/bind/pods'
    const bind = (name: string, target: JsonObject) =>
      ask('POST', `${path}/${name}/binding`, { body: { metadata: { name }, target } })
    before(async () => {
      const spec = { containers: [{ name: 'c', image: 'x' }] }
      for (const name of ['a', 'b']) await create(path, { metadata: { name }, spec })
    })

    it('assigns a pod to a node, once', async () => {
      expect(await bind('a', { kind: 'Node', name: 'n1' })).to.have.property('code', 201)
      expect((await ask('GET', `${path}/a`)).body.spec.nodeName).to.equal('n1')
      const again = await bind('a', { name: 'n2' })
      expect(again.code).to.equal(409)
      expect(again.body.message).to.contain('pod a is already assigned to node "n1"')
    })
    it('refuses a target that is no node', async () => {
      const { code, body } = await bind('b', { kind: 'Pod', name: '' })
      expect(code).to.equal(500)
      expect(body.message).to.contain('target.kind').and.to.contain('target.name')
    })
  })

  describe('of paths that are not served', () => {
    for (const { method, path, code } of [
      { method: 'GET', path: '/api/v1/namespaces/x/nonsense', code: 404 },
      { method: 'GET', path: '/api/v1/namespaces/x/pods/p/nonsense', code: 404 },
      { method: 'POST', path: '/api/v1/namespaces/x/pods/p', code: 405 },
      { method: 'GET', path: '/api/v1/namespaces/x/pods/a%25b', code: 400 },
      { method: 'GET', path: '/api/v1/namespaces/x/pods/missing', code: 404 },
      { method: 'GET', path: '/api/v1/namespaces/x/pods/p?export=true', code: 400 },
    ])
      it(`answer ${code} to ${method} ${path}`, async () => {
        expect(await ask(method, path)).to.have.property('code', code)
      })
  })
})
