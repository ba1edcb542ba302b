// Controllers in Go on multicluster-runtime, with our provider (clients/go): the twin of the example in TypeScript, over
// all logical clusters, killed and started again.
import { expect } from 'chai'
import { ensurePrograms, rounds, startProcess, waitFor, type ManagedProcess } from '#test/support/index.ts'
import { shardRange } from '#apimachinery/sharding/index.ts'
import { startInstance, type KcpInstance } from './kcp-instance.ts'
import { addWidgets, putWidget, sizesOf } from './widgets.ts'

const count = rounds({ short: 50, long: 500 })
const within = { deadlineMs: 120_000, intervalMs: 200 }
const logicalClusters = '/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters'

describe('a controller in Go over all logical clusters', function () {
  this.timeout(30 * 60_000) // the first build compiles everything
  const stack = new AsyncDisposableStack()
  const names = Array.from({ length: count }, (_, i) => `lc-${i}`)
  let kcp: KcpInstance
  let program: string

  const create = async (name: string): Promise<void> => {
    const body = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name } }
    expect((await kcp.admin.http.request('POST', logicalClusters, { body })).status).to.equal(201)
  }
  const served = async (name: string): Promise<boolean> =>
    (await kcp.admin.http.request('GET', `/clusters/${name}/api/v1/namespaces/default`)).status === 200
  const start = (name: string, env: Record<string, string> = {}): Promise<ManagedProcess> =>
    startProcess({ name, command: program, args: [], env: { KUBECONFIG: kcp.admin.kubeconfig, ...env } })
  const found = async (): Promise<string> =>
    Array.from(await sizesOf(kcp.admin.http), ([key, size]) => `${key} ${size}`)
      .sort()
      .join('\n')
  const watches = async (): Promise<number> => {
    const { text } = await kcp.admin.http.request('GET', '/metrics')
    return Number(/^kcp_watches(?:\{[^}]*\})? (\d+)/m.exec(text)?.[1] ?? Number.NaN)
  }

  before(async () => {
    program = (await ensurePrograms(['config-map-per-widget']))['config-map-per-widget']
    kcp = stack.use(await startInstance())
    for (const name of names) await create(name)
    await waitFor(async () => (await Promise.all(names.map(served))).every(Boolean), { what: 'them', ...within })
    await addWidgets(kcp.admin.http, names)
  })
  after(() => stack.disposeAsync())

  it(`loses nothing in ${count} of them when it is killed, and follows those that come and go`, async () => {
    await using controller = await start('go-controller')
    for (const name of names) await putWidget(kcp.admin.http, name, 'first', 1)
    await waitFor(async () => (await sizesOf(kcp.admin.http)).size > count / 2, { what: 'some ConfigMaps', ...within })
    await controller.kill()
    for (const name of names) await putWidget(kcp.admin.http, name, 'first', 2)
    for (const name of names) await putWidget(kcp.admin.http, name, 'second', 3)
    const expected = (of: readonly string[]): string =>
      of
        .flatMap((name) => [`${name}/first 2`, `${name}/second 3`])
        .sort()
        .join('\n')
    await controller.start()
    await waitFor(async () => (await found()) === expected(names), { what: 'all ConfigMaps', ...within })
    // A ConfigMap that somebody deletes comes back.
    await kcp.admin.http.request('DELETE', '/clusters/lc-7/api/v1/namespaces/default/configmaps/second')
    await waitFor(async () => (await found()) === expected(names), { what: 'the ConfigMap again', ...within })
    // One comes, one goes, and comes back as another one of the same name.
    await create('later')
    await waitFor(() => served('later'), { what: 'the later one', ...within })
    expect((await kcp.admin.http.request('DELETE', `${logicalClusters}/lc-3`)).status).to.equal(200)
    const isGone = async (): Promise<boolean> =>
      (await kcp.admin.http.request('GET', `${logicalClusters}/lc-3`)).status === 404
    await waitFor(isGone, { what: 'the deletion', ...within })
    await create('lc-3')
    await waitFor(() => served('lc-3'), { what: 'the successor', ...within })
    await addWidgets(kcp.admin.http, ['later', 'lc-3'])
    for (const name of ['later', 'lc-3']) {
      await putWidget(kcp.admin.http, name, 'first', 2)
      await putWidget(kcp.admin.http, name, 'second', 3)
    }
    await waitFor(async () => (await found()) === expected([...names, 'later']), { what: 'all of them', ...within })
    expect(controller.running).to.equal(true)
  })

  it('works on the logical clusters of its shard alone, with two watches of objects for all of them', async () => {
    const before = await watches()
    const shard = shardRange('logicalCluster', { index: 0, of: 2 })
    await using _controller = await start('go-shard', { SHARD: shard })
    for (const name of names) await putWidget(kcp.admin.http, name, 'first', 5)
    const query = `?shardSelector=${encodeURIComponent(shard)}`
    const { text } = await kcp.admin.http.request('GET', `/clusters/*/apis/example.com/v1/widgets${query}`)
    const mine = new Set(
      (JSON.parse(text) as { items: { metadata: { annotations: Record<string, string> } }[] }).items.map(
        ({ metadata }) => metadata.annotations['kcp.dev/logical-cluster'],
      ),
    )
    expect(mine.size).to.be.within(1, count)
    const done = async (): Promise<string[]> =>
      [...(await sizesOf(kcp.admin.http))].filter(([, size]) => size === '5').map(([key]) => key.split('/')[0] ?? '')
    const expected = names.filter((name) => mine.has(name)).sort()
    await waitFor(async () => (await done()).length >= expected.length, { what: 'the work of the shard', ...within })
    expect((await done()).sort()).to.deep.equal(expected)
    // LogicalClusters, Widgets and ConfigMaps.
    if (!Number.isNaN(before)) expect((await watches()) - before).to.equal(3)
  })
})
