// Puts the objects of a snapshot into a logical cluster: another one, or the one it was taken of. A restore that was
// broken off is run again and ends with the same objects.
import { yieldEvery, sleep } from '#async/index.ts'
import { parseApiVersion, type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { forAnotherCluster, forSameCluster, leftOut, uidInCluster, type LeftOut } from './for-another-cluster.ts'
import {
  keyOf,
  maxObjectsRead,
  readSnapshot,
  SnapshotError,
  type ObjectPlace,
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

export interface RestoreOptions {
  /** The API of the logical cluster, as the installation. */
  readonly client: KubeClient
  /** Its id. */
  readonly id: string
  /** False for objects that this installation itself has just read: they are not validated again. */
  readonly validate: boolean
  /** True: objects keep their uids although the logical cluster has another id, because it takes the place of the old one. */
  readonly keepsUids?: boolean
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
}

/** An object in memory: its JSON, and what decides about its turn. */
interface Held {
  readonly place: ObjectPlace
  readonly bytes: Buffer
  readonly uid: string
  readonly owners: readonly string[]
  readonly leftOut: LeftOut | undefined
}

interface Read {
  readonly manifest: SnapshotManifest
  readonly objects: Map<string, Held>
}

/**
 * Restores a snapshot, which is read to its end before anything is written. Rejects with SnapshotError for a snapshot
 * that is not whole, with StatusError for an object that the logical cluster refuses.
 */
export async function restoreSnapshot(source: AsyncIterable<Uint8Array>, options: RestoreOptions): Promise<Restored> {
  const { client, id, keepsUids = false, without = [], signal } = options
  const pause = yieldEvery(5, signal)
  const snapshot = await readAll(source, pause)
  const now = await readAll(await client.stream(snapshotPath, { signal }), pause)
  const isSame = snapshot.manifest.logicalCluster.id === id
  const initial = new Set(now.manifest.initial.map(keyOf))
  if (isSame) await deleteSurplus(snapshot, now, options)
  const uids = isSame || keepsUids ? new Map<string, string>() : newUids(snapshot, now, id)
  const kept: Held[] = []
  const left = new Map<LeftOut, number>()
  const untouched = new Set(snapshot.manifest.initial.map(keyOf))
  for (const held of ownersFirst(snapshot.objects.values())) {
    const key = keyOf(held.place)
    if (without.includes(held.place.resource)) continue
    // Members know an installation by the uid of this namespace.
    const isIdentity = keepsUids && key === 'namespaces//kube-system'
    if (untouched.has(key) && initial.has(key) && !isIdentity) continue
    if (held.leftOut === undefined) kept.push(held)
    else left.set(held.leftOut, (left.get(held.leftOut) ?? 0) + 1)
  }
  const prepared = (held: Held): KubeObject => {
    const object = decode(held.bytes)
    if (!isSame) return forAnotherCluster(object, uids)
    const present = now.objects.get(keyOf(held.place))
    return forSameCluster(object, present && decode(present.bytes))
  }
  const counts = await putAll(kept, prepared, { ...options, deletions: snapshot.manifest.deleted, pause })
  return { ...counts, manifest: snapshot.manifest, leftOut: left }
}

function decode(bytes: Buffer): KubeObject {
  return parseJsonText(bytes.toString()) as unknown as KubeObject
}

async function readAll(source: AsyncIterable<Uint8Array>, pause: () => Promise<void> | undefined): Promise<Read> {
  let manifest: SnapshotManifest | undefined
  const objects = new Map<string, Held>()
  for await (const item of readSnapshot(source)) {
    if ('manifest' in item) {
      manifest = item.manifest
      continue
    }
    const held = heldOf(item)
    if (objects.size >= maxObjectsRead) throw new SnapshotError(`it has more than ${maxObjectsRead} objects`)
    objects.set(keyOf(held.place), held)
    await pause()
  }
  if (manifest === undefined) throw new SnapshotError('it is empty')
  return { manifest, objects }
}

function heldOf({ resource, bytes }: { readonly resource: string; readonly bytes: Buffer }): Held {
  let object: KubeObject
  try {
    object = decode(bytes)
  } catch (error) {
    throw new SnapshotError(`an object of ${resource} is not JSON: ${(error as Error).message}`, { cause: error })
  }
  const {
    namespace = '',
    name,
    uid,
    ownerReferences = [],
  } = (object.metadata as KubeObject['metadata'] | undefined) ?? {}
  if (typeof name !== 'string' || typeof uid !== 'string' || typeof object.kind !== 'string' || !object.apiVersion)
    throw new SnapshotError(`an object of ${resource} has no kind, apiVersion, name or uid`)
  const owners = ownerReferences.map((owner) => owner.uid)
  return { place: { resource, namespace, name }, bytes, uid, owners, leftOut: leftOut(object) }
}

/** The new uid of each object: that of the object that is in its place from the beginning, or one derived from both. */
function newUids(snapshot: Read, now: Read, id: string): Map<string, string> {
  const uids = new Map<string, string>()
  const initial = new Set(now.manifest.initial.map(keyOf))
  for (const [key, { uid }] of snapshot.objects) {
    const present = initial.has(key) ? now.objects.get(key)?.uid : undefined
    uids.set(uid, present ?? uidInCluster(id, uid))
  }
  return uids
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

/** Definitions, then namespaces, then every owner before what it owns: the garbage collector finds all owners. */
export function ownersFirst<T extends Owned>(objects: Iterable<T>): T[] {
  const all = [...objects]
  const byUid = new Map<string, T>()
  for (const held of all) byUid.set(held.uid, held)
  const rank = ({ place }: T): number => {
    const at = firstResources.indexOf(place.resource)
    return at < 0 ? firstResources.length : at
  }
  const sorted = all.sort((a, b) => rank(a) - rank(b))
  const done = new Set<T>()
  const result: T[] = []
  // Iterative, because a chain of owners may be as long as the snapshot.
  for (const root of sorted) {
    const stack: { held: T; next: number }[] = [{ held: root, next: 0 }]
    const onStack = new Set<T>([root])
    while (stack.length > 0) {
      const top = stack.at(-1) as { held: T; next: number }
      const owner = top.held.owners[top.next++]
      if (owner === undefined) {
        stack.pop()
        onStack.delete(top.held)
        if (!done.has(top.held)) result.push(top.held)
        done.add(top.held)
        continue
      }
      const held = byUid.get(owner)
      if (held === undefined || done.has(held) || onStack.has(held)) continue
      onStack.add(held)
      stack.push({ held, next: 0 })
    }
  }
  return result
}

/** Bounds of one request, so that it holds up others for a few milliseconds only. */
export const [batchBytes, batchObjects] = [128 * 1024, 100]

async function putAll(
  kept: readonly Held[],
  prepared: (held: Held) => KubeObject,
  {
    client,
    validate,
    progress,
    signal,
    deletions,
    pause,
  }: RestoreOptions & { readonly deletions: readonly ObjectPlace[]; readonly pause: () => Promise<void> | undefined },
): Promise<PutCounts> {
  const sum = { created: 0, updated: 0, unchanged: 0, deleted: 0 }
  const put = async (body: ObjectsToPut): Promise<void> => {
    const counts = (await client.raw(snapshotPath, { method: 'POST', body, signal })) as PutCounts
    for (const name of Object.keys(sum) as (keyof PutCounts)[]) sum[name] += counts[name]
  }
  let objects: { resource: string; object: KubeObject }[] = []
  let bytes = 0
  let done = 0
  for (const held of kept) {
    objects.push({ resource: held.place.resource, object: prepared(held) })
    bytes += held.bytes.length
    // Definitions are served before objects of their kinds are put.
    const isLastDefinition = held.place.resource === firstResources[0]
    if (bytes >= batchBytes || objects.length >= batchObjects || isLastDefinition) {
      await put({ objects, validate })
      done += objects.length
      progress?.(done, kept.length)
      ;[objects, bytes] = [[], 0]
    }
    await pause()
  }
  await put({ objects, validate, deletions })
  progress?.(kept.length, kept.length)
  return sum
}

const parallelDeletions = 16
const goneWithinMs = 120_000

/**
 * Deletes what is there now and was not there then, as its users would: finalizers run, and members end what runs. Waits
 * until it is gone. What members and the installation make stays.
 */
async function deleteSurplus(snapshot: Read, now: Read, { client, signal }: RestoreOptions): Promise<void> {
  const surplus = [...now.objects].filter(([key, held]) => {
    const then = snapshot.objects.get(key)
    return (then === undefined || then.uid !== held.uid) && held.leftOut === undefined
  })
  // What lies in namespaces first, definitions and namespaces last.
  const later = (held: Held): number => Number(firstResources.includes(held.place.resource))
  const waiting = surplus.map(([, held]) => held).sort((a, b) => later(b) - later(a))
  const left: Held[] = []
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

function addressOf({ place, bytes }: Held): {
  gvr: GroupVersionResource
  ref: { name: string; namespace?: string }
} {
  const { resource, namespace, name } = place
  const [plural = ''] = resource.split('.', 1)
  const gvr = { ...parseApiVersion(decode(bytes).apiVersion), resource: plural }
  return { gvr, ref: namespace === '' ? { name } : { name, namespace } }
}
