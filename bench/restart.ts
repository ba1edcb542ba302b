// Measures a restart with a million stored objects: unused ones must cost nothing.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clusterIdOf } from '#apimachinery/meta/index.ts'
import { sleep } from '#async/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { encodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import { startKcpUnderTest } from './kcp-under-test.ts'
import { openEndpoint, type Endpoint } from './load.ts'
import type { Measurement } from './measurement.ts'
import { residentMiB, withChildren } from './process-usage.ts'
import { inParallel } from './in-parallel.ts'
import { logicalCluster, logicalClusters } from './logical-clusters.ts'
import { median, quantile, rounded } from './statistics.ts'

const clusterCount = 1000
const objectsEach = 1000
/** Length of the value, for stored objects of about 1 KiB. */
const textBytes = 800
/** Number of logical clusters that receive a request after the restart. */
const asked = 300
/** Number of watches that resume after the restart. */
const resumed = 20

const configMaps = '/api/v1/namespaces/default/configmaps'

/** Time until ready again, and latency of the first request to a logical cluster. */
export const restart: Measurement = {
  name: 'restart',
  describes: `restart with ${clusterCount * objectsEach} objects in ${clusterCount} logical clusters`,
  async run({ signal, say }) {
    const dir = mkdtempSync(join(tmpdir(), 'kcp-bench-'))
    try {
      const ids = await makeClusters(dir)
      say(`${clusterCount} logical clusters are there`)
      await fill(
        join(dir, 'root', 'data', 'kcp.db'),
        [...ids.values()].map(({ uid }) => uid),
      )
      say(`${clusterCount * objectsEach} objects are there`)
      await using kcp = await startKcpUnderTest({ dir })
      await using all = openEndpoint(kcp.adminKubeconfig, { connections: 1, base: '/clusters' })
      const pids = withChildren(kcp.pid)
      const atStart = residentMiB(pids)
      const names = [...ids.keys()]
      const first = await firstRequests(all, names.slice(0, asked))
      const again = await firstRequests(all, names.slice(0, asked))
      const loaded = residentMiB(pids)
      say(`${asked} logical clusters were asked for an object`)
      const events = await resumedEvents(all, [...ids].slice(-resumed))
      await sleep(30_000, signal)
      return {
        'start seconds': rounded(kcp.startSeconds),
        'MiB at start': rounded(atStart),
        'first GET p50 ms': rounded(median(first)),
        'first GET p99 ms': rounded(quantile(first, 0.99)),
        'later GET p50 ms': rounded(median(again)),
        [`MiB with ${asked} loaded`]: rounded(loaded),
        'watches resumed without 410, of 20': events,
        'MiB 30 s later': rounded(residentMiB(pids)),
      }
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  },
}

interface Made {
  readonly uid: string
  /** Newest revision before its objects were created. */
  readonly resourceVersion: string
}

async function makeClusters(dir: string): Promise<Map<string, Made>> {
  await using kcp = await startKcpUnderTest({ dir })
  await using root = openEndpoint(kcp.adminKubeconfig, { connections: 16 })
  await using all = openEndpoint(kcp.adminKubeconfig, { connections: 16, base: '/clusters' })
  const made = new Map<string, Made>()
  const names = Array.from({ length: clusterCount }, (_, index) => `r-${index}`)
  await inParallel(names, 16, async (name) => {
    const object = await root.json('POST', logicalClusters, logicalCluster(name))
    const { uid } = (object as { metadata: { uid: string } }).metadata
    const list = await untilServed(all, name)
    made.set(name, { uid, resourceVersion: list })
  })
  return made
}

async function untilServed(all: Endpoint, name: string): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    const { status } = await all.request('GET', `/${name}/api/v1/namespaces`)
    if (status === 200) break
    if (attempt === 1000) throw new Error(`logical cluster "${name}" is not served`)
  }
  const list = await all.json('GET', `/${name}${configMaps}`)
  return (list as { metadata: { resourceVersion: string } }).metadata.resourceVersion
}

/** Writes directly into the store: only the restart is measured. */
async function fill(file: string, uids: readonly string[]): Promise<void> {
  const { signal } = new AbortController()
  await using store = await openSqliteStore({ file })
  let serial = 0
  for (const uid of uids) {
    const cluster = clusterIdOf(uid)
    await Promise.all(
      Array.from({ length: objectsEach }, (_, n) => {
        const name = `object-${n}`
        const id = `00000000-0000-4000-8000-${String(serial++).padStart(12, '0')}`
        const metadata = { name, namespace: 'default', uid: id, creationTimestamp: '2026-01-01T00:00:00Z' }
        const value = encodeObject({
          kind: 'ConfigMap',
          apiVersion: 'v1',
          metadata,
          data: { text: 'x'.repeat(textBytes) },
        })
        return store.create({ cluster, resource: 'configmaps', namespace: 'default', name }, value, { signal })
      }),
    )
  }
}

async function firstRequests(all: Endpoint, names: readonly string[]): Promise<number[]> {
  const elapsed: number[] = []
  for (const name of names) {
    const began = performance.now()
    await all.json('GET', `/${name}${configMaps}/object-7`)
    elapsed.push(performance.now() - began)
  }
  return elapsed
}

/** How many watches from before the restart receive every object created since. */
async function resumedEvents(all: Endpoint, clusters: readonly (readonly [string, Made])[]): Promise<number> {
  let whole = 0
  for (const [name, { resourceVersion }] of clusters) {
    const path = `/${name}${configMaps}?watch=true&resourceVersion=${resourceVersion}&timeoutSeconds=1`
    const text = await all.text('GET', path)
    const types = text.split('\n').flatMap((line) => /^{"type":"([A-Z]+)"/.exec(line)?.[1] ?? [])
    if (types.length === objectsEach && types.every((type) => type === 'ADDED')) whole++
  }
  return whole
}
