import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ClusterId, ClusterName, KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { systemClock } from '#async/index.ts'
import type { MemberCluster, Placement } from '#crds/index.ts'
import { createWatchCache, type WatchCache } from '#store/watch-cache/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import type { Store } from '#store/index.ts'
import { ClusterCatalog } from '#virtualapi/catalog/cluster-catalog.ts'
import { Exchange, type PushResponse } from '#virtualapi/request/exchange.ts'
import { parseRequest } from '#virtualapi/request/parse-request.ts'
import { readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import { dispatch } from './dispatch.ts'
import type { EndpointDependencies } from './call/dependencies.ts'
import { Deliveries } from '#virtualapi/flowcontrol/deliveries.ts'
import { EventLoopShare } from '#virtualapi/flowcontrol/event-loop-share.ts'
import { WatchClock } from './call/watch-clock.ts'

/** Resolves when deliveries, which take turns of the event loop, have come so far. */
async function untilDelivered(isDone: () => boolean): Promise<void> {
  while (!isDone()) await new Promise((resolve) => setImmediate(resolve))
}

const { signal } = new AbortController()
const ready = (status: 'True' | 'False', message = '') => ({
  ...{ type: 'Ready', status, reason: 'Probed', message },
  lastTransitionTime: '2026-01-01T00:00:00Z',
})
const member = (name: string, region: string, rest: Partial<MemberCluster> = {}): MemberCluster => ({
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'MemberCluster',
  metadata: { name, uid: `uid-of-${name}`, labels: { region }, creationTimestamp: '2026-01-01T00:00:00Z' },
  status: { version: 'v1.34.1', conditions: [ready('True')] },
  ...rest,
})
const onlyBanks = { logicalClusterSelector: { matchLabels: { tier: 'bank' } } }
const all: MemberCluster[] = [
  member('paris', 'eu', { spec: { state: 'Cordoned' } }),
  member('berlin', 'eu', {
    spec: { connection: { kubeconfigSecretRef: { namespace: 'kcp-system', name: 'secret-of-berlin' } } },
    status: {
      id: 'uid-of-kube-system',
      classes: [{ kind: 'StorageClass', items: [{ name: 'fast', provider: 'a.example' }] }],
      conditions: [ready('False', 'https://10.1.2.3:6443 does not answer')],
    },
  }),
  member('boston', 'us'),
  member('vault', 'eu', { spec: onlyBanks }),
]
const europe: Placement = {
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'Placement',
  metadata: { name: 'eu-only' },
  spec: {
    logicalClusterSelector: { matchLabels: { home: 'eu' } },
    require: { labelSelector: { matchLabels: { region: 'eu' } } },
  },
}

describe('the members that a logical cluster shows', () => {
  let directory: string
  let store: Store
  let watchCache: WatchCache
  let shown: readonly MemberCluster[] = []
  const followers = new Set<() => void>()
  const watchClock = new WatchClock()

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kcp-member-views-'))
    store = await openSqliteStore({ file: join(directory, 'objects.db') })
    watchCache = await createWatchCache(store, { stamp: stampRevision, readFacts, signal })
  })
  beforeEach(() => {
    shown = all
  })
  after(async () => {
    watchClock[Symbol.dispose]()
    await watchCache[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
    await rm(directory, { recursive: true })
  })

  const ask = async (
    method: string,
    path: string,
    { labels = { home: 'eu' }, accept = 'application/json' }: { labels?: Record<string, string>; accept?: string } = {},
  ): Promise<{ code: number; text: string; push?: PushResponse }> => {
    const dependencies = {
      watchCache,
      catalog: new ClusterCatalog({ hasMembers: () => shown.length > 0 }),
      clock: systemClock,
      fleet: {
        all: () => shown,
        adminPlacements: () => [europe],
        onChange: (changed: () => void) => {
          followers.add(changed)
          return () => followers.delete(changed)
        },
      },
      directory: { byId: () => exchange.cluster, onChange: () => () => undefined },
      deliveries: new Deliveries(new EventLoopShare()),
      watchClock,
      aggregation: { servers: { hasAny: () => false } },
    } as unknown as EndpointDependencies
    const url = `/clusters/acme${path}`
    const exchange = new Exchange({
      ...{ method, url, rawHeaders: ['Accept', accept], peerCertificate: undefined, signal },
      body: () => Promise.resolve(Buffer.from('')),
    })
    exchange.info = parseRequest(method, url, { hasBearerToken: false })
    exchange.cluster = {
      ...{
        name: 'acme' as ClusterName,
        id: 'memberviews1' as ClusterId,
        uid: 'u',
        owners: [],
        deleting: false,
        labels,
      },
      creationTimestamp: '2026-01-01T00:00:00Z',
    }
    exchange.user = { name: 'alice', groups: [], extra: {}, realm: { kind: 'host' } }
    try {
      const response = await dispatch(exchange, dependencies)
      if (response.kind === 'bytes') return { code: response.status, text: Buffer.from(response.body).toString() }
      if (response.kind === 'push') return { code: response.status, text: '', push: response }
      if (response.kind !== 'chunks') throw new Error(`unexpected answer ${response.kind}`)
      return { code: response.status, text: Buffer.concat([...response.chunks]).toString() }
    } catch (error) {
      if (!isStatusError(error)) throw error
      return { code: error.code, text: error.message }
    }
  }
  const path = '/apis/kcp.dev/v1alpha1/members'
  const names = async (query = '', labels?: Record<string, string>): Promise<string[]> => {
    const { text } = await ask('GET', path + query, labels && { labels })
    return (JSON.parse(text) as { items: KubeObject[] }).items.map(({ metadata }) => metadata.name ?? '')
  }

  it('are those that it may use', async () => {
    expect(await names()).to.deep.equal(['berlin', 'paris'])
    expect(await names('', { tier: 'bank' })).to.deep.equal(['berlin', 'boston', 'paris', 'vault'])
    expect(await names('?labelSelector=region%3Dus', { tier: 'bank' })).to.deep.equal(['boston'])
    expect(await names('?fieldSelector=metadata.name%3Dparis')).to.deep.equal(['paris'])
  })

  it('never tell of others, by list, name, selector or error', async () => {
    const [hidden, absent] = [await ask('GET', `${path}/vault`), await ask('GET', `${path}/nowhere`)]
    expect(hidden.code).to.equal(404)
    expect(hidden.text.replace('vault', 'nowhere')).to.equal(absent.text)
    const { text } = await ask('GET', path)
    expect(text).not.to.match(/vault|boston/)
    expect(await names('?fieldSelector=metadata.name%3Dvault')).to.deep.equal([])
    expect(await names('?labelSelector=region%3Dus')).to.deep.equal([])
  })

  it('tell what a tenant may know of them, and why they take nothing', async () => {
    const { text } = await ask('GET', `${path}/berlin`)
    expect(text).not.to.match(/10\.1\.2\.3|secret-of-berlin|uid-of/)
    const { metadata, status } = JSON.parse(text) as KubeObject
    expect(metadata.labels).to.deep.equal({ region: 'eu' })
    expect(status).to.deep.include({
      serviceNetwork: 'None',
      classes: [{ kind: 'StorageClass', names: ['fast'] }],
    })
    const accept = 'application/json;as=Table;g=meta.k8s.io;v=v1'
    const table = JSON.parse((await ask('GET', path, { accept })).text) as { rows: { cells: string[] }[] }
    expect(table.rows.map(({ cells }) => cells.slice(0, 4))).to.deep.equal([
      ['berlin', 'False', 'False', 'ClusterNotReady'],
      ['paris', 'True', 'False', 'ClusterCordoned'],
    ])
  })

  it('are read only', async () => {
    for (const [method, at] of [
      ['POST', path],
      ['PUT', `${path}/berlin`],
      ['DELETE', `${path}/berlin`],
      ['DELETE', path],
    ] as const)
      expect((await ask(method, at)).code, method).to.equal(405)
  })

  it('are watched: a change is told once, and who knows another state lists again', async () => {
    const { text } = await ask('GET', path)
    const { resourceVersion = '' } = (JSON.parse(text) as { metadata: KubeObject['metadata'] }).metadata
    const { push } = await ask('GET', `${path}?watch=true&resourceVersion=${resourceVersion}`)
    if (push === undefined) throw new Error('the watch did not begin')
    const events: { type: string; object: KubeObject }[] = []
    const write = (chunk: Uint8Array): true => {
      for (const line of Buffer.from(chunk).toString().trim().split('\n'))
        events.push(JSON.parse(line) as (typeof events)[number])
      return true
    }
    const open = push.begin({ write, end: () => undefined, fail: (error) => expect.fail(String(error)) })
    shown = all
      .filter(({ metadata }) => metadata.name !== 'paris')
      .concat(member('rome', 'eu'), member('chicago', 'us'))
    for (const changed of followers) changed()
    await untilDelivered(() => events.length >= 2)
    for (const changed of followers) changed()
    const told = events.map(({ type, object }) => [type, object.metadata.name])
    expect(told).to.deep.equal([
      ['DELETED', 'paris'],
      ['ADDED', 'rome'],
    ])
    open.close()
    expect(followers.size, 'the watch has ended').to.equal(0)
    const resume = async (event: number): Promise<number> => {
      const from = events[event]?.object.metadata.resourceVersion ?? ''
      const { code, push: again } = await ask('GET', `${path}?watch=true&resourceVersion=${from}`)
      again?.drop()
      return code
    }
    expect([await resume(0), await resume(1)]).to.deep.equal([410, 200])
  })

  it('are no resource where there are no members', async () => {
    shown = []
    expect((await ask('GET', path)).code).to.equal(404)
  })
})
