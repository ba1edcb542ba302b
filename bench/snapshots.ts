// Measures snapshots, copies and restores of a logical cluster under writes, and what its neighbours feel of them.
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { sleep } from '#async/index.ts'
import { isConditionTrue, type LogicalCluster } from '#crds/index.ts'
import { runKcp } from '#test/support/index.ts'
import { inParallel } from './in-parallel.ts'
import { startKcpUnderTest } from './kcp-under-test.ts'
import { openEndpoint, type Endpoint } from './load.ts'
import { logicalCluster, logicalClusters } from './logical-clusters.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { residentMiB, withChildren } from './process-usage.ts'
import { median, quantile, rounded } from './statistics.ts'

const [objects, writesPerSecond] = [10_000, 200]
const [copies, objectsOfCopied] = [1000, 500]

/** A logical cluster with 10,000 objects under 200 writes/s: save, copy, restore; and 1,000 copies of a small one. */
export const snapshots: Measurement = {
  name: 'snapshots',
  describes: `a logical cluster with ${objects} objects under ${writesPerSecond} writes/s: save, copy, restore; neighbours; ${copies} copies of one with ${objectsOfCopied}`,
  async run({ signal, say }) {
    await using kcp = await startKcpUnderTest()
    const rootDir = dirname(kcp.adminKubeconfig)
    const folder = mkdtempSync(join(tmpdir(), 'kcp-bench-snapshots-'))
    try {
      await using root = openEndpoint(kcp.adminKubeconfig, { connections: 8 })
      await using large = openEndpoint(await kcp.tenantKubeconfig('large'), { connections: 16 })
      await using near = openEndpoint(await kcp.tenantKubeconfig('near'), { connections: 1 })
      await using small = openEndpoint(await kcp.tenantKubeconfig('small'), { connections: 16 })
      await fill(large, objects)
      await fill(small, objectsOfCopied)
      say(`${objects} objects are there`)
      const file = join(folder, 'large.kcp.tar.zst')
      const numbers: Record<string, number> = {}
      const timed = async (name: string, work: () => Promise<void>): Promise<void> => {
        const felt = neighbour(near)
        await sleep(500, signal)
        const began = performance.now()
        await work()
        numbers[`${name}: seconds`] = rounded((performance.now() - began) / 1000)
        Object.assign(numbers, await felt.end(name))
      }
      await using _writer = writer(large)
      await timed('nothing', () => sleep(5000, signal))
      await timed('save', async () => {
        await runKcp(['snapshot', 'create', 'large', '-o', file, '--root-dir', rootDir])
      })
      numbers['save: MiB'] = rounded(statSync(file).size / 2 ** 20)
      await timed('copy', () => copied(root, 'copy-of-large', 'large', signal))
      await timed('restore', async () => {
        await runKcp(['snapshot', 'restore', file, '--as', 'restored', '--root-dir', rootDir])
      })
      return { ...numbers, ...(await manyCopies(root, kcp.pid, signal)) }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
}

async function fill(tenant: Endpoint, count: number): Promise<void> {
  const names = Array.from({ length: count }, (_, i) => `c-${i}`)
  const data = { text: 'x'.repeat(600) }
  await inParallel(names, 16, async (name) => {
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data }
    await tenant.json('POST', '/api/v1/namespaces/default/configmaps', JSON.stringify(object))
  })
}

/** Changes objects of the logical cluster until it is disposed of. */
function writer(tenant: Endpoint): AsyncDisposable {
  let isOver = false
  const write = async (): Promise<void> => {
    const began = performance.now()
    for (let i = 0; !isOver; i++) {
      const object = {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: `c-${i % objects}` },
        data: { n: `${i}` },
      }
      const path = `/api/v1/namespaces/default/configmaps/c-${i % objects}`
      await tenant.json('PUT', path, JSON.stringify(object))
      const ahead = (i * 1000) / writesPerSecond - (performance.now() - began)
      if (ahead > 0) await new Promise((resolve) => setTimeout(resolve, ahead))
    }
  }
  const running = write()
  return {
    async [Symbol.asyncDispose]() {
      isOver = true
      await running
    },
  }
}

/** One client of another logical cluster, which asks again and again. */
function neighbour(near: Endpoint): { end(name: string): Promise<Numbers> } {
  let isOver = false
  const elapsed: number[] = []
  const ask = async (): Promise<void> => {
    while (!isOver) {
      const began = performance.now()
      await near.json('GET', '/api/v1/namespaces/default')
      elapsed.push(performance.now() - began)
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  }
  const running = ask()
  return {
    async end(name) {
      isOver = true
      await running
      return {
        [`${name}: neighbour p99 ms`]: rounded(quantile(elapsed, 0.99)),
        [`${name}: neighbour longest ms`]: rounded(Math.max(...elapsed)),
      }
    },
  }
}

async function copied(root: Endpoint, name: string, from: string, signal: AbortSignal): Promise<void> {
  const object = JSON.parse(logicalCluster(name)) as LogicalCluster
  object.spec = { source: { logicalClusterRef: { name: from } } }
  await root.json('POST', logicalClusters, JSON.stringify(object))
  for (;;) {
    const found = (await root.json('GET', `${logicalClusters}/${name}`)) as LogicalCluster
    if (isConditionTrue(found, 'Ready')) return
    await sleep(2, signal)
  }
}

async function manyCopies(root: Endpoint, pid: number, signal: AbortSignal): Promise<Numbers> {
  const pids = withChildren(pid)
  const before = residentMiB(pids)
  const elapsed: number[] = []
  const began = performance.now()
  for (let i = 0; i < 50; i++) {
    const one = performance.now()
    await copied(root, `one-${i}`, 'small', signal)
    elapsed.push(performance.now() - one)
  }
  const names = Array.from({ length: copies - 50 }, (_, i) => `many-${i}`)
  await inParallel(names, 4, (name) => copied(root, name, 'small', signal))
  return {
    'copies: p50 ms, one after the other': rounded(median(elapsed)),
    'copies: p99 ms, one after the other': rounded(quantile(elapsed, 0.99)),
    'copies: seconds for all': rounded((performance.now() - began) / 1000),
    'copies: MiB more': rounded(residentMiB(pids) - before),
  }
}
