// Logical clusters outside memory: unfinished work in them continues, and finished ones are not loaded.
import { expect } from 'chai'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  rootClusterName,
  type ClusterId,
  type ClusterName,
  type GroupVersionResource,
  type KubeObject,
} from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import { startControllers } from '#controllers/index.ts'
import { kcpCrds } from '#crds/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { createMetrics, silentLogger } from '#telemetry/index.ts'
import { createVirtualApi, openPki, rootCluster, type VirtualApi } from '#virtualapi/index.ts'
import { waitFor } from '#test/support/index.ts'

const core = (resource: string): GroupVersionResource => ({ group: '', version: 'v1', resource })
const configMaps = core('configmaps')
const crds = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' }
const logicalClusters = { group: 'kcp.dev', version: 'v1alpha1', resource: 'logicalclusters' }

interface Server extends AsyncDisposable {
  readonly api: VirtualApi
  readonly signal: AbortSignal
  client(name: string): KubeClient
  idOf(name: string): ClusterId
  startLoops(): Promise<void>
}

describe('a logical cluster that is not in memory', function () {
  this.timeout(60_000)
  let dir: string
  let server: Server

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'kcp-unloading-'))
    server = await serve()
  })
  afterEach(async () => {
    await server[Symbol.asyncDispose]()
    await rm(dir, { recursive: true, force: true })
  })

  async function serve(): Promise<Server> {
    const stack = new AsyncDisposableStack()
    const life = new AbortController()
    const { signal } = life
    const store = stack.use(await openSqliteStore({ file: join(dir, 'store.db') }))
    const pki = await openPki(dir)
    const born = rootCluster({ instanceId: store.instanceId, creationTimestamp: '2026-01-01T00:00:00Z' })
    const api = stack.use(
      await createVirtualApi({ store, pki, root: born, log: silentLogger, metrics: createMetrics(), signal }),
    )
    const root = api.client(rootClusterName)
    for (const crd of kcpCrds()) {
      const known = await root.tryGet(crds, { name: crd.metadata.name ?? '' }, { signal })
      if (known === undefined) await root.create(crds, crd, { signal })
    }
    await api.follow(root)
    const cluster = (name: string): KubeClient => api.client(name as ClusterName)
    return {
      api,
      signal,
      client: cluster,
      idOf: (name) => api.directory.byName(name as ClusterName)!.id,
      async startLoops() {
        const loops = await startControllers({
          cluster,
          rootCa: pki.servingCa,
          signClientRequest: () => Promise.reject(new Error('nothing is signed here')),
          graph: api.graph,
          log: silentLogger,
          signal,
        })
        stack.use(loops)
      },
      async [Symbol.asyncDispose]() {
        life.abort(new Error('it is stopped'))
        await stack.disposeAsync()
      },
    }
  }

  async function restart(): Promise<void> {
    await server[Symbol.asyncDispose]()
    server = await serve()
  }

  async function make(name: string): Promise<KubeClient> {
    const { api, signal } = server
    const object: KubeObject = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name } }
    await api.client(rootClusterName).create(logicalClusters, object, { signal })
    await until(() => api.directory.byName(name as ClusterName) !== undefined, `logical cluster ${name}`)
    return server.client(name)
  }

  async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
    await waitFor(condition, { what, deadlineMs: 20_000, intervalMs: 20 })
  }

  const configMap = (name: string, namespace = 'default', more: object = {}): KubeObject => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace, ...more },
  })

  /** Names of stored objects; does not load the cluster. */
  async function stored(name: string, resource: string): Promise<string[]> {
    const { api, signal } = server
    const keys = await api.watchCache.find({ cluster: server.idOf(name), resource }, { signal })
    return keys.map((key) => key.name)
  }

  it('has its namespace deleted and its orphans collected after a restart, and others stay out of memory', async () => {
    const { signal } = server
    const [quiet, busy] = [await make('quiet'), await make('busy')]
    for (const client of [quiet, busy]) {
      const parent = await client.create(configMaps, configMap('parent'), { signal })
      const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'parent', uid: parent.metadata.uid ?? '' }
      await client.create(configMaps, configMap('child', 'default', { ownerReferences: [owner] }), { signal })
    }
    const plain = await make('plain')
    for (let n = 0; n < 10; n++) await plain.create(configMaps, configMap(`n${n}`), { signal })
    await busy.create(
      core('namespaces'),
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
      { signal },
    )
    await busy.create(configMaps, configMap('ware', 'shop'), { signal })
    // No garbage collector runs during these deletions.
    await busy.delete(configMaps, { namespace: 'default', name: 'parent' }, { signal })
    await busy.delete(core('namespaces'), { name: 'shop' }, { signal })
    await restart()
    expect(await stored('busy', 'namespaces')).to.deep.equal(['shop'])
    expect(await stored('busy', 'configmaps')).to.deep.equal(['child', 'ware'])
    await server.startLoops()
    await until(async () => (await stored('busy', 'namespaces')).length === 0, 'the end of the namespace')
    await until(async () => (await stored('busy', 'configmaps')).length === 0, 'the end of the orphan')
    expect(await stored('quiet', 'configmaps')).to.deep.equal(['child', 'parent'])
    expect(await stored('plain', 'configmaps')).to.have.length(10)
    expect(server.api.watchCache.loaded(server.idOf('plain')), 'what is finished').to.equal(undefined)
  })

  it('gets the required objects of its namespaces when it is loaded', async () => {
    const { signal } = server
    const acme = await make('acme')
    await acme.create(
      core('namespaces'),
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
      { signal },
    )
    await acme.delete(core('serviceaccounts'), { namespace: 'default', name: 'default' }, { signal })
    await restart()
    await server.startLoops()
    expect(await stored('acme', 'serviceaccounts')).to.deep.equal([])
    const client = server.client('acme')
    await client.get(core('namespaces'), { name: 'shop' }, { signal: server.signal })
    await until(async () => (await stored('acme', 'serviceaccounts')).length === 2, 'both ServiceAccounts')
    await until(async () => (await stored('acme', 'configmaps')).includes('kube-root-ca.crt'), 'the ConfigMap')
  })

  it('resumes a watch after a restart and after eviction', async () => {
    const { signal } = server
    const acme = await make('acme')
    const { metadata } = await acme.list(configMaps, { namespace: 'default', signal })
    const resourceVersion = metadata.resourceVersion ?? ''
    await acme.create(configMaps, configMap('a'), { signal })
    await acme.create(configMaps, configMap('b'), { signal })
    await acme.delete(configMaps, { namespace: 'default', name: 'a' }, { signal })
    await restart()
    const told = async (): Promise<string[]> => {
      const events: string[] = []
      const watch = server.client('acme').watch(configMaps, {
        namespace: 'default',
        resourceVersion,
        timeoutSeconds: 1,
        signal: server.signal,
      })
      for await (const { type, object } of watch)
        if (type !== 'BOOKMARK') events.push(`${type} ${object.metadata.name ?? ''}`)
      return events
    }
    const wanted = ['ADDED b', 'DELETED a']
    expect(await told()).to.deep.equal(wanted)
    server.api.watchCache.unload(server.idOf('acme'))
    expect(await told()).to.deep.equal(wanted)
  })
})
