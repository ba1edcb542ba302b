// The contract of the hub: a Store seen from memory. It loads a logical cluster on first use, keeps its objects as bytes,
// answers reads without waiting, and tells every watcher what the store's own stream says.
import type { ClusterId, Revision } from '../../apimachinery/meta/index.ts'
import type { QuotaAccount } from './quota-account.ts'
import type { ListScope, ObjectKey, Updating, Waiting } from '../store.ts'

/** An object in memory. Immutable; shared by lists, watch events and whoever holds it. */
export interface Entry {
  readonly key: ObjectKey
  readonly revision: Revision
  readonly createRevision: Revision
  /** The object's JSON with its resourceVersion inside, ready for the wire. */
  readonly bytes: Uint8Array
  /** What selectors and garbage collection look at, read from the bytes on first need and then kept. */
  readonly facts: EntryFacts
  /** True while the object is the shared base layer's and was never written in this logical cluster. */
  readonly base: boolean
}

export interface EntryFacts {
  readonly uid: string
  readonly labels: Readonly<Record<string, string>> | undefined
  readonly ownerUids: readonly string[]
  /** Those of them that are not to be deleted before this. */
  readonly blockedUids: readonly string[]
}

export type HubEvent =
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
 * What every logical cluster has from birth, shared by all: one immutable layer under the store. An update writes an
 * override, a delete a tombstone; both are ordinary writes with new revisions.
 */
export interface BaseLayer {
  /** The object's JSON without resourceVersion (see HubOptions.stamp), or undefined. */
  get(key: ObjectKey): Uint8Array | undefined
  /** Keys of one resource in one logical cluster, in key order; namespace absent = all. */
  keys(cluster: ClusterId, resource: string, namespace?: string): readonly ObjectKey[]
  /** Resources that have anything in the layer. */
  readonly resources: readonly string[]
}

export interface HubOptions {
  /**
   * Puts a revision into an object's JSON, in place of one that is there. Called once per change, the result is what
   * everybody gets.
   */
  readonly stamp: (value: Uint8Array, revision: Revision) => Uint8Array
  readonly readFacts: (bytes: Uint8Array) => EntryFacts
  readonly baseLayer?: BaseLayer
  /** Revision that objects of the base layer show. Default 1. */
  readonly baseRevision?: Revision
  /** Events kept per resource of a logical cluster for watches that resume. Default 1024. */
  readonly windowEvents?: number
  /** Told once when the stream of changes from the store broke for good: reads would go stale, so all are refused. */
  readonly onBroken?: (error: Error) => void
  /** A logical cluster that nobody asked for in so long leaves memory, and so do older events. Default 5 minutes; Infinity for never. */
  readonly idleMs?: number
  /**
   * What logical clusters may take in memory together, roughly; beyond it the least recently used leave. One that is
   * watched stays. Default 256 MiB.
   */
  readonly memoryBytes?: number
  /** Where the writes of a logical cluster are charged; made anew when it is loaded. Default: no bound. */
  readonly quotaAccount?: (cluster: ClusterId) => QuotaAccount
  /** Bytes buffered for one slow watcher before it is ended (it lists again). Default 8 MiB. */
  readonly watcherBufferBytes?: number
}

export interface WatchScope {
  readonly resource: string
  /** Absent: all namespaces. */
  readonly namespace?: string
}

/** Who takes what a watch gathers. */
export interface WatchReader {
  /** There is something to take again: events, or the end. Must be quick, and not throw: everything waits for it. */
  ready(): void
}

/** A started watch: events come in revision order, each exactly once. Disposing it ends it, after what waits. */
export interface HubWatch extends Disposable {
  /** From now on `reader` is told; once at once where there is something already. One reader per watch. */
  read(reader: WatchReader): void
  /**
   * What has happened since the last time, a part of it where that is much; empty where nothing has, undefined after the end.
   * Throws StoreError Compacted where the reader fell behind, Unavailable where the hub did.
   */
  take(): readonly HubEvent[] | undefined
  /** Whether there is something to take, or the end. */
  readonly waits: boolean
  /** Every change up to here was taken or did not concern this watch: what a bookmark may say when all that was taken is sent. */
  progress(): Revision
}

/** One logical cluster in memory. Reads are synchronous and see every acknowledged write. */
export interface ClusterObjects {
  readonly cluster: ClusterId
  /** Newest revision applied here: the resourceVersion of a list. */
  revision(): Revision
  get(resource: string, namespace: string, name: string): Entry | undefined
  /** In key order. */
  list(scope: WatchScope): readonly Entry[]
  /** The list as it was at `at`; undefined when that is older than the window (410) . Rejects nothing; `at` must not be in the future. */
  listAt(scope: WatchScope, at: Revision): readonly Entry[] | undefined
  count(scope: WatchScope): number
  /** Grows with every change of an object of this resource: what is derived from them is true while this stays the same. */
  changes(resource: string): number
  /**
   * What changed since `changes` was `since`, in that order, some perhaps more than once; read them to learn how they are now.
   * Undefined where that is forgotten: any may have changed.
   */
  changedNames(resource: string, since: number): readonly Pick<ObjectKey, 'namespace' | 'name'>[] | undefined
  /** Objects that name this uid as an owner, over all resources. */
  dependents(ownerUid: string): readonly Entry[]
  /** Where there is any that this owner is not to be deleted before. Costs no more where there are many. */
  blockers(ownerUid: string): Iterable<Pick<ObjectKey, 'resource' | 'namespace'>>
  /** What was written here, by resource: without what is of the base layer still. */
  written(): Iterable<readonly [resource: string, entries: readonly Entry[]]>
  /** Objects of the base layer that were deleted here and are not there again. */
  hidden(resource: string): readonly Pick<ObjectKey, 'namespace' | 'name'>[]
  /** Resources of which there is at least one object. */
  resources(): readonly string[]
  /** Resolves once durable and visible to reads here. Rejects StoreError. */
  create(key: Omit<ObjectKey, 'cluster'>, value: Uint8Array, options: Waiting): Promise<Entry>
  update(key: Omit<ObjectKey, 'cluster'>, value: Uint8Array, options: Updating): Promise<Entry>
  delete(key: Omit<ObjectKey, 'cluster'>, options: Waiting & { ifRevision: Revision }): Promise<Entry>
  /**
   * Changes after `since` (from the window, else from the store's changes). Throws StoreError Compacted when too old.
   * A `since` in the future just waits. The signal is for the opening; a watch that is open ends by being disposed.
   */
  watch(scope: WatchScope, options: { since: Revision; signal: AbortSignal }): Promise<HubWatch>
}

/** Must be quick, and not throw: everything waits for it. */
export interface HubObserver {
  changed(event: HubEvent): void
  /** A logical cluster came into memory, or is there already when the observer comes. */
  loaded(objects: ClusterObjects): void
}

/** All logical clusters of this process. */
export interface Hub extends AsyncDisposable {
  /**
   * Loads it if need be (concurrent callers share one load). Whoever holds it sees every change for as long as they hold it,
   * also where the hub let go of it meanwhile.
   */
  cluster(id: ClusterId, options: Waiting): Promise<ClusterObjects>
  /** The same if it is in memory already. */
  loaded(id: ClusterId): ClusterObjects | undefined
  /**
   * Lets go of it, as happens to those that are idle: its memory comes back once nobody holds it. Not while it is watched.
   * Returns whether it was let go of.
   */
  release(id: ClusterId): boolean
  /** Drops it from memory; its watchers are ended cleanly. It comes back on the next use. */
  unload(id: ClusterId): void
  /** Whether deleteCluster was called for it here. */
  hasEnded(id: ClusterId): boolean
  /**
   * Ends its watches, refuses every later use of it with Closed, deletes all its content from the store and forgets it.
   * May be called again where it failed.
   */
  deleteCluster(id: ClusterId, options: Waiting): Promise<void>
  /** Keys of what was written, in or out of memory; loads nothing. In key order, at most `limit`. */
  find(scope: ListScope, options: Waiting & { limit?: number }): Promise<readonly ObjectKey[]>
  /** One resource over the given logical clusters at one revision, unloaded ones included without loading them. */
  listAll(
    scope: WatchScope,
    clusters: Iterable<ClusterId>,
    options: Waiting,
  ): Promise<{ entries: readonly Entry[]; revision: Revision }>
  /** One resource over all logical clusters, unloaded ones included; opened and ended as a watch of one. */
  watchAll(scope: WatchScope, options: { since: Revision; signal: AbortSignal }): Promise<HubWatch>
  /** Whether an object of this resource came, changed or went after `revision`, anywhere; true where that is not known any more. */
  changedSince(resource: string, revision: Revision): boolean
  /** Told of every change of every resource as it is applied, and of what is loaded. Returns the way to stop. */
  observe(observer: HubObserver): () => void
  revision(): Revision
  /** Waits until everything up to `revision` is applied; for reads "not older than". Rejects when aborted. */
  reached(revision: Revision, options: Waiting): Promise<void>
  /** For metrics: loaded logical clusters, objects, bytes, watchers. */
  usage(): { clusters: number; objects: number; bytes: number; watchers: number }
}
