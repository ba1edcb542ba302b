// Puts the objects of a snapshot into a logical cluster: another one, or the one it was taken of. A restore that was
// broken off is run again and ends with the same objects.
import { isDeepStrictEqual } from 'node:util'
import { yieldEvery, sleep } from '#async/index.ts'
import { parseApiVersion, type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import {
  forAnotherCluster,
  forSameCluster,
  leftOut,
  withVolume,
  uidInCluster,
  whatStays,
  type KeptVolume,
  type LeftOut,
} from './for-another-cluster.ts'
import {
  keyOf,
  maxObjectsRead,
  readSnapshot,
  SnapshotError,
  type ObjectPlace,
  type ReadLine,
  type SnapshotManifest,
} from './format.ts'

/** The path of a logical cluster's API that gives its snapshot (GET) and takes objects of one (POST). */
export const snapshotPath = '/snapshot'

/** The body of a POST: objects to be put exactly as they are, and objects that must not be there. */
export interface ObjectsToPut {
  readonly objects?: readonly { readonly resource: string; readonly object: KubeObject }[]
  readonly deletions?: readonly ObjectPlace[]
  /** True: an object that its kind does not allow is refused. `kind`: only one whose kind is not served. */
  readonly validate?: boolean | 'kind'
  /** True: an object that is there already is left alone, and the answer is 409. */
  readonly onlyNew?: boolean
  /** True: refused, with 409, when the logical cluster is open to its users. */
  readonly whileFilling?: boolean
  /** The run of `kcp transfer` that puts them: refused if another one has begun, or if the target is open. */
  readonly run?: string
}

/** The answer to a POST. */
export interface PutCounts {
  readonly created: number
  readonly updated: number
  readonly unchanged: number
  readonly deleted: number
}

/** The answer to GET `/snapshot?only=initial`: the objects with which the logical cluster begins, and their uids. */
export interface InitialObjects {
  readonly initial: readonly (ObjectPlace & { readonly uid: string })[]
}

/** Asks a logical cluster what it begins with. */
export async function initialObjects(client: KubeClient, signal: AbortSignal): Promise<InitialObjects> {
  return (await client.raw(`${snapshotPath}?only=initial`, { signal })) as InitialObjects
}

/**
 * The bytes of a snapshot. A function opens them anew each time, and they are the same: of a large snapshot, only the
 * objects of the next requests are then in memory, instead of all.
 */
export type SnapshotSource = AsyncIterable<Uint8Array> | (() => Promise<AsyncIterable<Uint8Array>>)

export interface RestoreOptions {
  /** The API of the logical cluster, as the installation. */
  readonly client: KubeClient
  /** Its id. */
  readonly id: string
  /** False for objects that this installation itself has just read: they are not validated again. */
  readonly validate: boolean
  /** True: objects keep their uids although the logical cluster has another id, because it takes the place of the old one. */
  readonly keepsUids?: boolean
  /** True: refused when the logical cluster is open to its users, who may have written since. */
  readonly whileFilling?: boolean
  /** What a logical cluster begins with that nobody has used yet: it is not asked then. */
  readonly beginning?: InitialObjects
  /** The volumes from which claims of the snapshot that are not there get new ones, by the uid of the claim. */
  readonly volumes?: ReadonlyMap<string, KeptVolume>
  /** Resources that are left alone. */
  readonly without?: readonly string[]
  /** Gets the number of objects that are put, from time to time. */
  readonly progress?: (done: number, all: number) => void
  readonly signal: AbortSignal
}

export interface Restored extends PutCounts {
  readonly manifest: SnapshotManifest
  /** How many objects of the snapshot were left out, by reason. */
  readonly leftOut: ReadonlyMap<LeftOut, number>
  /** How many claims get volumes from snapshots. */
  readonly volumes: number
}

/** What decides about the turn of an object of a snapshot, and its JSON if there is room for all. */
interface Indexed {
  readonly place: ObjectPlace
  readonly apiVersion: string
  readonly uid: string
  readonly owners: readonly string[]
  readonly leftOut: LeftOut | undefined
  /** Its number in the snapshot. */
  readonly at: number
  /** Bytes of its JSON. */
  readonly size: number
  bytes?: Buffer
}

interface Index {
  readonly manifest: SnapshotManifest
  readonly objects: Map<string, Indexed>
}

/**
 * Bytes of the objects of a snapshot that are in memory at the same time. More of a snapshot that would be read more than
 * sixteen times, up to a bound.
 */
const heldBytes = 16 * 1024 * 1024
const maxReads = 16
const maxHeldBytes = 128 * 1024 * 1024

/** A snapshot that was read to its end: whole, and ready to be put. */
export interface SnapshotToPut {
  readonly manifest: SnapshotManifest
  /** Rejects with StatusError for an object that the logical cluster refuses. */
  put(options: RestoreOptions): Promise<Restored>
}

/**
 * Reads a snapshot to its end. Rejects with SnapshotError if it is not whole. `atOnce`: bytes of objects that are in
 * memory at the same time, if the source is a function.
 */
export async function openSnapshotToPut(
  source: SnapshotSource,
  { signal, atOnce = heldBytes }: { readonly signal: AbortSignal; readonly atOnce?: number },
): Promise<SnapshotToPut> {
  const pause = yieldEvery(5, signal)
  const open = typeof source === 'function' ? source : undefined
  const bytes = typeof source === 'function' ? await source() : source
  const snapshot = await readIndex(bytes, { keep: open === undefined ? Infinity : atOnce, pause })
  const { manifest, objects } = snapshot
  let bytesOfAll = 0
  for (const { size } of objects.values()) bytesOfAll += size
  const held = Math.max(atOnce, Math.min(maxHeldBytes, bytesOfAll / maxReads))
  const inOrder: InOrder = (kept) => bytesInOrder(kept, { open, atOnce: held, manifest })
  return { manifest, put: (options) => putSnapshot(snapshot, inOrder, options) }
}

/** The JSON of each of the objects, in their order. */
type InOrder = (kept: readonly Indexed[]) => AsyncIterable<[Indexed, Buffer]>

/**
 * Restores a snapshot, which is read to its end before anything is written. Rejects with SnapshotError for a snapshot
 * that is not whole, with StatusError for an object that the logical cluster refuses.
 */
export async function restoreSnapshot(source: SnapshotSource, options: RestoreOptions): Promise<Restored> {
  const snapshot = await openSnapshotToPut(source, options)
  return await snapshot.put(options)
}

async function putSnapshot(snapshot: Index, inOrder: InOrder, options: RestoreOptions): Promise<Restored> {
  const { client, id, keepsUids = false, without = [], beginning, volumes, signal } = options
  const pause = yieldEvery(5, signal)
  const isSame = snapshot.manifest.logicalCluster.id === id
  const now =
    isSame && beginning === undefined
      ? await readPresent(options, pause)
      : begun(beginning ?? (await initialObjects(client, signal)))
  if (isSame) await deleteSurplus(snapshot, now, options)
  const uids = isSame || keepsUids ? new Map<string, string>() : await newUids(snapshot, now, id, pause)
  const kept: Indexed[] = []
  const left = new Map<LeftOut, number>()
  const untouched = new Set(snapshot.manifest.initial.map(keyOf))
  const restored = new Map<string, KeptVolume>()
  for (const object of await ownersFirst(snapshot.objects.values(), pause)) {
    await pause()
    const key = keyOf(object.place)
    if (without.includes(object.place.resource)) continue
    // Members know an installation by the uid of this namespace.
    const isIdentity = keepsUids && key === 'namespaces//kube-system'
    if (untouched.has(key) && now.initial.has(key) && !isIdentity) continue
    const volume = volumeFor(object, now.objects.get(key), volumes)
    if (volume !== undefined) restored.set(key, volume)
    if (object.leftOut === undefined || volume !== undefined) kept.push(object)
    else left.set(object.leftOut, (left.get(object.leftOut) ?? 0) + 1)
  }
  const prepared = ({ place }: Indexed, bytes: Buffer): KubeObject => {
    const object = decode(bytes)
    const ready = isSame ? forSameCluster(object, now.kept.get(keyOf(place))) : forAnotherCluster(object, uids)
    const volume = restored.get(keyOf(place))
    return volume === undefined ? ready : withVolume(ready, volume)
  }
  const objects = { kept, bytes: inOrder(kept), prepared, deletions: snapshot.manifest.deleted }
  const counts = await putAll(objects, options, pause)
  return { ...counts, manifest: snapshot.manifest, leftOut: left, volumes: restored.size }
}

/**
 * The volume that the claim gets; undefined if it gets none, or has one now. A claim that a member had made is put with
 * its volume, because the member would make it anew without. A claim of another uid was deleted before, if it is not one
 * that a member or the installation makes.
 */
function volumeFor(
  { place, uid, leftOut: why }: Indexed,
  present: Indexed | undefined,
  volumes: RestoreOptions['volumes'],
): KeptVolume | undefined {
  if (volumes === undefined || place.resource !== 'persistentvolumeclaims') return undefined
  const isThere = present !== undefined && (present.uid === uid || present.leftOut !== undefined)
  if (isThere || (why !== undefined && why !== 'a member makes it again')) return undefined
  return volumes.get(uid)
}

function decode(bytes: Buffer): KubeObject {
  return parseJsonText(bytes.toString()) as unknown as KubeObject
}

/** `keep`: how many bytes of objects are kept in memory; of a snapshot with more, none are. */
async function readIndex(
  source: AsyncIterable<Uint8Array>,
  { keep, pause, each }: { keep: number; pause: Pause; each?: (key: string, object: KubeObject) => void },
): Promise<Index> {
  let manifest: SnapshotManifest | undefined
  const objects = new Map<string, Indexed>()
  const shared = new Map<string, string>()
  let left = keep
  for await (const item of readSnapshot(source)) {
    if ('manifest' in item) {
      manifest = item.manifest
      continue
    }
    if (objects.size >= maxObjectsRead) throw new SnapshotError(`it has more than ${maxObjectsRead} objects`)
    const object = objectOf(item)
    const indexed = indexedOf(item, object, { at: objects.size, shared })
    const isFirstTooMuch = left >= 0 && left < indexed.size
    left -= indexed.size
    if (left >= 0) indexed.bytes = item.bytes
    else if (isFirstTooMuch) for (const one of objects.values()) delete one.bytes
    const key = keyOf(indexed.place)
    if (objects.has(key)) throw new SnapshotError(`it has ${indexed.place.resource} ${key} twice`)
    objects.set(key, indexed)
    each?.(key, object)
    await pause()
  }
  if (manifest === undefined) throw new SnapshotError('it is empty')
  return { manifest, objects }
}

function objectOf({ resource, bytes }: ReadLine): KubeObject {
  let object: KubeObject
  try {
    object = decode(bytes)
  } catch (error) {
    throw new SnapshotError(`an object of ${resource} is not JSON: ${(error as Error).message}`, { cause: error })
  }
  const { name, uid } = (object.metadata as KubeObject['metadata'] | undefined) ?? {}
  if (typeof name !== 'string' || typeof uid !== 'string' || typeof object.kind !== 'string' || !object.apiVersion)
    throw new SnapshotError(`an object of ${resource} has no kind, apiVersion, name or uid`)
  return object
}

/** `shared`: texts that many objects have, each once, because a parser makes a string of its own for each of them. */
function indexedOf(
  { resource, bytes }: ReadLine,
  object: KubeObject,
  { at, shared }: { at: number; shared: Map<string, string> },
): Indexed {
  const once = (text: string): string => {
    const known = shared.get(text)
    if (known === undefined) shared.set(text, text)
    return known ?? text
  }
  const { namespace = '', name = '', uid = '', ownerReferences = [] } = object.metadata
  return {
    place: { resource, namespace: once(namespace), name },
    apiVersion: once(object.apiVersion),
    uid,
    owners: ownerReferences.map((owner) => once(owner.uid)),
    leftOut: leftOut(object),
    at,
    size: bytes.length,
  }
}

/** What a logical cluster has before the restore. */
interface Present {
  /** The objects with which it began and that nobody has changed, and their uids. */
  readonly initial: ReadonlyMap<string, string>
  readonly objects: ReadonlyMap<string, Indexed>
  /** What stays of an object that has the same uid in the snapshot, by key. */
  readonly kept: ReadonlyMap<string, KubeObject>
}

function begun({ initial }: InitialObjects): Present {
  return { initial: new Map(initial.map((one) => [keyOf(one), one.uid])), objects: new Map(), kept: new Map() }
}

async function readPresent({ client, signal }: RestoreOptions, pause: Pause): Promise<Present> {
  const kept = new Map<string, KubeObject>()
  const { manifest, objects } = await readIndex(await client.stream(snapshotPath, { signal }), {
    keep: 0,
    pause,
    each: (key, object) => {
      const stays = whatStays(object)
      if (stays !== undefined) kept.set(key, stays)
    },
  })
  const initial = manifest.initial.map((place): [string, string] => {
    const key = keyOf(place)
    return [key, objects.get(key)?.uid ?? '']
  })
  return { initial: new Map(initial), objects, kept }
}

/** The new uid of each object: that of the object that is in its place from the beginning, or one derived from both. */
async function newUids(snapshot: Index, now: Present, id: string, pause: Pause): Promise<Map<string, string>> {
  const uids = new Map<string, string>()
  for (const [key, { uid }] of snapshot.objects) {
    uids.set(uid, now.initial.get(key) ?? uidInCluster(id, uid))
    await pause()
  }
  return uids
}

interface BytesInOrder {
  readonly open: (() => Promise<AsyncIterable<Uint8Array>>) | undefined
  readonly atOnce: number
  readonly manifest: SnapshotManifest
}

const changedText = 'it was changed while it was restored'

/**
 * The JSON of each object, in this order. Without memory for all, the snapshot is read once for each `atOnce` bytes of
 * them. Rejects with SnapshotError if it is not the same bytes again.
 */
async function* bytesInOrder(
  kept: readonly Indexed[],
  { open, atOnce, manifest }: BytesInOrder,
): AsyncGenerator<[Indexed, Buffer]> {
  for (let from = 0; from < kept.length;) {
    let [to, size] = [from, 0]
    while (to < kept.length && (to === from || size + (kept[to]?.size ?? 0) <= atOnce)) size += kept[to++]?.size ?? 0
    const wanted = kept.slice(from, to)
    const missing = new Set(wanted.filter(({ bytes }) => bytes === undefined).map(({ at }) => at))
    const found = missing.size === 0 || open === undefined ? undefined : await bytesAt(missing, await open(), manifest)
    for (const one of wanted) {
      const bytes = one.bytes ?? found?.get(one.at)
      if (bytes?.length !== one.size) throw new SnapshotError(changedText)
      yield [one, bytes]
    }
    from = to
  }
}

/** Rejects with SnapshotError if this is another snapshot: its manifest names the logical cluster and the revision. */
async function bytesAt(
  numbers: ReadonlySet<number>,
  source: AsyncIterable<Uint8Array>,
  manifest: SnapshotManifest,
): Promise<Map<number, Buffer>> {
  const found = new Map<number, Buffer>()
  let at = 0
  for await (const item of readSnapshot(source)) {
    if ('manifest' in item) {
      if (!isDeepStrictEqual(item.manifest, manifest)) throw new SnapshotError(changedText)
      continue
    }
    if (numbers.has(at)) found.set(at, item.bytes)
    at++
  }
  return found
}

/** Resources whose objects are put first; each definition in a request of its own. */
export const firstResources = ['customresourcedefinitions.apiextensions.k8s.io', 'namespaces']

/** What decides about the turn of an object. */
interface Owned {
  readonly place: ObjectPlace
  readonly uid: string
  /** Uids of its owners. */
  readonly owners: readonly string[]
}

/** Lets other work run between two objects of a long loop, if it is time: the result of `yieldEvery`. */
export type Pause = () => Promise<void> | undefined

/** Definitions, then namespaces, then every owner before what it owns: the garbage collector finds all owners. */
export async function ownersFirst<T extends Owned>(objects: Iterable<T>, pause: Pause): Promise<T[]> {
  const byUid = new Map<string, T>()
  const ranks: T[][] = [...firstResources.map(() => []), []]
  for (const one of objects) {
    byUid.set(one.uid, one)
    const rank = firstResources.indexOf(one.place.resource)
    ranks.at(rank)?.push(one)
    await pause()
  }
  const done = new Set<T>()
  const result: T[] = []
  const onStack = new Set<T>()
  // Iterative, because a chain of owners may be as long as the snapshot.
  for (const root of ranks.flat()) {
    const stack: { one: T; next: number }[] = [{ one: root, next: 0 }]
    onStack.add(root)
    while (stack.length > 0) {
      const top = stack.at(-1) as { one: T; next: number }
      const uid = top.one.owners[top.next++]
      if (uid === undefined) {
        stack.pop()
        onStack.delete(top.one)
        if (!done.has(top.one)) result.push(top.one)
        done.add(top.one)
        continue
      }
      const owner = byUid.get(uid)
      if (owner === undefined || done.has(owner) || onStack.has(owner)) continue
      onStack.add(owner)
      stack.push({ one: owner, next: 0 })
    }
    await pause()
  }
  return result
}

/** Bounds of one request, so that it holds up others for a few milliseconds only. */
export const [batchBytes, batchObjects] = [128 * 1024, 100]

/**
 * Divides objects into requests. A large object goes alone: with others before it, a request could be larger than
 * requests may be. A definition ends its request: it is served before objects of its kind are put.
 */
export async function* inBatches<T>(
  objects: AsyncIterable<T> | Iterable<T>,
  about: (object: T) => { readonly resource: string; readonly bytes: number },
): AsyncGenerator<T[]> {
  let [batch, size]: [T[], number] = [[], 0]
  for await (const object of objects) {
    const { resource, bytes } = about(object)
    if (batch.length > 0 && size + bytes > batchBytes) {
      yield batch
      ;[batch, size] = [[], 0]
    }
    batch.push(object)
    size += bytes
    if (size < batchBytes && batch.length < batchObjects && resource !== firstResources[0]) continue
    yield batch
    ;[batch, size] = [[], 0]
  }
  if (batch.length > 0) yield batch
}

interface ObjectsInOrder {
  readonly kept: readonly Indexed[]
  readonly bytes: AsyncIterable<[Indexed, Buffer]>
  readonly prepared: (indexed: Indexed, bytes: Buffer) => KubeObject
  readonly deletions: readonly ObjectPlace[]
}

async function putAll(
  { kept, bytes, prepared, deletions }: ObjectsInOrder,
  { client, validate, whileFilling, progress, signal }: RestoreOptions,
  pause: Pause,
): Promise<PutCounts> {
  const sum = { created: 0, updated: 0, unchanged: 0, deleted: 0 }
  const put = async (body: ObjectsToPut): Promise<void> => {
    const counts = (await client.raw(snapshotPath, {
      method: 'POST',
      body: { ...body, whileFilling },
      signal,
    })) as PutCounts
    for (const name of Object.keys(sum) as (keyof PutCounts)[]) sum[name] += counts[name]
  }
  let done = 0
  for await (const batch of inBatches(bytes, ([one, json]) => ({ ...one.place, bytes: json.length }))) {
    const objects: { resource: string; object: KubeObject }[] = []
    for (const [one, json] of batch) {
      objects.push({ resource: one.place.resource, object: prepared(one, json) })
      await pause()
    }
    await put({ objects, validate })
    done += objects.length
    progress?.(done, kept.length)
  }
  if (deletions.length > 0) await put({ deletions })
  progress?.(kept.length, kept.length)
  return sum
}

const parallelDeletions = 16
const goneWithinMs = 120_000

/**
 * Deletes what is there now and was not there then, as its users would: finalizers run, and members end what runs. Waits
 * until it is gone. What members and the installation make stays.
 */
async function deleteSurplus(snapshot: Index, now: Present, { client, signal }: RestoreOptions): Promise<void> {
  const surplus = [...now.objects].filter(([key, held]) => {
    const then = snapshot.objects.get(key)
    return (then === undefined || then.uid !== held.uid) && held.leftOut === undefined
  })
  // What lies in namespaces first, definitions and namespaces last.
  const later = (held: Indexed): number => Number(firstResources.includes(held.place.resource))
  const waiting = surplus.map(([, held]) => held).sort((a, b) => later(b) - later(a))
  const left: Indexed[] = []
  const deleteNext = async (): Promise<void> => {
    for (let held = waiting.pop(); held !== undefined; held = waiting.pop()) {
      const { gvr, ref } = addressOf(held)
      await client
        .delete(gvr, ref, { uid: held.uid, propagationPolicy: 'Background', signal })
        .catch(tolerate('NotFound', 'Conflict', 'MethodNotAllowed'))
      left.push(held)
    }
  }
  await Promise.all(Array.from({ length: parallelDeletions }, deleteNext))
  const until = Date.now() + goneWithinMs
  for (const held of left) {
    const { gvr, ref } = addressOf(held)
    for (;;) {
      const there = await client.get<KubeObject>(gvr, ref, { signal }).catch((error: unknown) => {
        if (isStatusError(error, 'NotFound')) return undefined
        throw error
      })
      if (there === undefined || there.metadata.uid !== held.uid) break
      if (Date.now() > until)
        throw new SnapshotError(
          `${held.place.resource} ${[ref.namespace, ref.name].filter(Boolean).join('/')} is not in the snapshot and does not go: ${heldText(there)}`,
        )
      await sleep(100, signal)
    }
  }
}

function heldText({ metadata: { finalizers = [], deletionTimestamp } }: KubeObject): string {
  if (deletionTimestamp === undefined) return 'it cannot be deleted'
  return finalizers.length === 0 ? 'it is being deleted' : `its finalizers hold it: ${finalizers.join(', ')}`
}

function addressOf({ place: { resource, namespace, name }, apiVersion }: Indexed): {
  gvr: GroupVersionResource
  ref: { name: string; namespace?: string }
} {
  const [plural = ''] = resource.split('.', 1)
  const gvr = { ...parseApiVersion(apiVersion), resource: plural }
  return { gvr, ref: namespace === '' ? { name } : { name, namespace } }
}
