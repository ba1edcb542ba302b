// `/transfer` of a logical cluster: the steps of its move from or to another installation, the objects that changed
// since a revision, and digests that show whether both ends have the same.
import { hash, timingSafeEqual } from 'node:crypto'
import {
  compareText,
  isJsonObject,
  zeroRevision,
  type KubeObject,
  type ObjectMeta,
  type Revision,
} from '#apimachinery/meta/index.ts'
import {
  badRequest,
  conflict,
  forbidden,
  methodNotServed,
  pathNotFound,
  type StatusError,
} from '#apimachinery/status/index.ts'
import { timestamp } from '#async/index.ts'
import {
  exportedFromLabel,
  isOwnAnnotation,
  isOwnFinalizer,
  isPlaceable,
  memberAnnotation,
  projectedAnnotation,
  syncerFinalizerPrefix,
} from '#crds/index.ts'
import {
  transferDigestsPath,
  transferObjectsPath,
  transferPath,
  type ObjectPlace,
  type TransferDigests,
  type TransferLine,
  type TransferState,
  type TransferStep,
} from '#snapshot/index.ts'
import { isStoreError } from '#store/index.ts'
import type { ClusterObjects, Entry } from '#store/watch-cache/index.ts'
import { decodeBody } from '#virtualapi/codec/read-object.ts'
import { jsonDocument } from '#virtualapi/codec/responses.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import { asBuffer, decodeObject, encodeObject, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ApiResponse, Exchange } from '#virtualapi/request/exchange.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { frozenMark, markOf, markValue, thaw, type FrozenMark } from '#virtualapi/endpoints/forwarded/transfer-marks.ts'
import { givingWay, servedResources } from './snapshot.ts'

const maxStallMs = 60_000
/** Most seconds for which a source may refuse writes before it takes them again. */
const maxClosedSeconds = 120
/** Revisions of the source that its lists may have shown after the last write. */
const revisionSlack = 10_000

export async function transfer(
  exchange: Exchange,
  cluster: LogicalCluster,
  dependencies: EndpointDependencies,
): Promise<ApiResponse> {
  const { info, signal } = exchange
  const { method, target } = info
  const path = target.kind === 'path' ? target.path : ''
  const objects = await dependencies.watchCache.cluster(cluster.id, { signal })
  if (method === 'POST' && path === transferPath) return await step(exchange, { cluster, objects, dependencies })
  requireInstallation(exchange, cluster)
  if (method !== 'GET') throw methodNotServed()
  if (path === transferPath) return jsonDocument(stateOf(objects))
  if (path === transferObjectsPath) return await changedObjects(exchange, objects, dependencies)
  if (path === transferDigestsPath) return await digests(exchange, objects)
  throw pathNotFound()
}

function requireInstallation({ user }: Exchange, { name }: LogicalCluster): void {
  if (user.realm.kind !== 'installation')
    throw forbidden(logicalClusterResource, name, 'only admins of the installation move logical clusters: kcp transfer')
}

const logicalClusterResource = { group: 'kcp.dev', resource: 'logicalclusters' }

function stateOf(objects: ClusterObjects): TransferState {
  const revision = objects.revision()
  const frozen = frozenMark(objects)
  if (frozen !== undefined) return { phase: frozen.committed === true ? 'Moved' : 'Closed', id: frozen.id, revision }
  const [resumed, receiving] = [markOf(objects, 'resumed'), markOf(objects, 'receiving')]
  if (resumed !== undefined) return { phase: 'Open', id: resumed.id, revision }
  return receiving === undefined ? { phase: 'None', revision } : { phase: 'Receiving', id: receiving.id, revision }
}

interface Moving {
  readonly cluster: LogicalCluster
  readonly objects: ClusterObjects
  readonly dependencies: EndpointDependencies
}

async function step(exchange: Exchange, moving: Moving): Promise<ApiResponse> {
  const { cluster, objects, dependencies } = moving
  const asked = stepOf(decodeBody(await exchange.request.body(), undefined).value)
  // The source opens the target as an admin of the logical cluster, who proves with a key that the move is over.
  if (asked.do !== 'open') requireInstallation(exchange, cluster)
  try {
    switch (asked.do) {
      case 'receive':
        await receive(asked, exchange, moving)
        break
      case 'open':
        await open(asked, exchange, moving)
        break
      case 'close':
        await close(asked, exchange, moving)
        break
      case 'reopen':
        await reopen(asked, exchange, moving)
        break
      case 'commit':
        await commit(asked, exchange, moving)
        return jsonDocument({ ...stateOf(objects), opened: await dependencies.moved.tryOpen(cluster, exchange.signal) })
    }
  } catch (error) {
    const isLost = ['KeyExists', 'KeyMissing', 'RevisionMismatch'].some(
      (code) => isStoreError(error) && error.code === code,
    )
    throw isLost ? refusal(cluster, 'another command changed the move at the same time') : error
  }
  return jsonDocument(stateOf(objects))
}

function stepOf(value: unknown): TransferStep {
  const { do: what, id, run, above, seconds, key } = isJsonObject(value) ? value : {}
  const isNumber = (one: unknown): boolean => typeof one === 'number' && Number.isSafeInteger(one) && one >= 0
  const fields: Readonly<Record<string, boolean>> = {
    receive: typeof run === 'string' && isNumber(above),
    close: typeof run === 'string' && isNumber(seconds) && seconds !== 0 && (seconds as number) <= maxClosedSeconds,
    reopen: run === undefined || typeof run === 'string',
    commit: typeof run === 'string',
    open: typeof key === 'string' && isNumber(above),
  }
  if (typeof id !== 'string' || id === '' || typeof what !== 'string' || fields[what] !== true)
    throw badRequest('the body must be a step of a move: receive, close, reopen, commit or open, with its fields')
  return value as TransferStep
}

function refusal({ name }: LogicalCluster, message: string): StatusError {
  return conflict(logicalClusterResource, name, message)
}

/** Only a LogicalCluster whose note names the move takes part in it. */
function requireNote({ cluster }: Moving, role: 'source' | 'target', id: string): void {
  const note = cluster.transfer
  if (note?.role === role && note.id === id) return
  throw refusal(cluster, `its annotation kcp.dev/transfer does not name this move as its ${role}`)
}

async function receive(
  { id, run, above }: Extract<TransferStep, { do: 'receive' }>,
  { signal }: Exchange,
  moving: Moving,
): Promise<void> {
  const { objects, cluster } = moving
  requireNote(moving, 'target', id)
  if (objects.mark('resumed') !== undefined) throw refusal(cluster, 'it is open already')
  const [value, now] = [markValue('receiving', { id, run }), objects.mark('receiving')]
  if (now !== undefined) await objects.removeMark('receiving', { ifRevision: now.revision, signal })
  await objects.setMark('receiving', value, { above: above as Revision, signal })
}

async function open(
  { id, key, above }: Extract<TransferStep, { do: 'open' }>,
  { signal }: Exchange,
  moving: Moving,
): Promise<void> {
  const { objects, cluster } = moving
  if (markOf(objects, 'resumed')?.id === id) return
  requireNote(moving, 'target', id)
  const wanted = Buffer.from(cluster.transfer?.keyHash ?? '', 'hex')
  const given = Buffer.from(hash('sha256', key), 'hex')
  if (wanted.length !== given.length || !timingSafeEqual(wanted, given))
    throw forbidden(logicalClusterResource, cluster.name, 'this is not the key of the move')
  const receiving = objects.mark('receiving')
  if (receiving === undefined) throw refusal(cluster, 'no objects have arrived')
  // From here on users are let in, and no objects are put. The source may say it twice at the same time.
  await objects
    .setMark('resumed', markValue('resumed', { id }), { above: above as Revision, signal })
    .catch((error: unknown) => {
      if (!isStoreError(error, 'KeyExists')) throw error
    })
  await objects.removeMark('receiving', { ifRevision: receiving.revision, signal }).catch((error: unknown) => {
    if (!isStoreError(error, 'KeyMissing')) throw error
  })
}

async function close(
  { id, run, seconds }: Extract<TransferStep, { do: 'close' }>,
  { signal }: Exchange,
  moving: Moving,
): Promise<void> {
  const { objects, cluster, dependencies } = moving
  requireNote(moving, 'source', id)
  if (frozenMark(objects)?.committed === true) throw refusal(cluster, 'it has moved already')
  // That of an earlier run, which cannot switch any more.
  await thaw(objects, signal)
  const until = timestamp(dependencies.clock.now() + seconds * 1000)
  const mark: FrozenMark = { id, run, until }
  const frozen = await objects.freeze(markValue('frozen', mark), { signal })
  // A command that ends in between must not leave the logical cluster closed.
  const timer = setTimeout(() => {
    const isSame = objects.mark('frozen')?.revision === frozen.revision
    if (isSame) void thaw(objects, new AbortController().signal).catch(() => undefined)
  }, seconds * 1000)
  timer.unref()
}

async function reopen(
  { id, run }: Extract<TransferStep, { do: 'reopen' }>,
  { signal }: Exchange,
  { objects, cluster }: Moving,
): Promise<void> {
  // Once this process knows that it is not to move, no run can close it any more.
  if (run === undefined && cluster.transfer?.id === id)
    throw refusal(cluster, 'its annotation kcp.dev/transfer still names this move')
  const frozen = frozenMark(objects)
  if (frozen === undefined || frozen.id !== id || (run !== undefined && frozen.run !== run)) return
  if (frozen.committed === true) throw refusal(cluster, 'it has moved already')
  await thaw(objects, signal)
}

async function commit(
  { id, run }: Extract<TransferStep, { do: 'commit' }>,
  { signal }: Exchange,
  moving: Moving,
): Promise<void> {
  const { objects, cluster, dependencies } = moving
  requireNote(moving, 'source', id)
  const [frozen, entry] = [frozenMark(objects), objects.mark('frozen')]
  if (frozen === undefined || entry === undefined || frozen.id !== id || frozen.run !== run)
    throw refusal(cluster, 'it takes writes again: the command was too slow')
  if (frozen.committed !== true) {
    if (dependencies.clock.now() >= Date.parse(frozen.until))
      throw refusal(cluster, 'it takes writes again: the command was too slow')
    const above = objects.revision() + revisionSlack
    const value: FrozenMark = { ...frozen, committed: true, above }
    await objects.replaceMark('frozen', markValue('frozen', value), { ifRevision: entry.revision, signal })
  }
  await dependencies.moved.leave(objects, signal)
}

// --- Objects ---

/** How many objects that do not go are named. */
const maxNamed = 5
/** Objects are sent together in chunks of about this many bytes. */
const chunkBytes = 64 * 1024

async function changedObjects(
  exchange: Exchange,
  objects: ClusterObjects,
  { catalog }: EndpointDependencies,
): Promise<ApiResponse> {
  const since = Number(exchange.info.query.get('since') ?? '0')
  if (!Number.isSafeInteger(since) || since < 0) throw badRequest('since must be a revision, or 0')
  const giveWay = givingWay(exchange)
  await catalog.compileInTurns(objects, async () => giveWay(), exchange.signal)
  // References only, without a pause: all are of one revision, and entries never change.
  const all = goingObjects(objects)
  const deleted: ObjectPlace[] = []
  for (const resource of servedResources(objects, catalog))
    for (const { namespace, name } of objects.hidden(resource)) deleted.push({ resource, namespace, name })
  const delta = { revision: objects.revision(), deleted, since }
  return {
    kind: 'stream',
    status: 200,
    headers: { 'content-type': 'application/x-ndjson' },
    chunks: chunked(lines(all, delta), giveWay),
    maxStallMs,
  }
}

/** Resources of which unwritten objects go too, because their uids are known elsewhere. */
const identities: readonly string[] = ['namespaces', 'serviceaccounts']

/** Everything that goes with the logical cluster, by resource. */
function goingObjects(objects: ClusterObjects): Map<string, readonly Entry[]> {
  const found = new Map<string, readonly Entry[]>()
  for (const [resource, entries] of objects.written()) found.set(resource, [...entries])
  for (const resource of identities) found.set(resource, [...objects.list({ resource })])
  return new Map([...found].sort(([a], [b]) => compareText(a, b)))
}

interface Delta {
  readonly revision: number
  readonly deleted: readonly ObjectPlace[]
  readonly since: number
}

/** The lines; an empty buffer for each object that did not change, so that the reader can pause between them. */
function* lines(all: ReadonlyMap<string, readonly Entry[]>, { since, ...head }: Delta): Generator<Buffer> {
  yield lineOf(head)
  let count = 0
  const held = { count: 0, some: [] as HeldObject[] }
  const names = new Map<string, string[]>()
  for (const [resource, entries] of all) {
    for (const entry of entries) {
      const { namespace, name } = entry.key
      const bytes = isOfInstallation(entry) ? undefined : asItGoes(entry)
      const why = whyHeld(entry)
      if (why !== undefined && ++held.count <= maxNamed) held.some.push({ resource, namespace, name, why })
      if (bytes === undefined) continue
      count++
      const place = `${resource}/${namespace}`
      const known = names.get(place)
      if (known === undefined) names.set(place, [name])
      else known.push(name)
      const isNew = entry.base ? since === 0 : entry.revision > since
      yield isNew
        ? Buffer.concat([Buffer.from(`{"resource":${JSON.stringify(resource)},"object":`), bytes, lineEnd])
        : none
    }
  }
  for (const [place, list] of names) {
    const [resource = '', namespace = ''] = place.split('/')
    yield lineOf({ resource, namespace, names: list })
  }
  yield lineOf({ objects: count, held })
}

type HeldObject = ObjectPlace & { readonly why: string }

const none = Buffer.alloc(0)
const lineEnd = Buffer.from('}\n')

function lineOf(line: TransferLine): Buffer {
  return Buffer.from(`${JSON.stringify(line)}\n`)
}

/** Parts that are made between two turns of the event loop. */
const partsAtOnce = 200

async function* chunked(parts: Iterable<Buffer>, turn: () => Promise<void> | undefined): AsyncGenerator<Uint8Array> {
  let held: Buffer[] = []
  let size = 0
  let count = 0
  for (const part of parts) {
    held.push(part)
    size += part.length
    const isFull = size >= chunkBytes
    if (isFull) {
      yield Buffer.concat(held, size)
      ;[held, size] = [[], 0]
    }
    if (isFull || ++count % partsAtOnce === 0) await turn()
  }
  if (size > 0) yield Buffer.concat(held, size)
}

/** What every installation makes for itself: its own authority. */
function isOfInstallation({ key: { resource, name } }: Entry): boolean {
  return resource === 'configmaps' && name === 'kube-root-ca.crt'
}

const ownMark = Buffer.from('kcp.dev/')
const tokenType = Buffer.from('"type":"kubernetes.io/service-account-token"')

/**
 * The object without what this installation and its members have written about it; undefined for one that they make
 * again. Most objects stay as they are, undecoded.
 */
function asItGoes({ key, bytes }: Entry): Uint8Array | undefined {
  const buffer = asBuffer(bytes)
  const isToken = key.resource === 'secrets' && buffer.includes(tokenType)
  if (!isToken && !buffer.includes(ownMark)) return bytes
  const object = decodeObject(bytes)
  const { annotations = {}, labels = {} } = object.metadata
  if (annotations[projectedAnnotation] !== undefined || labels[exportedFromLabel] !== undefined) return undefined
  const begun: KubeObject = { ...object, metadata: withoutOwn(object.metadata) }
  // A token is valid where it was issued; the other installation issues one for the same Secret.
  if (object['type'] === 'kubernetes.io/service-account-token') delete begun['data']
  return encodeObject(begun)
}

function withoutOwn({ annotations, finalizers, ...metadata }: ObjectMeta): ObjectMeta {
  const kept = Object.entries(annotations ?? {}).filter(([name]) => !isOwnAnnotation(name))
  const others = (finalizers ?? []).filter((finalizer) => !isOwnFinalizer(finalizer))
  return {
    ...metadata,
    ...(kept.length > 0 && { annotations: Object.fromEntries(kept) }),
    ...(others.length > 0 && { finalizers: others }),
  }
}

/** Resources whose objects share something with other logical clusters of the installation. */
const shared: ReadonlySet<string> = new Set(['apibindings.apis.kcp.io', 'apiexports.apis.kcp.io'])
const syncerMark = Buffer.from(syncerFinalizerPrefix)
const memberMark = Buffer.from(memberAnnotation)

/** Why the object would lose something on the way; undefined if it can go. */
function whyHeld({ key: { resource }, bytes }: Entry): string | undefined {
  return shared.has(resource) ? 'it is shared with other logical clusters' : whyPlaced(bytes)
}

function whyPlaced(bytes: Uint8Array): string | undefined {
  const buffer = asBuffer(bytes)
  const mayBe = buffer.includes(syncerMark) || buffer.includes(memberMark)
  if (!mayBe) return undefined
  const object = decodeObject(bytes)
  const { finalizers = [], annotations = {}, labels = {} } = object.metadata
  if (finalizers.some((finalizer) => finalizer.startsWith(syncerFinalizerPrefix))) return 'it is in a member cluster'
  const isOfMember = annotations[memberAnnotation] !== undefined || labels[memberAnnotation] !== undefined
  return isOfMember && annotations[projectedAnnotation] === undefined && !isPlaceable(object)
    ? 'a member cluster made it'
    : undefined
}

/** Resources whose objects come and go by themselves. */
const fleeting: ReadonlySet<string> = new Set(['events', 'events.events.k8s.io'])
/** The digest does not depend on an order: it is the XOR of the SHA-256 of the objects, whose places differ. */
async function digests(exchange: Exchange, objects: ClusterObjects): Promise<ApiResponse> {
  const all = goingObjects(objects)
  const giveWay = givingWay(exchange)
  const resources: Record<string, { objects: number; sha256: string }> = {}
  const revision = objects.revision()
  for (const [resource, entries] of all) {
    if (fleeting.has(resource)) continue
    const sum = Buffer.alloc(32)
    let count = 0
    for (const entry of entries) {
      const bytes = isOfInstallation(entry) ? undefined : asItGoes(entry)
      if (bytes === undefined) continue
      const one = hash('sha256', stampRevision(bytes, zeroRevision), 'buffer')
      for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] ?? 0) ^ (one[i] ?? 0)
      if (++count % partsAtOnce === 0) await giveWay()
    }
    if (count > 0) resources[resource] = { objects: count, sha256: sum.toString('hex') }
  }
  return jsonDocument({ revision, resources } satisfies TransferDigests)
}
