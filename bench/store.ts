// Measures the embedded store and the watch cache: `node --expose-gc bench/store.ts [SECONDS]`. Prints JSON.
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { clusterIdOf, type ClusterId, type Revision } from '#apimachinery/meta/index.ts'
import { createWatchCache, type BaseLayer } from '#store/watch-cache/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'

const seconds = Number(process.argv[2] ?? 3)
const { signal } = new AbortController()
const directory = mkdtempSync(join(tmpdir(), 'kcp-bench-'))
const results: Record<string, number | string> = {}

function objectOf(name: string, size = 700): Buffer {
  const metadata = { name, namespace: 'shop', uid: `00000000-0000-0000-0000-${name.padStart(12, '0')}` }
  return Buffer.from(JSON.stringify({ kind: 'ConfigMap', apiVersion: 'v1', metadata, data: { v: 'x'.repeat(size) } }))
}

const roles = Array.from({ length: 131 }, (_, n) => `role-${String(n).padStart(3, '0')}`)
const baseLayer: BaseLayer = {
  resources: ['clusterroles'],
  get: ({ resource, name }) => (resource === 'clusterroles' && roles.includes(name) ? objectOf(name, 500) : undefined),
  keys: (cluster, resource) =>
    resource === 'clusterroles' ? roles.map((name) => ({ cluster, resource, namespace: '', name })) : [],
}

const memoryMiB = (): number => {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 2 ** 20
}

async function creates(file: string): Promise<void> {
  await using store = await openSqliteStore({ file })
  const cluster = clusterIdOf('creates')
  for (const writers of [1, 32, 100]) {
    const began = performance.now()
    let made = 0
    await Promise.all(
      Array.from({ length: writers }, async (_, w) => {
        for (let n = 0; performance.now() - began < seconds * 1000; n++) {
          const name = `${writers}-${w}-${n}`
          await store.create({ cluster, resource: 'configmaps', namespace: 'shop', name }, objectOf(name), { signal })
          made++
        }
      }),
    )
    results[`store: durable creates/s, ${writers} writers`] = Math.round((made * 1000) / (performance.now() - began))
  }
  results['store: file MiB'] = Math.round(statSync(file).size / 2 ** 20)
}

async function reads(file: string): Promise<void> {
  await using store = await openSqliteStore({ file })
  await using watchCache = await createWatchCache(store, { stamp: stampRevision, readFacts, baseLayer, signal })
  const id = clusterIdOf('reads')
  const objects = await watchCache.cluster(id, { signal })
  const began = performance.now()
  for (let n = 0; n < 10_000; n += 100) {
    await Promise.all(
      Array.from({ length: 100 }, (_, i) => {
        const name = `n${n + i}`
        return objects.create({ resource: 'configmaps', namespace: 'shop', name }, objectOf(name), { signal })
      }),
    )
  }
  results['watch cache: creates/s, 100 writers'] = Math.round(1e7 / (performance.now() - began))
  const timed = (title: string, count: number, run: (n: number) => unknown): void => {
    for (let n = 0; n < count / 10; n++) run(n)
    const from = performance.now()
    for (let n = 0; n < count; n++) run(n)
    results[title] = Math.round(((performance.now() - from) * 1e6) / count)
  }
  timed('watch cache: GET of 10,000, ns', 200_000, (n) => objects.get('configmaps', 'shop', `n${(n * 7919) % 10_000}`))
  timed('watch cache: GET of the base layer, ns', 200_000, (n) => objects.get('clusterroles', '', roles[n % 131] ?? ''))
  timed('watch cache: LIST 10,000, ns', 500, () => objects.list({ resource: 'configmaps' }))
  timed('watch cache: LIST 131 of the base layer, ns', 2000, () => objects.list({ resource: 'clusterroles' }))
  watchCache.unload(id)
  const from = performance.now()
  await watchCache.cluster(id, { signal })
  results['watch cache: load a logical cluster of 10,000 objects, ms'] = Math.round(performance.now() - from)
}

async function idle(file: string): Promise<void> {
  await using store = await openSqliteStore({ file })
  await using watchCache = await createWatchCache(store, { stamp: stampRevision, readFacts, baseLayer, signal })
  const empty = memoryMiB()
  const ids: ClusterId[] = []
  for (const count of [1000, 10_000]) {
    const began = performance.now()
    while (ids.length < count) {
      const batch = Array.from({ length: 100 }, (_, n) => clusterIdOf(`idle-${ids.length + n}`))
      ids.push(...batch)
      await Promise.all(
        batch.map(async (id) => {
          const objects = await watchCache.cluster(id, { signal })
          // The objects that a newly used logical cluster has typically written: one namespace, one ServiceAccount.
          await objects.create({ resource: 'namespaces', namespace: '', name: 'shop' }, objectOf('shop', 100), {
            signal,
          })
          await objects.create(
            { resource: 'serviceaccounts', namespace: 'shop', name: 'default' },
            objectOf('default', 100),
            {
              signal,
            },
          )
        }),
      )
    }
    results[`watch cache: ${count} logical clusters (2 objects each, base layer of 131), MiB`] = Math.round(
      memoryMiB() - empty,
    )
    results[`watch cache: until ${count}, ms`] = Math.round(performance.now() - began)
  }
  const began = performance.now()
  const { entries } = await watchCache.listAll({ resource: 'namespaces' }, ids, { signal })
  results[`watch cache: one resource over ${ids.length} logical clusters (${entries.length} objects), ms`] = Math.round(
    performance.now() - began,
  )
  for (const id of ids) watchCache.unload(id)
  const cold = performance.now()
  await store.list({ resource: 'namespaces' }, { signal })
  results[`store: one resource over ${ids.length} logical clusters, ms`] = Math.round(performance.now() - cold)
  const first = performance.now()
  for (const id of ids.slice(0, 1000)) await watchCache.cluster(id, { signal })
  results['watch cache: load an idle logical cluster, microseconds'] = Math.round(performance.now() - first)
  results['store: newest revision'] = watchCache.revision() satisfies Revision
}

try {
  await creates(join(directory, 'creates.db'))
  await reads(join(directory, 'reads.db'))
  await idle(join(directory, 'idle.db'))
} finally {
  rmSync(directory, { recursive: true, force: true })
}
const machine = `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}, load ${loadavg()[0]?.toFixed(1)}, node ${process.version}`
process.stdout.write(`${JSON.stringify({ machine, ...results }, null, 2)}\n`)
