// Usage of logical clusters, compared with a recount of everything, and after a crash.
import { expect } from 'chai'
import { gzipSync } from 'node:zlib'
import type { LogicalCluster } from '#crds/index.ts'
import { runKcp, waitFor } from '#test/support/index.ts'
import { signedIn } from './console-browser.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

interface Item {
  readonly hour: string
  readonly name: string
  readonly requests: number
  readonly watchHours: number
  readonly objectHours: number
  readonly byteHours: number
}

const within = { deadlineMs: 150_000, intervalMs: 1000 }

describe('usage of logical clusters', function () {
  this.timeout(400_000)
  let instance: KcpInstance
  let acme: Tenant
  let other: Tenant
  before(async () => {
    instance = await startInstance(['--usage-every', '2'])
    ;[acme, other] = [await instance.tenant('acme'), await instance.tenant('other')]
  })
  after(async () => {
    await instance[Symbol.asyncDispose]()
  })

  const maps = '/api/v1/namespaces/default/configmaps'
  const make = async (tenant: Tenant, name: string): Promise<number> => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { text: 'x'.repeat(1000) } }
    return (await tenant.http.request('POST', `${tenant.base}${maps}`, { body })).status
  }
  const lc = async (name: string): Promise<LogicalCluster> => {
    const path = `/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters/${name}`
    return (await instance.admin.http.request('GET', path)).json() as unknown as LogicalCluster
  }
  const usage = async (...args: string[]): Promise<string> =>
    (await runKcp(['usage', '--root-dir', instance.rootDir, ...args])).stdout
  const itemOf = async (name: string): Promise<Item | undefined> =>
    (JSON.parse(await usage('-o', 'json')) as { items: Item[] }).items.find((item) => item.name === name)

  it('is in the status as a recount finds it, with a condition and an Event before the limit', async () => {
    const before = await lc('acme')
    expect(before.status?.usage, 'nothing is written without limits').to.equal(undefined)
    const path = '/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters/acme'
    const headers = ['content-type', 'application/merge-patch+json']
    await instance.admin.http.request('PATCH', path, { body: { spec: { limits: { objects: 50, crds: 5 } } }, headers })
    await waitFor(async () => (await lc('acme')).status?.usage?.objects !== undefined, {
      what: 'status.usage',
      ...within,
    })
    const begun = (await lc('acme')).status?.usage?.objects ?? 0
    let made = 0
    while (begun + made < 42) expect(await make(acme, `m-${made++}`)).to.equal(201)
    await waitFor(async () => (await lc('acme')).status?.usage?.objects === begun + made, {
      what: 'the new usage',
      ...within,
    })
    expect(begun + made, 'a recount of all that is stored').to.equal(await storedObjects(acme))
    await waitFor(
      async () => {
        const found = (await lc('acme')).status?.conditions?.find(({ type }) => type === 'WithinLimits')
        return found?.reason === 'NearLimit' && found.message.includes('objects (limit 50)')
      },
      { what: 'condition WithinLimits', ...within },
    )
    const events = await instance.admin.http.request('GET', '/clusters/root/api/v1/events')
    expect(events.text).to.contain('"reason":"NearLimit"')
    expect(await make(acme, 'still-fits'), 'told before anything is refused').to.equal(201)
    await instance.admin.http.request('PATCH', path, { body: { spec: { limits: null } }, headers })
    await waitFor(
      async () => {
        const { status } = await lc('acme')
        return !(status?.conditions ?? []).some(({ type }) => type === 'WithinLimits')
      },
      { what: 'the end of the condition with the limits', ...within },
    )
  })

  /** Objects that a logical cluster has stored itself, without those that all show. */
  const storedObjects = async (tenant: Tenant): Promise<number> => {
    const metrics = await instance.admin.http.request('GET', `${tenant.base}/metrics`)
    expect(metrics.status).to.equal(200)
    const limited = await tenant.http.request('POST', `${tenant.base}${maps}`, { body: { metadata: { name: 'm-0' } } })
    expect(limited.status, 'it exists').to.equal(409)
    return countIn(tenant.base, await listable(tenant))
  }
  const countIn = async (base: string, resources: readonly string[]): Promise<number> => {
    let count = 0
    for (const resource of resources) {
      const { text } = await instance.admin.http.request('GET', `${base}${resource}`)
      const { items = [] } = JSON.parse(text) as { items?: { metadata: { resourceVersion?: string } }[] }
      count += items.filter(({ metadata }) => !bootstrap.has(metadata.resourceVersion ?? '')).length
    }
    return count
  }
  /** Objects of the base layer have the revision 1. */
  const bootstrap = new Set(['1', '0', ''])
  const listable = async (tenant: Tenant): Promise<string[]> => {
    const paths: string[] = []
    const read = async (base: string): Promise<void> => {
      const { resources } = (await tenant.http.request('GET', `${tenant.base}${base}`)).json() as unknown as {
        resources: { name: string; verbs: string[] }[]
      }
      for (const { name, verbs } of resources)
        if (verbs.includes('list') && verbs.includes('create') && !name.includes('/')) paths.push(`${base}/${name}`)
    }
    await read('/api/v1')
    const { groups } = (await tenant.http.request('GET', `${tenant.base}/apis`)).json() as unknown as {
      groups: { preferredVersion: { groupVersion: string } }[]
    }
    for (const { preferredVersion } of groups) await read(`/apis/${preferredVersion.groupVersion}`)
    // Events have two names.
    return paths.filter((path) => !path.includes('/apis/events.k8s.io'))
  }

  it('is in rows as the clients count it, and after kill -9 no more is lost than was not saved yet', async () => {
    const rowOf = async (name: string): Promise<number> => (await itemOf(name))?.requests ?? 0
    const watch = await other.http.watch(`${other.base}${maps}?watch=1`)
    const first = 200
    for (let i = 0; i < first; i++) await other.http.request('GET', `${other.base}${maps}/none`)
    // And the watch.
    await waitFor(async () => (await rowOf('other')) >= first + 1, { what: 'rows with all requests', ...within })
    expect(await rowOf('other')).to.equal(first + 1)
    await watch[Symbol.asyncDispose]()
    await instance.process.kill()
    await instance.process.start()
    expect(await rowOf('other'), 'what was saved before the crash').to.equal(first + 1)
    for (let i = 0; i < 50; i++) await other.http.request('GET', `${other.base}${maps}/none`)
    await waitFor(async () => (await rowOf('other')) >= first + 51, { what: 'the sum over the crash', ...within })
    expect(await rowOf('other')).to.equal(first + 51)
    const acmes = await itemOf('acme')
    // Objects and bytes count without a request, too, also after the restart, when nothing was in memory.
    expect(acmes?.objectHours).to.be.greaterThan(0)
    expect(acmes?.byteHours).to.be.greaterThan((acmes?.objectHours ?? 0) * 100)
    expect((await itemOf('other'))?.watchHours).to.be.greaterThan(0)
  })

  it('is in metrics: sums over all, and the 50 largest by name, which no tenant reads', async () => {
    const many = 60
    expect(await make(acme, 'large')).to.equal(201)
    const logicalClusters = '/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters'
    for (let i = 0; i < many; i++) {
      const body = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name: `many-${i}` } }
      expect((await instance.admin.http.request('POST', logicalClusters, { body })).status).to.equal(201)
    }
    for (let i = 0; i < many; i++)
      for (let object = 0; object < 1 + (i % 3); object++) {
        const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `m-${object}` } }
        const make = async (): Promise<boolean> =>
          (await instance.admin.http.request('POST', `/clusters/many-${i}${maps}`, { body })).status === 201
        await waitFor(make, { what: `a ConfigMap in many-${i}`, deadlineMs: 20_000, intervalMs: 50 })
      }
    const seriesOf = async (metric: string): Promise<Map<string, number>> => {
      const { text } = await instance.admin.http.request('GET', '/metrics')
      const lines = text.split('\n').filter((line) => new RegExp(`^${metric}[ {]`).test(line))
      return new Map(
        lines.map((line) => [/logical_cluster="([^"]*)"/.exec(line)?.[1] ?? '', Number(line.split(' ').at(-1))]),
      )
    }
    const sumOf = async (metric: string): Promise<number | undefined> => (await seriesOf(metric)).get('')
    const list = (await instance.admin.http.request('GET', logicalClusters)).json() as unknown as {
      items: { metadata: { name: string } }[]
    }
    // The bases of all logical clusters have the same resources.
    const resources = await listable(other)
    const counts = new Map<string, number>()
    for (const { metadata } of list.items)
      counts.set(metadata.name, await countIn(`/clusters/${metadata.name}`, resources))
    const recount = [...counts.values()].reduce((sum, count) => sum + count, 0)
    await waitFor(async () => (await sumOf('kcp_usage_objects')) === recount, {
      what: `the sum of objects to be ${recount}`,
      ...within,
    })
    expect(await sumOf('kcp_usage_uncounted_logical_clusters')).to.equal(0)
    const largest = [...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).slice(0, 50)
    expect([...(await seriesOf('kcp_usage_objects_top'))]).to.deep.equal(largest)
    const bytes = await seriesOf('kcp_usage_object_bytes_top')
    expect(bytes.size).to.equal(50)
    expect(bytes.get('acme')).to.be.greaterThan(1000)
    const requests = (await sumOf('kcp_usage_requests_total')) ?? 0
    await using watch = await other.http.watch(`${other.base}${maps}?watch=1`)
    expect(watch.status).to.equal(200)
    await waitFor(async () => (await seriesOf('kcp_usage_watches_top')).get('other') === 1, {
      what: 'the watch in the metrics',
      ...within,
    })
    await waitFor(async () => (await sumOf('kcp_usage_requests_total')) === requests + 1, {
      what: 'the request of the watch in the metrics',
      ...within,
    })
    for (const path of ['/metrics', `${other.base}/metrics`]) {
      const { text } = await other.http.request('GET', path)
      expect(text, path).not.to.match(/kcp_usage|many-|acme/)
    }
  })

  it('is printed as a table, as CSV and for OpenCost', async () => {
    expect(await usage()).to.match(/^HOUR +NAME +REQUESTS .*\n.* acme +/)
    const [heading = '', ...lines] = (await usage('--hourly', '-o', 'csv')).trim().split('\r\n')
    expect(heading).to.equal(
      'hour,name,id,requests,watchHours,objectHours,byteHours,cpuCoreHours,memoryByteHours,podHours',
    )
    expect(lines.every((line) => line.split(',').length === 10)).to.equal(true)
    const { data } = JSON.parse(await usage('-o', 'opencost', '--prices', 'storage=1073741824')) as {
      data: Record<
        string,
        { pvByteHours: number; pvCost: number; totalCost: number; properties: { cluster: string } }
      >[]
    }
    const allocation = data[0]?.['acme']
    expect(allocation?.properties.cluster).to.equal('acme')
    expect(allocation?.pvCost).to.be.closeTo(allocation?.pvByteHours ?? 0, 1e-6)
    expect(allocation?.totalCost).to.equal(allocation?.pvCost)
    expect(await usage('none')).to.equal('')
    const { stderr } = await runKcp(['usage', '--root-dir', instance.rootDir, '--since', '30d'])
    expect(stderr).to.match(/the oldest rows are of 2[0-9T:-]+Z: what was used before is not in these numbers/)
  })

  it('is in the console, of the logical cluster that it shows', async () => {
    await using browser = await signedIn(instance)
    const answer = await browser.fetch('GET', '/console/api/usage?cluster=other')
    const { rows } = answer.json() as unknown as { rows: Item[] }
    expect([answer.status, ...new Set(rows.map(({ name }) => name))]).to.deep.equal([200, 'other'])
    const sum = rows.reduce((sum, row) => sum + row.requests, 0)
    expect(sum).to.be.greaterThan(250)
  })

  it('of hours that are over is in one ConfigMap, with the same sums', async () => {
    const hour = new Date(Date.now() - 5 * 3600e3).toISOString().slice(0, 13)
    const path = '/clusters/root/api/v1/namespaces/kcp-system/configmaps'
    const digits = hour.replace(/\D/g, '')
    for (const requests of [1, 2, 3]) {
      const line = `${hour}:00:00Z\told-id\told\t${requests}\t0\t0\t0\t0\t0\t0\n`
      const body = {
        metadata: { name: `kcp-usage-${digits}-w${requests}-0`, labels: { 'kcp.dev/usage-hour': hour } },
        binaryData: { rows: gzipSync(line).toString('base64') },
      }
      expect((await instance.admin.http.request('POST', path, { body })).status).to.equal(201)
    }
    const sumOf = async (): Promise<number | undefined> => (await itemOf('old'))?.requests
    expect(await sumOf()).to.equal(6)
    // A server archives after its first save, and once an hour.
    await instance.process.kill()
    await instance.process.start()
    expect(await make(other, 'saved')).to.equal(201)
    const names = async (): Promise<string[]> => {
      const { items } = (await instance.admin.http.request('GET', path)).json() as unknown as {
        items: { metadata: { name: string } }[]
      }
      return items.map(({ metadata }) => metadata.name).filter((name) => name.includes(digits))
    }
    await waitFor(async () => (await names()).length === 1, { what: 'one ConfigMap', ...within })
    expect(await names()).to.deep.equal([`kcp-usage-all-${digits}-0`])
    expect(await sumOf()).to.equal(6)
  })
})
