// Measures logical clusters: creating one, keeping thousands, deleting them.
import { sleep } from '#async/index.ts'
import { inParallel } from './in-parallel.ts'
import { startKcpUnderTest } from './kcp-under-test.ts'
import { openEndpoint, type Endpoint } from './load.ts'
import type { Measurement } from './measurement.ts'
import { cpuSeconds, residentMiB, withChildren } from './process-usage.ts'
import { median, quantile, rounded } from './statistics.ts'

/** The path of the LogicalClusters. */
export const logicalClusters = '/apis/kcp.dev/v1alpha1/logicalclusters'
/** The JSON of one to create. */
export const logicalCluster = (name: string): string =>
  JSON.stringify({ apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name } })

/** From the create request of a logical cluster to the first list of its namespaces. */
export const create: Measurement = {
  name: 'create',
  describes: 'create a logical cluster to first GET namespaces, one after the other',
  async run() {
    await using kcp = await startKcpUnderTest()
    await using root = openEndpoint(kcp.adminKubeconfig, { connections: 1 })
    await using all = openEndpoint(kcp.adminKubeconfig, { connections: 1, base: '/clusters' })
    const elapsed: number[] = []
    for (let i = 0; i < 220; i++) {
      const name = `c-${i}`
      const began = performance.now()
      await root.json('POST', logicalClusters, logicalCluster(name))
      await firstNamespaces(all, name)
      // The first 20 run before the code is compiled; a real server is past that.
      if (i >= 20) elapsed.push(performance.now() - began)
    }
    return { 'p50 ms': rounded(median(elapsed)), 'p99 ms': rounded(quantile(elapsed, 0.99)) }
  },
}

/** Resolves when its namespaces are listed. */
export async function firstNamespaces(all: Endpoint, name: string): Promise<void> {
  for (let attempt = 0; attempt < 1000; attempt++) {
    const { status } = await all.request('GET', `/${name}/api/v1/namespaces`)
    if (status === 200) return
    if (status !== 404 && status !== 503) throw new Error(`GET namespaces of "${name}": ${status}`)
  }
  throw new Error(`logical cluster "${name}" is not served`)
}

/** Creates a thousand, lists the namespaces of each once, waits until all are Ready, then deletes them. */
export const thousand = many({ name: 'thousand', count: 1000 })
/** The same with ten thousand. */
export const tenThousand = many({ name: 'tenthousand', count: 10_000 })

function many({ name: title, count: wanted }: { name: string; count: number }): Measurement {
  return {
    name: title,
    describes: `${wanted} logical clusters: seconds until all are Ready, MiB with them and without them again`,
    async run({ signal, say }) {
      await using kcp = await startKcpUnderTest()
      await using root = openEndpoint(kcp.adminKubeconfig, { connections: 16 })
      await using all = openEndpoint(kcp.adminKubeconfig, { connections: 16, base: '/clusters' })
      const pids = withChildren(kcp.pid)
      const before = residentMiB(pids)
      const names = Array.from({ length: wanted }, (_, index) => `t-${index}`)
      const began = performance.now()
      await inParallel(names, 16, async (name) => {
        await root.json('POST', logicalClusters, logicalCluster(name))
        await firstNamespaces(all, name)
      })
      const served = (performance.now() - began) / 1000
      const most = residentMiB(pids)
      await until(async () => (await readyCount(root)) === names.length, signal)
      const ready = (performance.now() - began) / 1000
      const readyCpu = cpuSeconds(pids)
      say(`${wanted} ready after ${ready.toFixed(1)} s`)
      await sleep(settleMs, signal)
      const peak = residentMiB(pids)
      const deleting = performance.now()
      await inParallel(names, 16, async (name) => {
        await root.json('DELETE', `${logicalClusters}/${name}`)
      })
      await until(async () => (await count(root)) === 0, signal)
      const gone = (performance.now() - deleting) / 1000
      await sleep(settleMs, signal)
      return {
        'seconds until served': rounded(served),
        'seconds until Ready': rounded(ready),
        'CPU seconds until Ready': rounded(readyCpu),
        'MiB before': rounded(before),
        'MiB at the last one': rounded(most),
        'MiB with them, 10 s after': rounded(peak),
        'KiB each': rounded(((peak - before) * 1024) / wanted),
        'seconds until gone': rounded(gone),
        'MiB 10 s after': rounded(residentMiB(pids)),
      }
    },
  }
}

const settleMs = 10_000

/** Runs the task for every item, with `atOnce` concurrent workers. */
interface LogicalClusterList {
  readonly items: readonly { status?: { conditions?: readonly { type: string; status: string }[] } }[]
}

async function count(root: Endpoint): Promise<number> {
  return ((await root.json('GET', logicalClusters)) as LogicalClusterList).items.length
}

async function readyCount(root: Endpoint): Promise<number> {
  const { items } = (await root.json('GET', logicalClusters)) as LogicalClusterList
  const isReady = ({ status }: LogicalClusterList['items'][number]): boolean =>
    status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true
  return items.filter(isReady).length
}

async function until(condition: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + 240_000
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('it did not come to that within 240 s')
    await sleep(500, signal)
  }
}
