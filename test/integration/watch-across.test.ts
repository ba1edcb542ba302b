// The example of the controller library, run as its reader would run it, beside kcp start.
import { expect } from 'chai'
import { join } from 'node:path'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { loadKubeconfig } from '#client/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { watchAcross, type ReconcileRequest } from '#libraries/watch-across/index.ts'
import { repositoryRoot, rounds, startProcess, waitFor, type ManagedProcess } from '#test/support/index.ts'
import { startInstance, type KcpInstance } from './kcp-instance.ts'

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

  const startExample = (): Promise<ManagedProcess> => {
    const args = [join(repositoryRoot, 'examples', 'give-every-team-a-quota.ts'), kcp.admin.kubeconfig]
    return startProcess({ name: 'example', command: process.execPath, args, cwd: repositoryRoot })
  }
})
