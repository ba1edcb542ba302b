// A hundred thousand logical clusters in one `kcp start`: until all are Ready, while a client pages through them, and
// after kill -9.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sleep } from '#async/index.ts'
import { inParallel } from './in-parallel.ts'
import { startKcpUnderTest } from './kcp-under-test.ts'
import { openEndpoint, type Endpoint } from './load.ts'
import { firstNamespaces, logicalCluster, logicalClusters } from './logical-clusters.ts'
import type { Measurement } from './measurement.ts'
import { cpuSeconds, residentMiB, withChildren } from './process-usage.ts'
import { median, quantile, rounded } from './statistics.ts'

const count = Number(process.env['KCP_BENCH_CLUSTERS'] ?? 100_000)
/** Number of logical clusters that nobody has used since the restart and that get a first request. */
const asked = 500
const settleMs = 10_000
const pageSize = 500

interface Page {
  /** Absent: the page is no longer known. */
  readonly metadata?: { readonly continue?: string }
  readonly items: readonly { readonly status?: { readonly conditions?: readonly { type: string; status: string }[] } }[]
}

/** Creation, memory, `kubectl get logicalclusters` in pages, and the start after a crash. */
export const hundredThousand: Measurement = {
  name: 'hundredthousand',
  describes: `${count} logical clusters in one process: until all are Ready, a list in pages meanwhile, after kill -9`,
  async run({ signal, say }) {
    const dir = mkdtempSync(join(tmpdir(), 'kcp-bench-'))
    try {
      const created = await createAll(dir, { signal, say })
      await using kcp = await startKcpUnderTest({ dir })
      const pids = withChildren(kcp.pid)
      await using root = openEndpoint(kcp.adminKubeconfig, { connections: 1 })
      await using all = openEndpoint(kcp.adminKubeconfig, { connections: 1, base: '/clusters' })
      const began = performance.now()
      await firstNamespaces(all, nameOf(count - 1))
      const serves = kcp.startSeconds + (performance.now() - began) / 1000
      say(`after kill -9, the last one answers after ${serves.toFixed(1)} s`)
      await untilIdle(pids, signal)
      const first: number[] = []
      for (let i = 0; i < asked; i++) {
        const asking = performance.now()
        await firstNamespaces(all, nameOf(Math.floor((i * count) / asked)))
        first.push(performance.now() - asking)
      }
      const { ready } = await pages(root)
      if (ready !== count) throw new Error(`${ready} of ${count} logical clusters are Ready after the restart`)
      return {
        ...created,
        'start after kill -9, seconds': rounded(kcp.startSeconds),
        'last one answers after kill -9, seconds': rounded(serves),
        'first GET of a cold one p50 ms': rounded(median(first)),
        'first GET of a cold one p99 ms': rounded(quantile(first, 0.99)),
        'MiB after the restart': rounded(residentMiB(pids)),
        'CPU seconds of 10 s without requests': rounded(await idleCpu(pids, signal)),
      }
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  },
}

async function createAll(dir: string, { signal, say }: Parameters<Measurement['run']>[0]) {
  await using kcp = await startKcpUnderTest({ dir })
  const pids = withChildren(kcp.pid)
  const before = residentMiB(pids)
  await using root = openEndpoint(kcp.adminKubeconfig, { connections: 16 })
  const began = performance.now()
  const names = Array.from({ length: count }, (_, index) => nameOf(index))
  await inParallel(names, 16, async (name) => {
    await root.json('POST', logicalClusters, logicalCluster(name))
  })
  const acknowledged = (performance.now() - began) / 1000
  say(`${count} created after ${acknowledged.toFixed(0)} s`)
  const paging = performance.now()
  await pages(root)
  const pagedWhile = (performance.now() - paging) / 1000
  // They become Ready in the order in which they were created.
  while (!(await isReady(root, nameOf(count - 1)))) await sleep(200, signal)
  const ready = (performance.now() - began) / 1000
  const readyCpu = cpuSeconds(pids)
  say(`all Ready after ${ready.toFixed(0)} s`)
  await sleep(settleMs, signal)
  const result = {
    'seconds until created': rounded(acknowledged),
    'seconds until Ready': rounded(ready),
    'Ready a second': rounded(count / ready),
    'CPU ms each': rounded((readyCpu * 1000) / count),
    'list in pages while they become Ready, seconds': rounded(pagedWhile),
    'MiB before': rounded(before),
    'MiB with them': rounded(residentMiB(pids)),
  }
  await kcp.kill()
  return result
}

const nameOf = (index: number): string => `h-${index}`

async function isReady(root: Endpoint, name: string): Promise<boolean> {
  return readyOf((await root.json('GET', `${logicalClusters}/${name}`)) as Page['items'][number])
}

function readyOf({ status }: Page['items'][number]): boolean {
  return status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true
}

/** Reads all as kubectl does: in pages, and at once where a page is no longer known because too much has changed. */
async function pages(root: Endpoint): Promise<{ readonly ready: number }> {
  let ready = 0
  for (let next: string | undefined = ''; next !== undefined;) {
    const token: string = next === '' ? '' : `&continue=${encodeURIComponent(next)}`
    const { metadata, items } = await page(root, `?limit=${pageSize}${token}`)
    if (metadata === undefined) return { ready: (await page(root, '')).items.filter(readyOf).length }
    ready += items.filter(readyOf).length
    next = metadata.continue === '' ? undefined : metadata.continue
  }
  return { ready }
}

async function page(root: Endpoint, query: string): Promise<Page> {
  try {
    return (await root.json('GET', logicalClusters + query)) as Page
  } catch (error) {
    if (query !== '' && (error as Error).message.includes(': 410 ')) return { items: [] }
    throw error
  }
}

/** Resolves when the process uses less than a tenth of a core, or after two minutes. */
async function untilIdle(pids: readonly number[], signal: AbortSignal): Promise<void> {
  for (let i = 0; i < 120; i++) {
    const before = cpuSeconds(pids)
    await sleep(1000, signal)
    if (cpuSeconds(pids) - before < 0.1) return
  }
}

async function idleCpu(pids: readonly number[], signal: AbortSignal): Promise<number> {
  const before = cpuSeconds(pids)
  await sleep(10_000, signal)
  return cpuSeconds(pids) - before
}
