// src/client, src/reconcile and src/operator/install against a real kube-apiserver that is killed and restarted.
import { Readable } from 'node:stream'
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { abortable } from '#async/index.ts'
import {
  createClient,
  createInformer,
  httpTransport,
  loadKubeconfig,
  type KubeClient,
  type Transport,
} from '#client/index.ts'
import { kcpCrds, logicalClusters, storageCrds } from '#crds/index.ts'
import { ensureCrds } from '#operator/index.ts'
import { runAsLeader } from '#reconcile/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { startCluster, waitFor, type Cluster } from '#test/support/index.ts'

const configMaps = { group: '', version: 'v1', resource: 'configmaps' }
const leases = { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' }
const namespace = 'default'

function configMap(name: string, data: Record<string, string> = {}): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name }, data }
}

describe('the client on a real kube-apiserver', function () {
  this.timeout(120_000)
  const signal = new AbortController().signal
  let cluster: Cluster
  let transport: Transport
  let client: KubeClient

  before(async function () {
    this.timeout(15 * 60_000)
    cluster = await startCluster({ name: 'client' })
    // Loaded with the strict rules for kubeconfigs from Secrets: the harness's kubeconfig refers to no files.
    transport = httpTransport(await loadKubeconfig({ file: cluster.kubeconfig }))
    client = createClient(transport, { pageSize: 3 })
  })
  after(async () => {
    await transport[Symbol.asyncDispose]()
    await cluster.stop()
  })

  it('keeps unknown fields, joins pages, and fills in apiVersion and kind of list items', async () => {
    for (let i = 0; i < 8; i++)
      await client.create(configMaps, configMap(`page-${i}`, { text: 'a\u2028b' }), { signal })
    const list = await client.list(configMaps, { namespace, signal })
    const mine = list.items.filter(({ metadata }) => metadata.name?.startsWith('page-'))
    expect(mine).to.have.length(8)
    expect(mine[0]).to.include({ apiVersion: 'v1', kind: 'ConfigMap' })
    expect(list.metadata).not.to.have.any.keys('continue', 'remainingItemCount')
    const metadataOnly = await client.list(configMaps, { namespace, metadataOnly: true, signal })
    expect(metadataOnly.items[0]).not.to.have.property('data')
  })

  it("returns the server's Status as a StatusError", async () => {
    const missing = await client.get(configMaps, { namespace, name: 'no' }, { signal }).catch((error: unknown) => error)
    expect(missing).to.include({ code: 404, reason: 'NotFound', message: 'configmaps "no" not found' })
    expect(await client.tryGet(configMaps, { namespace, name: 'no' }, { signal })).to.equal(undefined)
    const made = await client.create(configMaps, configMap('once'), { signal })
    const twice = await client.create(configMaps, configMap('once'), { signal }).catch((error: unknown) => error)
    expect(twice).to.include({ reason: 'AlreadyExists' })
    await client.update(configMaps, { ...made, data: { a: '1' } }, { signal })
    const stale = await client
      .update(configMaps, { ...made, data: { a: '2' } }, { signal })
      .catch((error: unknown) => error)
    expect(stale).to.include({ reason: 'Conflict' })
    const wrongUid = client.delete(configMaps, { namespace, name: 'once' }, { uid: 'other', signal })
    expect(await wrongUid.catch((error: unknown) => error)).to.include({ reason: 'Conflict' })
  })

  it('supports every patch type', async () => {
    const ref = { namespace, name: 'patched' }
    const applied = { ...configMap('patched', { a: '1' }) }
    await client.patch(configMaps, ref, 'apply', applied, { fieldManager: 'one', signal })
    const other = client.patch(configMaps, ref, 'apply', configMap('patched', { a: '2' }), {
      fieldManager: 'two',
      signal,
    })
    expect(await other.catch((error: unknown) => error)).to.include({ reason: 'Conflict' })
    const forced = { fieldManager: 'two', force: true, signal }
    await client.patch(configMaps, ref, 'apply', configMap('patched', { a: '2' }), forced)
    await client.patch(configMaps, ref, 'merge', { data: { b: '2' } }, { signal })
    await client.patch(configMaps, ref, 'strategic', { data: { c: '3' } }, { signal })
    const last = await client.patch(configMaps, ref, 'json', [{ op: 'add', path: '/data/d', value: '4' }], { signal })
    expect(last['data']).to.deep.equal({ a: '2', b: '2', c: '3', d: '4' })
  })

  it('keeps an informer up to date while its server is killed and restarted', async () => {
    await using informer = createInformer({
      client,
      gvr: configMaps,
      namespace,
      log: silentLogger,
      signal,
      backoff: { firstMs: 20, maxMs: 500 },
    })
    const gone: string[] = []
    informer.onChange(({ key, after }) => after === undefined && void gone.push(key))
    await informer.synced(signal)
    const text = 'lines\u2028in\u2029text'
    await client.create(configMaps, configMap('before', { text }), { signal })
    await waitFor(() => informer.store.get(`${namespace}/before`)?.['data'], { what: 'an event', deadlineMs: 10_000 })
    expect(informer.store.get(`${namespace}/before`)?.['data']).to.deep.equal({ text })
    const server = cluster.processes.get('kube-apiserver')!
    await server.kill()
    await server.start()
    const create = (): Promise<KubeObject> => client.create(configMaps, configMap('after'), { signal })
    await waitFor(create, { what: 'the server to be back', deadlineMs: 60_000 })
    await client.delete(configMaps, { namespace, name: 'before' }, { signal })
    await waitFor(() => gone.includes(`${namespace}/before`), { what: 'the deletion', deadlineMs: 30_000 })
    const truth = await client.list(configMaps, { namespace, signal })
    expect(informer.store.keys().sort()).to.deep.equal(
      truth.items.map(({ metadata }) => `${namespace}/${metadata.name ?? ''}`).sort(),
    )
  })

  it('installs our CustomResourceDefinitions, and again without effect, and the host refuses reserved names', async () => {
    const crds = [...kcpCrds(), ...storageCrds()]
    await ensureCrds(client, { crds, signal })
    await ensureCrds(client, { crds, signal })
    for (const name of ['root', 'a.b']) {
      const object = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name } }
      const refused = await client.create(logicalClusters, object, { signal }).catch((error: unknown) => error)
      expect(refused, name).to.include({ reason: 'Invalid' })
    }
  })

  it('waits until our kinds are served, which a busy host does a moment after the write', async () => {
    let asked = 0
    const notYet = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404, message: 'no' }
    const busy: Transport = {
      request: (request) =>
        request.path.includes('limit=1') && ++asked <= 2
          ? Promise.resolve({ status: 404, headers: {}, body: Readable.from([Buffer.from(JSON.stringify(notYet))]) })
          : transport.request(request),
      upgrade: (request) => transport.upgrade(request),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }
    const crds = kcpCrds()
    await ensureCrds(createClient(busy), { crds, signal })
    expect(asked).to.equal(crds.length + 2)
  })

  it('elects one leader at a time, and another one when that stops', async () => {
    const leading: string[] = []
    let most = 0
    const campaign = (identity: string) => {
      const stop = new AbortController()
      const ended = runAsLeader({
        client,
        namespace,
        name: 'election',
        identity,
        log: silentLogger,
        signal: stop.signal,
        leaseMs: 3000,
        renewDeadlineMs: 2000,
        retryMs: 100,
        lead: async (life) => {
          leading.push(identity)
          most = Math.max(most, leading.length)
          await new Promise((resolve) => life.addEventListener('abort', resolve, { once: true }))
          leading.splice(leading.indexOf(identity), 1)
        },
      })
      return { identity, stop: () => (stop.abort(new Error('stop')), ended) }
    }
    const candidates = [campaign('a'), campaign('b')]
    const first = await waitFor(() => leading[0], { what: 'a leader', deadlineMs: 10_000 })
    const held = await client.get<KubeObject & { spec: { holderIdentity: string } }>(
      leases,
      { namespace, name: 'election' },
      { signal },
    )
    expect(held.spec.holderIdentity).to.equal(first)
    await candidates.find(({ identity }) => identity === first)!.stop()
    const second = await waitFor(() => leading[0], { what: 'the other leader', deadlineMs: 2500 })
    expect(second).not.to.equal(first)
    expect(most).to.equal(1)
    await candidates.find(({ identity }) => identity === second)!.stop()
  })

  it('gives up the Lease although the answer to the last renewal never came', async () => {
    const renewed = Promise.withResolvers<undefined>()
    let isLeading = false
    const responsesLost: Transport = {
      request: async (request) => {
        const response = await transport.request(request)
        if (!isLeading || request.method !== 'PUT') return response
        isLeading = false
        renewed.resolve(undefined)
        return await abortable(new Promise(() => undefined), request.signal)
      },
      upgrade: (request) => transport.upgrade(request),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }
    const stop = new AbortController()
    const ended = runAsLeader({
      client: createClient(responsesLost),
      namespace,
      name: 'unanswered',
      identity: 'a',
      log: silentLogger,
      signal: stop.signal,
      retryMs: 100,
      lead: async (life) => {
        isLeading = true
        await new Promise((resolve) => life.addEventListener('abort', resolve, { once: true }))
      },
    })
    await abortable(renewed.promise, AbortSignal.timeout(30_000))
    stop.abort(new Error('stop'))
    await ended
    const left = await client.get(leases, { namespace, name: 'unanswered' }, { signal })
    expect(left['spec']).to.include({ holderIdentity: '', leaseTransitions: 0 })
  })

  it('elects a leader even if the first request went over a dead connection', async () => {
    let asked = 0
    const halfOpen: Transport = {
      request: (request) =>
        ++asked === 1 ? abortable(new Promise(() => undefined), request.signal) : transport.request(request),
      upgrade: (request) => transport.upgrade(request),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }
    const stop = new AbortController()
    const leads = Promise.withResolvers<undefined>()
    const ended = runAsLeader({
      client: createClient(halfOpen),
      namespace,
      name: 'half-open',
      identity: 'a',
      log: silentLogger,
      signal: stop.signal,
      renewDeadlineMs: 1000,
      retryMs: 100,
      lead: async (life) => {
        leads.resolve(undefined)
        await new Promise((resolve) => life.addEventListener('abort', resolve, { once: true }))
      },
    })
    await abortable(leads.promise, AbortSignal.timeout(30_000))
    stop.abort(new Error('stop'))
    await ended
  })
})
