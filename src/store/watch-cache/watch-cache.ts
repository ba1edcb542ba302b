// The contract of the watch cache: a Store served from memory. It loads a logical cluster on first use, keeps its
// objects as bytes, answers reads synchronously, and delivers the store's own stream to every watcher.
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import type { Packing } from './entry-memory.ts'
import type { QuotaAccount } from '#store/quota-account.ts'
import type { Creating, ListScope, ObjectKey, Updating, Waiting } from '#store/store.ts'

/** An object in memory. Immutable; shared by lists and watch events. */
export interface Entry {
  readonly key: ObjectKey
  readonly revision: Revision
  readonly createRevision: Revision
  /** The object's JSON with its resourceVersion inside, ready for the wire. */
  readonly bytes: Uint8Array
  /** Length of `bytes`, known without unpacking them. */
  readonly size: number
  /** Bytes that begin like `bytes`, at least up to metadata, available without unpacking. */
  readonly beginning: Uint8Array
  /** Fields that selectors and garbage collection read: parsed from the bytes on first use, then kept. */
  readonly facts: EntryFacts
  /** True if the object comes from the shared base layer and was never written in this logical cluster. */
  readonly base: boolean
}

export interface EntryFacts {
  readonly uid: string
  readonly labels: Readonly<Record<string, string>> | undefined
  readonly ownerUids: readonly string[]
  /** Uids of the owners with blockOwnerDeletion: they must not be deleted before this object. */
  readonly blockedUids: readonly string[]
}

export type CacheEvent =
  | { readonly type: 'ADDED'; readonly entry: Entry; readonly revision: Revision }
  | {
      readonly type: 'MODIFIED'
      readonly entry: Entry
      readonly previous: Entry | undefined
      readonly revision: Revision
    }
  /** `entry` is the last state, its bytes stamped with the revision of the deletion. */
  | {
      readonly type: 'DELETED'
      readonly entry: Entry
      readonly previous: Entry | undefined
      readonly revision: Revision
    }

/**
 * The objects that every logical cluster has from its creation: one immutable layer under the store, shared by all. An
 * update writes an override, a delete a tombstone; both are ordinary writes with new revisions.
 */
export interface BaseLayer {
  /** The object's JSON without resourceVersion (see WatchCacheOptions.stamp), or undefined. */
  get(key: ObjectKey): Uint8Array | undefined
  /** Keys of one resource in one logical cluster, in key order; namespace absent = all. */
  keys(cluster: ClusterId, resource: string, namespace?: string): readonly ObjectKey[]
  /** Resources that have anything in the layer. */
  readonly resources: readonly string[]
}

export interface WatchCacheOptions {
  /**
   * Puts a revision into an object's JSON, replacing one that is there. Called once per change; lists and events share
   * the result.
   */
  readonly stamp: (value: Uint8Array, revision: Revision) => Uint8Array
  readonly readFacts: (bytes: Uint8Array) => EntryFacts
  /** The compression of objects that nobody reads. Default: none. */
  readonly packing?: Packing
  readonly baseLayer?: BaseLayer
  /** Revision that objects of the base layer show. Default 1. */
  readonly baseRevision?: Revision
  /** Events kept per resource of a logical cluster for watches that resume. Default 1024. */
  readonly windowEvents?: number
  /** Called once when the stream from the store broke for good: reads would go stale, so all are refused. */
  readonly onBroken?: (error: Error) => void
  /**
   * A logical cluster that was not used for this long is evicted, and so are older events. Default 5 minutes; Infinity
   * for never.
   */
  readonly idleMs?: number
  /**
   * Approximate memory limit of all logical clusters together; beyond it the least recently used are evicted. A watched
   * one stays. Default 256 MiB.
   */
  readonly memoryBytes?: number
  /** The account that is charged for writes of a logical cluster; called again at each load. Default: no limit. */
  readonly quotaAccount?: (cluster: ClusterId) => QuotaAccount
  /** Bytes buffered for one slow watcher before it is ended (it lists again). Default 8 MiB. */
  readonly watcherBufferBytes?: number
}

export type MarkName = 'frozen' | 'moved' | 'receiving' | 'resumed'
/** The resource of marks in keys. No catalog has it. */
export const markResource = 'marks.kcp.dev'

export interface WatchScope {
  readonly resource: string
  /** Absent: all namespaces. */
  readonly namespace?: string
}

/** The consumer of a watch. */
export interface WatchReader {
  /**
   * Events, or the end of the watch, are ready to take. Must be quick and must not throw: it runs in the loop that
   * applies changes.
   */
  ready(): void
}

/**
 * A started watch: events come in revision order, each exactly once. Disposing it ends it; waiting events can still be
 * taken.
 */
export interface CacheWatch extends Disposable {
  /** Sets the reader, which is called at once if something is waiting. One reader per watch. */
  read(reader: WatchReader): void
  /**
   * Takes the events since the last call, at most `maxBytes` bytes (default 256 KiB) or one event; empty if there are
   * none, undefined after the end. Throws StoreError Compacted if the reader fell behind, Unavailable if the watch
   * cache failed.
   */
  take(maxBytes?: number): readonly CacheEvent[] | undefined
  /** Whether events or the end are waiting. */
  readonly waits: boolean
  /**
   * Every change up to this revision was taken or does not concern this watch: the value of a bookmark once all taken
   * events are sent.
   */
  progress(): Revision
}

/** One logical cluster in memory. Reads are synchronous and see every acknowledged write. */
export interface ClusterObjects {
  readonly cluster: ClusterId
  /** Newest revision applied here: the resourceVersion of a list. */
  revision(): Revision
  get(resource: string, namespace: string, name: string): Entry | undefined
  /** The objects of the scope, in key order. */
  list(scope: WatchScope): readonly Entry[]
  /**
   * The list as it was at `at`, which must not be in the future; undefined when that is older than the window (410).
   */
  listAt(scope: WatchScope, at: Revision): readonly Entry[] | undefined
  count(scope: WatchScope): number
  /**
   * A counter that grows with every change of an object of this resource: data derived from the objects is valid while
   * it stays the same.
   */
  changes(resource: string): number
  /**
   * The names of objects changed since `changes` was `since`, oldest first, possibly with duplicates; read the objects
   * for their state. Undefined if that is no longer known: any of them may have changed.
   */
  changedNames(resource: string, since: number): readonly Pick<ObjectKey, 'namespace' | 'name'>[] | undefined
  /** Objects that name this uid as an owner, over all resources. */
  dependents(ownerUid: string): readonly Entry[]
  /**
   * Resources and namespaces of dependents that block the deletion of this owner. The cost does not grow with their
   * number.
   */
  blockers(ownerUid: string): Iterable<Pick<ObjectKey, 'resource' | 'namespace'>>
  /** The objects written here, by resource; without unchanged objects of the base layer, and without marks. */
  written(): Iterable<readonly [resource: string, entries: readonly Entry[]]>
  /** Objects of the base layer that were deleted here and not created again. */
  hidden(resource: string): readonly Pick<ObjectKey, 'namespace' | 'name'>[]
  /**
   * The base layer, if the objects of this resource are exactly those of the base layer: data derived from them, except
   * from their uids and times, is the same in all such logical clusters.
   */
  unwritten(resource: string): BaseLayer | undefined
  /** Resources with at least one object. */
  resources(): readonly string[]
  /** Resolves once durable and visible to reads here. Rejects StoreError. */
  create(key: Omit<ObjectKey, 'cluster'>, value: Uint8Array, options: Waiting): Promise<Entry>
  update(key: Omit<ObjectKey, 'cluster'>, value: Uint8Array, options: Updating): Promise<Entry>
  delete(key: Omit<ObjectKey, 'cluster'>, options: Waiting & { ifRevision: Revision }): Promise<Entry>
  /**
   * A mark of the logical cluster: an object beside its objects that no API shows. While there is a mark `frozen`, every
   * write rejects Frozen; while there is a mark `moved`, every watch rejects Compacted; no watch resumes from before the
   * mark `resumed`.
   */
  mark(name: MarkName): Entry | undefined
  /** Makes a mark. `above`: see Creating. Rejects KeyExists. */
  setMark(name: MarkName, value: Uint8Array, options: Creating): Promise<Entry>
  /** Replaces a mark. Rejects KeyMissing, RevisionMismatch. */
  replaceMark(name: MarkName, value: Uint8Array, options: Updating): Promise<Entry>
  removeMark(name: MarkName, options: Waiting & { ifRevision: Revision }): Promise<void>
  /**
   * Makes the mark `frozen`, after the writes that are under way: none is acknowledged with a later revision. New writes
   * are refused from the call on.
   */
  freeze(value: Uint8Array, options: Waiting): Promise<Entry>
  /** Ends all its watches with Compacted: their readers list again. */
  expireWatches(): void
  /**
   * Changes after `since`, from the window or else from the store. Throws StoreError Compacted when too old. A `since`
   * in the future waits. The signal applies to the opening; an open watch ends when it is disposed.
   */
  watch(scope: WatchScope, options: { since: Revision; signal: AbortSignal }): Promise<CacheWatch>
}

/** Callbacks must be quick and must not throw: they run in the loop that applies changes. */
export interface CacheObserver {
  changed(event: CacheEvent): void
  /** A logical cluster was loaded, or was already in memory when the observer was added. */
  loaded(objects: ClusterObjects): void
}

/** The memory of a logical cluster. */
export interface ClusterLoad {
  readonly cluster: ClusterId
  readonly objects: number
  readonly bytes: number
  readonly watches: number
}

/** All logical clusters of this process. */
export interface WatchCache extends AsyncDisposable {
  /**
   * Loads the logical cluster if needed; concurrent callers share one load. The returned objects stay up to date for as
   * long as the caller holds them, even if the watch cache evicts the cluster meanwhile.
   */
  cluster(id: ClusterId, options: Waiting): Promise<ClusterObjects>
  /** The logical cluster if it is in memory, else undefined. Loads nothing. */
  loaded(id: ClusterId): ClusterObjects | undefined
  /**
   * Evicts the logical cluster, as if it were idle: its memory is freed once no caller holds it. Does nothing while it
   * is watched. Returns whether it was evicted.
   */
  release(id: ClusterId): boolean
  /** Drops the logical cluster from memory and ends its watches without an error. The next use loads it again. */
  unload(id: ClusterId): void
  /** Whether deleteCluster was called for the logical cluster in this process, and the id is not in use again. */
  hasEnded(id: ClusterId): boolean
  /**
   * Ends its watches, refuses every later use with Closed, deletes all its objects from the store and forgets it. May
   * be called again after a failure.
   */
  deleteCluster(id: ClusterId, options: Waiting): Promise<void>
  /**
   * Serves the id again, empty, because a restore made its LogicalCluster anew. Takes effect when every call of
   * deleteCluster has ended and one has deleted all objects; does nothing without such a call.
   */
  reopen(id: ClusterId): void
  /** Keys of written objects, in memory or not; loads nothing. In key order, at most `limit`. */
  find(scope: ListScope, options: Waiting & { limit?: number }): Promise<readonly ObjectKey[]>
  /** Lists one resource over the given logical clusters at one revision, without loading them. */
  listAll(
    scope: WatchScope,
    clusters: Iterable<ClusterId>,
    options: Waiting,
  ): Promise<{ entries: readonly Entry[]; revision: Revision }>
  /**
   * Lists the written objects of one resource over all logical clusters: without the base layer, and without a loop
   * over all clusters.
   */
  listStored(scope: WatchScope, options: Waiting): Promise<{ entries: readonly Entry[]; revision: Revision }>
  /** Watches one resource over all logical clusters without loading them; opens and ends like a watch of one. */
  watchAll(scope: WatchScope, options: { since: Revision; signal: AbortSignal }): Promise<CacheWatch>
  /**
   * Whether any object of this resource changed after `revision` in any logical cluster; true if that is no longer
   * known.
   */
  changedSince(resource: string, revision: Revision): boolean
  /** Calls the observer for every applied change and every loaded logical cluster. Returns a function that stops it. */
  observe(observer: CacheObserver): () => void
  revision(): Revision
  /** Waits until everything up to `revision` is applied; for reads "not older than". Rejects when aborted. */
  reached(revision: Revision, options: Waiting): Promise<void>
  /** The load of the logical cluster; undefined if it is not in memory. */
  loadOf(id: ClusterId): ClusterLoad | undefined
  /** The load of each logical cluster in memory: objects, their bytes, open watches. */
  loads(): Iterable<ClusterLoad>
  /** For metrics: loaded logical clusters, objects, bytes, watchers. */
  usage(): { clusters: number; objects: number; bytes: number; watchers: number }
}
