// The example of the controller library, run as its reader would run it, beside kcp start.
import { expect } from 'chai'
import { join } from 'node:path'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { loadKubeconfig } from '#client/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { watchAcross, type ReconcileRequest } from '#libraries/watch-across/index.ts'
import { repositoryRoot, rounds, startProcess, waitFor, type ManagedProcess } from '#test/support/index.ts'
import { startInstance, type KcpInstance } from './kcp-instance.ts'
import { addWidgets, putWidget, sizesOf } from './widgets.ts'

/** Logical clusters that the example serves: 1,000 in `make test-long`. */
const count = rounds({ short: 40, long: 1000 })
const within = { deadlineMs: 120_000, intervalMs: 100 }

describe('the controller library', function () {
  this.timeout(count * 500 + 120_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  const names = Array.from({ length: count }, (_, i) => `lc-${i}`)
  let kcp: KcpInstance

  /** A request of the installation's admin, in any logical cluster. */
  const send = async (method: string, path: string, body?: object): Promise<{ status: number; text: string }> =>
    kcp.admin.http.request(method, path, body === undefined ? {} : { body })
  const create = async (cluster: string, name: string, labels: object): Promise<void> => {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }
    expect((await send('POST', `/clusters/${cluster}/api/v1/namespaces`, namespace)).status).to.equal(201)
  }
  const quotas = async (): Promise<string[]> => {
    const { text } = await send('GET', '/clusters/*/api/v1/resourcequotas')
    const { items } = JSON.parse(text) as { items: KubeObject[] }
    return items.map(
      ({ metadata: { annotations, namespace } }) =>
        `${annotations?.['kcp.dev/logical-cluster'] ?? ''}/${namespace ?? ''}`,
    )
  }

  before(async () => {
    kcp = stack.use(await startInstance())
    stack.defer(() => life.abort())
    for (const name of names) {
      const object = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name } }
      const { status } = await send('POST', '/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters', object)
      expect(status).to.equal(201)
    }
    const isReady = async (name: string): Promise<boolean> =>
      (await send('GET', `/clusters/${name}/api/v1/namespaces/default`)).status === 200
    await waitFor(async () => (await Promise.all(names.map(isReady))).every(Boolean), {
      what: 'the logical clusters',
      ...within,
    })
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  it(`serves ${count} logical clusters, with what comes later and what somebody deletes`, async () => {
    for (const name of names) await create(name, 'shop', { team: 'shop' })
    await using _example = await startExample()
    const all = names.map((name) => `${name}/shop`).sort()
    const found = async (): Promise<string[]> => [...new Set(await quotas())].sort()
    await waitFor(async () => (await quotas()).length === count, { what: 'a quota in each', ...within })
    expect((await found()).length).to.equal(all.length)
    // A logical cluster that comes later, and a quota that somebody deletes.
    await create('lc-1', 'later', { team: 'later' })
    await waitFor(async () => (await quotas()).length === count + 1, {
      what: 'the quota of a new namespace',
      ...within,
    })
    expect((await send('DELETE', '/clusters/lc-2/api/v1/namespaces/shop/resourcequotas/team')).status).to.equal(200)
    await waitFor(async () => (await quotas()).length === count + 1, { what: 'the deleted quota again', ...within })
  })

  it('reconciles objects of the named logical clusters only, and tells of their deletion', async () => {
    const seen: string[] = []
    const resource = { group: '', version: 'v1', resource: 'configmaps', labelSelector: 'mine' }
    await using across = watchAcross({
      kubeconfig: await loadKubeconfig({ file: kcp.admin.kubeconfig }, { trusted: true }),
      resources: [resource],
      logicalClusters: ['lc-3', 'lc-4'],
      signal: life.signal,
      log: silentLogger,
      reconcile: async ({ logicalCluster, name, object }: ReconcileRequest) => {
        seen.push(`${logicalCluster} ${name} ${object === undefined ? 'gone' : 'there'}`)
      },
    })
    await across.synced()
    const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', labels: { mine: 'yes' } } }
    const path = (cluster: string): string => `/clusters/${cluster}/api/v1/namespaces/default/configmaps`
    for (const cluster of ['lc-3', 'lc-4', 'lc-5']) await send('POST', path(cluster), configMap)
    await waitFor(() => seen.length === 2, { what: 'two visits', ...within })
    expect([...across.list(resource, 'lc-3')].map(({ metadata }) => metadata.name)).to.deep.equal(['a'])
    expect([...across.list(resource, 'lc-5')]).to.deep.equal([])
    const ref = { logicalCluster: 'lc-4', resource, namespace: 'default', name: 'a' }
    expect(across.get(ref)?.metadata.name).to.equal('a')
    await send('DELETE', `${path('lc-4')}/a`)
    await waitFor(() => seen.includes('lc-4 a gone'), { what: 'the deletion', ...within })
    expect(across.get(ref)).to.equal(undefined)
    expect(seen.toSorted()).to.deep.equal(['lc-3 a there', 'lc-4 a gone', 'lc-4 a there'])
  })

  it('gives each object of several kinds to one of two consumers, one of which is killed and starts again', async () => {
    await addWidgets(kcp.admin.http, names)
    await using survivor = await startWidgets('1/2')
    await using killed = await startWidgets('0/2')
    for (const name of names) await putWidget(kcp.admin.http, name, 'first', 1)
    const sizes = (): Promise<ReadonlyMap<string, string>> => sizesOf(kcp.admin.http)
    await waitFor(async () => (await sizes()).size > count / 2, { what: 'some ConfigMaps', ...within })
    await killed.kill()
    for (const name of names) await putWidget(kcp.admin.http, name, 'first', 2)
    for (const name of names) await putWidget(kcp.admin.http, name, 'second', 3)
    const all = names.flatMap((name) => [`${name}/first 2`, `${name}/second 3`]).sort()
    const found = async (): Promise<string[]> => Array.from(await sizes(), ([key, size]) => `${key} ${size}`).sort()
    // The survivor works on its own logical clusters alone.
    await waitFor(async () => (await found()).filter((one) => one.endsWith('/second 3')).length > 0, {
      what: 'the work of the survivor',
      ...within,
    })
    expect(survivor.running).to.equal(true)
    await killed.start()
    await waitFor(async () => (await found()).length === all.length && (await found()).join() === all.join(), {
      what: 'all ConfigMaps',
      ...within,
    })
    // Clients in Go need the kind of lists and of bookmarks.
    const widgets = '/clusters/*/apis/example.com/v1/widgets'
    expect((await send('GET', `${widgets}?limit=1`)).text).to.match(/^\{"kind":"WidgetList"/)
    const bookmark = 'watch=true&timeoutSeconds=1&allowWatchBookmarks=true&labelSelector=none'
    expect((await send('GET', `${widgets}?${bookmark}`)).text).to.include('"BOOKMARK","object":{"kind":"Widget"')
    // A ConfigMap that somebody deletes comes back.
    const path = '/clusters/lc-7/api/v1/namespaces/default/configmaps/second'
    expect((await send('DELETE', path)).status).to.equal(200)
    await waitFor(async () => (await found()).join() === all.join(), { what: 'the deleted ConfigMap again', ...within })
  })

  it('tells of all objects of a logical cluster that is deleted, and of those of its successor', async () => {
    const visits: string[] = []
    const resource = { group: '', version: 'v1', resource: 'configmaps', fieldSelector: 'metadata.name=kept' }
    await using across = watchAcross({
      kubeconfig: await loadKubeconfig({ file: kcp.admin.kubeconfig }, { trusted: true }),
      resources: [resource],
      logicalClusters: '*',
      signal: life.signal,
      log: silentLogger,
      reconcile: async ({ logicalCluster, name, object }: ReconcileRequest) => {
        visits.push(`${logicalCluster} ${name} ${object === undefined ? 'gone' : (object.metadata.uid ?? '')}`)
      },
    })
    await across.synced()
    const make = async (): Promise<string> => {
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept' } }
      const { text } = await send('POST', '/clusters/lc-9/api/v1/namespaces/default/configmaps', body)
      await send('POST', '/clusters/lc-9/api/v1/namespaces/default/configmaps', {
        ...body,
        metadata: { name: 'other' },
      })
      return (JSON.parse(text) as KubeObject).metadata.uid ?? ''
    }
    const first = await make()
    await waitFor(() => visits.includes(`lc-9 kept ${first}`), { what: 'the first', ...within })
    const lc = '/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters'
    expect((await send('DELETE', `${lc}/lc-9`)).status).to.equal(200)
    await waitFor(() => visits.includes('lc-9 kept gone'), { what: 'the end of the logical cluster', ...within })
    expect([...across.list(resource, 'lc-9')]).to.deep.equal([])
    await waitFor(async () => (await send('GET', `${lc}/lc-9`)).status === 404, { what: 'the deletion', ...within })
    const again = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name: 'lc-9' } }
    expect((await send('POST', lc, again)).status).to.equal(201)
    await waitFor(async () => (await send('GET', '/clusters/lc-9/api/v1/namespaces/default')).status === 200, {
      what: 'the successor',
      ...within,
    })
    const second = await make()
    await waitFor(() => visits.includes(`lc-9 kept ${second}`), { what: 'the second', ...within })
    expect(visits).to.deep.equal([`lc-9 kept ${first}`, 'lc-9 kept gone', `lc-9 kept ${second}`])
  })

  const startWidgets = (shard: string): Promise<ManagedProcess> =>
    startProcess({
      name: `widgets-${shard.replace('/', '-')}`,
      command: process.execPath,
      args: [join(repositoryRoot, 'examples', 'config-map-per-widget.ts'), kcp.admin.kubeconfig],
      env: { SHARD: shard },
      cwd: repositoryRoot,
    })

  const startExample = (): Promise<ManagedProcess> => {
    const args = [join(repositoryRoot, 'examples', 'give-every-team-a-quota.ts'), kcp.admin.kubeconfig]
    return startProcess({ name: 'example', command: process.execPath, args, cwd: repositoryRoot })
  }
})
