// The process of a controller that is measured: it imports the library as other programs do.
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createLogger, loadKubeconfig, watchAcross, type Across, type ReconcileRequest } from 'kcp/watch-across'
import {
  label,
  noisyCluster,
  type FromAcrossClient,
  type StartAcross,
  type Synced,
  type ToAcrossClient,
} from './across-protocol.ts'
import { atDigits } from './watch-protocol.ts'

const configMaps = { group: '', version: 'v1', resource: 'configmaps', labelSelector: label }
const workers = 16
setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void
/** Objects that were reconciled, and what each of them said then. */
const reconciled = new Map<string, string>()
let lags = { noisy: [] as number[], others: [] as number[] }
/** Objects that are to be written once by their next reconcile. */
let toWrite: Set<string> | undefined
let failed = 0
let expected = 0
let done = (): void => undefined
let across: Across

async function reconcile({ logicalCluster, namespace, name, object, client, signal }: ReconcileRequest): Promise<void> {
  if (object === undefined) return
  const key = `${logicalCluster}/${name}`
  const at = (object['data'] as Record<string, string> | undefined)?.['at'] ?? ''
  if (toWrite?.delete(key) === true) {
    const patch = { metadata: { annotations: { seen: 'yes' } } }
    await client.patch(configMaps, { namespace, name }, 'merge', patch, { signal }).catch(() => failed++)
    if (--expected === 0) done()
    return
  }
  const before = reconciled.get(key)
  if (before === at) return
  reconciled.set(key, at)
  if (before === undefined) {
    if (reconciled.size === expected) done()
    return
  }
  const lag = (Number(process.hrtime.bigint() / 1000n) - Number(at.slice(0, atDigits))) / 1000
  lags[logicalCluster === noisyCluster ? 'noisy' : 'others'].push(lag)
  // A reconcile that does something asks the server at least once.
  await client.get(configMaps, { namespace, name }, { signal })
}

async function start({ kubeconfig, logicalClusters, objects }: StartAcross): Promise<Synced> {
  const before = await memory()
  const began = performance.now()
  const all = untilAll(objects)
  across = watchAcross({
    kubeconfig: await loadKubeconfig({ file: kubeconfig }, { trusted: true }),
    resources: [configMaps],
    logicalClusters,
    workers,
    reconcile,
    signal: new AbortController().signal,
    log: createLogger(),
  })
  await across.synced()
  const syncedSeconds = (performance.now() - began) / 1000
  await all
  const reconciledSeconds = (performance.now() - began) / 1000
  const connections = process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length
  await delay(1000)
  const after = await memory()
  return {
    ...{ syncedSeconds, reconciledSeconds, connections, objects: reconciled.size },
    residentMiB: after.resident - before.resident,
    heapMiB: after.heap - before.heap,
  }
}

/** Resolves when so many objects were reconciled. */
function untilAll(objects: number): Promise<void> {
  expected = objects
  return new Promise((resolve) => (done = resolve))
}

/** MiB. */
async function memory(): Promise<{ readonly resident: number; readonly heap: number }> {
  for (let i = 0; i < 3; i++) {
    collectGarbage()
    await delay(100)
  }
  const { rss, heapUsed, external } = process.memoryUsage()
  return { resident: rss / 2 ** 20, heap: (heapUsed + external) / 2 ** 20 }
}

/** A reconcile of each object, whose reconcile sends one patch. */
async function writeAll(): Promise<number> {
  failed = 0
  toWrite = new Set(reconciled.keys())
  const all = untilAll(toWrite.size)
  const began = performance.now()
  for (const key of toWrite) {
    const [logicalCluster = '', name = ''] = key.split('/')
    across.enqueue({ logicalCluster, resource: configMaps, namespace: 'default', name })
  }
  await all
  return (performance.now() - began) / 1000
}

async function handle(message: ToAcrossClient): Promise<FromAcrossClient> {
  if (message === 'lags') {
    const heard = lags
    lags = { noisy: [], others: [] }
    return { lags: heard }
  }
  if (message === 'write') return { wrote: { seconds: await writeAll(), failed } }
  return { synced: await start(message.start) }
}

process.on('message', (message: ToAcrossClient) => {
  const response = (answered: FromAcrossClient): void => void process.send?.(answered)
  handle(message).then(response, (error: unknown) => response({ failure: String(error) }))
})
