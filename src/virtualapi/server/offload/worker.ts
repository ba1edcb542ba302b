// The offload thread: runs the same endpoints over RemoteObjects, at a lower priority.
import { Buffer } from 'node:buffer'
import { getPriority, setPriority } from 'node:os'
import { LRUCache } from 'lru-cache'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { makeProtoAPlainKey, type ClusterId, type ClusterName } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { abortable } from '#async/index.ts'
import { EgressError } from '#network/egress/index.ts'
import { isStoreError, StoreError } from '#store/index.ts'
import type { WatchCache } from '#store/watch-cache/index.ts'
import { createAuthorizer } from '#virtualapi/auth/authz/index.ts'
import { reformat } from '#virtualapi/codec/responses.ts'
import { dispatchOffloaded } from '#virtualapi/endpoints/dispatch.ts'
import { createAncestors, type ObjectsInMemory } from '#virtualapi/hierarchy/ancestors.ts'
import { ClusterCatalog } from '#virtualapi/catalog/cluster-catalog.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { Conversions } from '#virtualapi/write/conversion/conversions.ts'
import { createProviders } from '#virtualapi/write/admission/provider-admission.ts'
import { createRegistry } from '#virtualapi/write/registry/create-registry.ts'
import { fromStoreError } from '#virtualapi/write/registry/store-errors.ts'
import type { Outbound, OutboundResponse } from '#virtualapi/outbound/calls/outbound.ts'
import { parseRequest } from '#virtualapi/request/parse-request.ts'
import { Exchange } from '#virtualapi/request/exchange.ts'
import type { ObjectDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import { awaitAnswer } from './await-answer.ts'
import {
  owned,
  type FromWorker,
  type OffloadedRequest,
  type JobResult,
  type PostResult,
  type Read,
  type ReadAnswers,
  type ReadResult,
  type Told,
  type ToWorker,
  type WorkerSettings,
  type Write,
  type WriteResult,
} from './protocol.ts'
import { heardDefinitions } from './told-definition.ts'
import { hearView } from './told-view.ts'
import { hearFleet } from './told-fleet.ts'
import { createKnownEntries, RemoteObjects, type Link } from './remote-objects.ts'
import { remoteAllocations, remoteLedgers } from './remote-reservations.ts'

/**
 * Added to the nice value of this thread: on a contended processor, the main thread gets about three times its share.
 */
const niceness = 5
const maxNiceness = 19
/** How many logical clusters' compiled roles are cached on this thread. */
const maxCached = 20
/** How many logical clusters are known on this thread. */
const maxClusters = 1000

const port = parentPort
if (!port) throw new Error('this file runs as a worker thread')
// Maps in the objects of tenants may have any key, `__proto__` too.
makeProtoAPlainKey()
const { hasRoot, plain, hasFleet, answered, answers, progress } = workerData as WorkerSettings
try {
  // On Linux, pid 0 means the calling thread only.
  if (process.platform === 'linux') setPriority(0, Math.min(maxNiceness, getPriority(0) + niceness))
} catch {
  // The priority may not be changed: the thread runs with normal priority.
}

const known = createKnownEntries()
const jobs = new Map<number, AbortController>()
const writes = new Map<
  number,
  { job: number; resolve: (result: Extract<WriteResult, { is: 'written' }>) => void; reject: (error: Error) => void }
>()
let lastWrite = 0
const posts = new Map<
  number,
  { job: number; resolve: (response: OutboundResponse) => void; reject: (error: Error) => void }
>()
let lastPost = 0

function tell(message: FromWorker, transfer: readonly ArrayBuffer[] = []): void {
  port?.postMessage(message, transfer)
}

/** Reads through the main thread, and blocks until it has answered. */
function read(cluster: ClusterId, what: Read): unknown {
  const before = Atomics.load(answered, 0)
  tell({ is: 'read', cluster, read: what })
  awaitAnswer(answered, before)
  const received = receiveMessageOnPort(answers) as { message: ReadResult } | undefined
  // Without an answer the thread must end: the next read would get this answer, which is about another object or
  // logical cluster.
  if (received === undefined) process.exit(1)
  const { message } = received
  if (message.is === 'answer') return message.answer
  throw message.code === undefined ? new Error(message.message) : new StoreError(message.code, message.message)
}

function linkOf(job: number): Link {
  return {
    read,
    write: (what: Write, transfer) =>
      new Promise((resolve, reject) => {
        const write = ++lastWrite
        writes.set(write, { job, resolve, reject })
        tell({ is: 'write', job, write, what }, transfer)
      }),
  }
}

function watchCacheOf(link: Link): Pick<WatchCache, 'cluster'> {
  return { cluster: (id) => Promise.resolve(new RemoteObjects(id, { link, known })) }
}

/**
 * The watch cache of the authorizer, which caches compiled roles by ClusterObjects: it returns the same ClusterObjects
 * until the logical cluster is loaded again.
 */
function cachingWatchCacheOf(link: Link): ObjectsInMemory {
  const cached = new LRUCache<ClusterId, { readonly life: unknown; readonly objects: RemoteObjects }>({
    max: maxCached,
  })
  const find = (id: ClusterId): RemoteObjects => {
    const life = link.read(id, { do: 'life' })
    const kept = cached.get(id)
    if (kept !== undefined && kept.life === life) return kept.objects
    const objects = new RemoteObjects(id, { link, known })
    cached.set(id, { life, objects })
    return objects
  }
  return { cluster: async (id) => Promise.resolve(find(id)), loaded: find }
}

/** The logical clusters of the last requests, and their ancestors. */
const clusters = new LRUCache<ClusterId, LogicalCluster>({ max: maxClusters })
const idsByName = new LRUCache<ClusterName, ClusterId>({ max: maxClusters })
const directory = {
  byId: (id: ClusterId): LogicalCluster | undefined => clusters.get(id),
  byName: (name: ClusterName): LogicalCluster | undefined => clusters.get(idsByName.get(name) ?? ('' as ClusterId)),
}

function know(cluster: LogicalCluster): void {
  clusters.set(cluster.id, cluster)
  idsByName.set(cluster.name, cluster.id)
}

/** Outbound calls are made by the main thread, which bounds them for all threads together. */
const outbound: Outbound = {
  post: async (request, signal, reading) => {
    const job = [...jobs].find(([, life]) => life.signal === signal)?.[0] ?? 0
    const response = await abortable(
      new Promise<OutboundResponse>((resolve, reject) => {
        const post = ++lastPost
        posts.set(post, { job, resolve, reject })
        const body = owned(request.body)
        tell({ is: 'post', job, post, request: { ...request, body } }, [body.buffer])
      }),
      signal,
    )
    await reading?.(response)
    return response
  },
}

function posted(post: number, result: PostResult): void {
  const waiting = posts.get(post)
  posts.delete(post)
  if (result.is === 'answer') waiting?.resolve(result.answer)
  else waiting?.reject(result.isEgress ? new EgressError(result.message) : new Error(result.message))
}

const inMemory = cachingWatchCacheOf(linkOf(0))
const authorizer = createAuthorizer({ watchCache: inMemory, directory })
const ancestors = createAncestors(directory, inMemory)
const definitions = heardDefinitions(
  (cluster, name, known) => read(cluster, { do: 'definition', name, known }) as ReadAnswers['definition'],
)
const catalog = new ClusterCatalog({ isPlain: plain !== undefined, sources: [definitions] })
const conversions = new Conversions({ outbound })
/** Logical clusters of requests, whose pods no member may run. */
const withoutMembers = new WeakSet<LogicalCluster>()
const mayRunPods = (cluster: LogicalCluster): boolean => !withoutMembers.has(cluster)
const fleet = hearFleet((version) => read('' as ClusterId, { do: 'fleet', known: version }) as ReadAnswers['fleet'])
const registry = createRegistry({
  authorizer,
  hasRoot,
  plain,
  catalog,
  outbound,
  conversions,
  mayRunPods,
  ledgerFor: remoteLedgers(read),
  tree: { ancestors, directory },
  ...(plain === undefined && { providers: createProviders({ directory, watchCache: inMemory }) }),
  ...(hasFleet && { fleet }),
})

const allocationFor = remoteAllocations(read)

/** The dependencies of the endpoints on this thread; the others exist on the main thread only. */
function partsOf(job: number, now: number): ObjectDependencies {
  return {
    watchCache: watchCacheOf(linkOf(job)),
    registry,
    catalog,
    clock: { now: () => now, monotonic: () => performance.now() },
    allocationFor,
  }
}

async function answer(job: number, request: OffloadedRequest, signal: AbortSignal): Promise<JobResult> {
  const exchange = exchangeOf(request, signal)
  const told = (): Told => ({
    warnings: exchange.warnings,
    named: named(exchange),
    annotations: exchange.annotations,
    requested: exchange.record?.json,
  })
  try {
    const { method, url, isLoopback } = request
    const hasBearerToken = /^bearer /i.test(exchange.header('authorization') ?? '')
    exchange.info = parseRequest(method, url, {
      hasBearerToken,
      loopback: isLoopback,
      plainCluster: plain?.cluster.name,
    })
    const result = await dispatchOffloaded(exchange, partsOf(job, request.now))
    if (result.kind !== 'bytes') throw new Error(`an offloaded request was answered in ${result.kind}`)
    return { is: 'answer', answer: result, ...told() }
  } catch (error) {
    return refusal(error, told())
  }
}

function exchangeOf(request: OffloadedRequest, signal: AbortSignal): Exchange {
  const { method, url, rawHeaders, user, cluster, body } = request
  const exchange = new Exchange({
    method,
    url,
    rawHeaders,
    peerCertificate: undefined,
    signal,
    body: () => Promise.resolve(Buffer.from(body.buffer, body.byteOffset, body.byteLength)),
  })
  exchange.user = user
  exchange.cluster = cluster
  if (request.recordsRequest) exchange.record = {}
  for (const known of [cluster, ...request.known]) know(known)
  if (request.view !== undefined) exchange.view = hearView(request.view, cluster)
  if (!request.mayRunPods) withoutMembers.add(cluster)
  return exchange
}

/** Copies only the identity of the object, because the result is sent to the main thread. */
function named({ named: of }: Exchange): Told['named'] {
  if (of === undefined) return undefined
  const { name, namespace, uid, resourceVersion } = of
  return { name, namespace, uid, resourceVersion }
}

function refusal(error: unknown, told: Told): JobResult {
  const refused = isStoreError(error) ? fromStoreError(error, { group: '', resource: '' }, '') : error
  if (!isStatusError(refused))
    return { is: 'failed', stack: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  const { status, headers, text, cause } = refused
  return { is: 'refused', status, headers, text, cause: cause instanceof Error ? cause.stack : undefined, ...told }
}

async function run(message: Extract<ToWorker, { do: 'answer' | 'reformat' }>): Promise<void> {
  const { job } = message
  const life = new AbortController()
  jobs.set(job, life)
  let outcome: JobResult
  if (message.do === 'answer') outcome = await answer(job, message.request, life.signal)
  else {
    const told: Told = { warnings: [], named: undefined, annotations: undefined, requested: undefined }
    try {
      outcome = { is: 'answer', answer: reformat(message.answer, message.form), ...told }
    } catch (error) {
      outcome = refusal(error, told)
    }
  }
  jobs.delete(job)
  if (outcome.is !== 'answer') {
    tell({ is: 'done', job, outcome })
    return
  }
  // A copy, because the answer may be a cached object.
  const body = owned(outcome.answer.body)
  tell({ is: 'done', job, outcome: { ...outcome, answer: { ...outcome.answer, body } } }, [body.buffer])
}

function written(write: number, result: WriteResult): void {
  const waiting = writes.get(write)
  writes.delete(write)
  if (result.is === 'written') waiting?.resolve(result)
  else
    waiting?.reject(
      result.is === 'store error' ? new StoreError(result.code, result.message) : new Error(result.message),
    )
}

/**
 * Tells the watchdog which job computes from now on. A job computes only after a message (its own, or the result of a
 * write or call), within the microtasks of that message.
 */
function computes(job: number): void {
  Atomics.store(progress, 0, job)
  Atomics.add(progress, 1, 1)
  setImmediate(rests)
}

/** Tells the watchdog that no job computes: between two messages none does. */
function rests(): void {
  Atomics.store(progress, 0, 0)
}

port.on('message', (message: ToWorker) => {
  if (message.do === 'abort') jobs.get(message.job)?.abort(new DOMException('nobody waits for it', 'AbortError'))
  else if (message.do === 'written') {
    computes(writes.get(message.write)?.job ?? 0)
    written(message.write, message.result)
  } else if (message.do === 'posted') {
    computes(posts.get(message.post)?.job ?? 0)
    posted(message.post, message.result)
  } else {
    computes(message.job)
    void run(message)
  }
})
