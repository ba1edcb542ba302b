import { expect } from 'chai'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { clusterIdOf, type ClusterName, type KubeObject } from '#apimachinery/meta/index.ts'
import { createClient, httpTransport, type KubeClient, type Transport } from '#client/index.ts'
import { createLogger } from '#telemetry/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { createDirectory, rootCluster, type FollowedDirectory } from './informed-directory.ts'

describe('the directory of logical clusters', () => {
  let api: Api
  let client: KubeClient
  let transport: Transport
  let life: AbortController
  let lines: string[]
  let followed: FollowedDirectory | undefined
  const log = createLogger({ destination: { write: (line) => lines.push(line) }, format: 'json' })
  beforeEach(async () => {
    api = await Api.start()
    transport = httpTransport({ server: api.url })
    client = createClient(transport)
    life = new AbortController()
    lines = []
  })
  afterEach(async () => {
    life.abort(new Error('the test is over'))
    await followed?.[Symbol.asyncDispose]()
    await transport[Symbol.asyncDispose]()
    await api.stop()
  })
  const follow = async () => {
    const directory = createDirectory()
    followed = directory.follow({ client, log, signal: life.signal })
    await followed.synced(life.signal)
    return directory
  }

  it('finds a logical cluster by name and by id, with its owners', async () => {
    api.objects = [
      object('acme', 'u1', { owners: [{ kind: 'User', name: 'alice', apiGroup: 'rbac.authorization.k8s.io' }] }),
      object('bobs', 'u2'),
    ]
    const directory = await follow()
    expect(directory.byName('acme' as ClusterName)).to.deep.equal({
      name: 'acme',
      id: clusterIdOf('u1'),
      uid: 'u1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      owners: [{ kind: 'User', name: 'alice' }],
      deleting: false,
    })
    expect(directory.byId(clusterIdOf('u2'))?.name).to.equal('bobs')
    expect([...directory.all()].map(({ name }) => name)).to.deep.equal(['acme', 'bobs'])
    expect(directory.byName('other' as ClusterName)).to.equal(undefined)
  })

  it('notifies listeners of additions, changes and deletions, not of updates without effect', async () => {
    const directory = await follow()
    const seen: string[] = []
    const heard = listen(directory, ({ before, after }) =>
      seen.push(`${before?.uid ?? '-'}>${after?.uid ?? '-'}${after?.deleting ? ' deleting' : ''}`),
    )
    api.tell('ADDED', object('acme', 'u1'))
    api.tell('MODIFIED', { ...object('acme', 'u1', {}, { resourceVersion: '7' }), status: { id: 'x' } })
    api.tell('MODIFIED', object('acme', 'u1', {}, { resourceVersion: '8', deletionTimestamp: '2026-01-02T00:00:00Z' }))
    api.tell('DELETED', object('acme', 'u1', {}, { resourceVersion: '9' }))
    api.tell('ADDED', object('acme', 'u2', {}, { resourceVersion: '10' }))
    await heard.until(() => seen.length >= 4)
    expect(seen).to.deep.equal(['->u1', 'u1>u1 deleting', 'u1>-', '->u2'])
    expect(directory.byId(clusterIdOf('u1'))).to.equal(undefined)
    expect(directory.byName('acme' as ClusterName)?.id).to.equal(clusterIdOf('u2'))
  })

  it('serves the older of two objects with the same id, in any order of arrival, and logs the other', async () => {
    const young = object('young', 'same', {}, { creationTimestamp: '2026-02-01T00:00:00Z' })
    const old = object('old', 'same', {}, { creationTimestamp: '2026-01-01T00:00:00Z', resourceVersion: '6' })
    // Two objects cannot have the same uid in reality; here it is the simplest way to get the same id.
    const namesake = { ...old, metadata: { ...old.metadata, uid: 'same' } }
    api.objects = [young, namesake]
    const directory = await follow()
    expect([...directory.all()].map(({ name }) => name)).to.deep.equal(['old'])
    expect(lines.join('')).to.contain('an older one has the same id').and.to.contain('"young"')
  })

  it('knows children, and gives them the labels of their ancestors, also after a change above', async () => {
    api.objects = [
      object('deep', 'u3', { parentRef: { name: 'dev' } }, { labels: { tier: 'own', 'kcp.dev/child-name': 'deep' } }),
      object('dev', 'u2', { parentRef: { name: 'acme' } }, { labels: { 'kcp.dev/child-name': 'dev' } }),
      object('acme', 'u1', {}, { labels: { tier: 'gold', region: 'eu' } }),
      object('flat', 'u4'),
    ]
    const directory = await follow()
    const labelsOf = (name: string) => directory.byName(name as ClusterName)?.labels
    expect(labelsOf('deep')).to.deep.equal({ tier: 'own', region: 'eu', 'kcp.dev/child-name': 'deep' })
    expect(labelsOf('dev')).to.deep.equal({ tier: 'gold', region: 'eu', 'kcp.dev/child-name': 'dev' })
    expect(labelsOf('flat')).to.equal(undefined)
    expect([...directory.childrenOf('acme' as ClusterName)].map(({ name }) => name)).to.deep.equal(['dev'])
    const heard = listen(directory, () => undefined)
    api.tell('MODIFIED', object('acme', 'u1', {}, { resourceVersion: '7', labels: { tier: 'silver' } }))
    await heard.until(() => labelsOf('deep')?.['region'] === undefined)
    expect(labelsOf('dev')).to.deep.equal({ tier: 'silver', 'kcp.dev/child-name': 'dev' })
    api.tell('MODIFIED', object('dev', 'u2', {}, { resourceVersion: '8' }))
    await heard.until(() => labelsOf('dev') === undefined)
    expect(labelsOf('deep')).to.deep.equal({ tier: 'own', 'kcp.dev/child-name': 'deep' })
    expect([...directory.childrenOf('acme' as ClusterName)]).to.deep.equal([])
  })

  it('has root without an API, and lets no object take its name', async () => {
    const root = rootCluster({ instanceId: 'data', creationTimestamp: '2026-01-01T00:00:00Z' })
    const directory = createDirectory({ root })
    expect(directory.byName('root' as ClusterName)).to.equal(root)
    api.objects = [object('root', 'u9'), object('a.b', 'u8'), object('acme', 'u1')]
    followed = directory.follow({ client, log, signal: life.signal })
    await followed.synced(life.signal)
    expect(directory.byName('root' as ClusterName)).to.equal(root)
    expect([...directory.all()].map(({ name }) => name)).to.deep.equal(['root', 'acme'])
  })
})

/** Listens to changes and waits for a condition, without a clock. */
function listen(
  directory: { onChange: ReturnType<typeof createDirectory>['onChange'] },
  hear: (change: { before?: LogicalCluster; after?: LogicalCluster }) => void,
) {
  let wake: () => void = () => undefined
  directory.onChange((change) => {
    hear(change)
    wake()
  })
  return {
    until: async (condition: () => boolean) => {
      while (!condition()) await new Promise<void>((resolve) => (wake = resolve))
    },
  }
}

function object(name: string, uid: string, spec: object = {}, metadata: object = {}): KubeObject {
  return {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'LogicalCluster',
    metadata: { name, uid, resourceVersion: '5', creationTimestamp: '2026-01-01T00:00:00Z', ...metadata },
    spec,
  }
}

/** A host's API on a real socket that serves one list and one watch. */
class Api {
  objects: KubeObject[] = []
  readonly #server: Server
  readonly #watching = Promise.withResolvers<ServerResponse>()
  private constructor(server: Server) {
    this.#server = server
  }
  static async start(): Promise<Api> {
    const server = createServer()
    const api = new Api(server)
    server.on('request', (request, response) => {
      response.setHeader('content-type', 'application/json')
      if (request.url?.includes('watch=') === true) {
        response.writeHead(200)
        response.flushHeaders()
        api.#watching.resolve(response)
      } else {
        response.end(
          JSON.stringify({
            kind: 'LogicalClusterList',
            apiVersion: 'kcp.dev/v1alpha1',
            metadata: { resourceVersion: '5' },
            items: api.objects,
          }),
        )
      }
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return api
  }
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }
  tell(type: string, changed: KubeObject): void {
    void this.#watching.promise.then((response) => response.write(`${JSON.stringify({ type, object: changed })}\n`))
  }
  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
