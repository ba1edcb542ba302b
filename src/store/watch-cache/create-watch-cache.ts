// Keeps the logical clusters of this process in memory: one stream from the store, applied in order, delivered to every
// watcher.
import { LRUCache } from 'lru-cache'
import { abortable } from '#async/index.ts'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import {
  StoreError,
  type ListScope,
  type ObjectKey,
  type Store,
  type StoredObject,
  type StoreEvent,
  type Waiting,
} from '#store/store.ts'
import { BaseEntries, isTombstone } from './base-entries.ts'
import { ClusterState, type WatchCacheCore } from './cluster-state.ts'
import { EntryMemory } from './entry-memory.ts'
import { EventWindow } from './event-window.ts'
import type {
  ClusterLoad,
  ClusterObjects,
  Entry,
  WatchCache,
  CacheEvent,
  CacheObserver,
  WatchCacheOptions,
  CacheWatch,
  WatchScope,
} from './watch-cache.ts'
import { mergeByKey } from './lists.ts'
import { looksPerIdle, ClusterCache } from './cluster-cache.ts'
import { replayOf } from './replay.ts'
import type { ResourceTable } from './resource-table.ts'
import { Revisions } from './revisions.ts'
import { StoredEntry } from './stored-entry.ts'
import { CacheWatcher } from './watcher.ts'

type Change = Exclude<StoreEvent, { type: 'progress' }>

/** Limits of all windows together; the oldest event of any logical cluster is dropped first. */
const maxWindowEvents = 16_384
const maxWindowBytes = 16 * 1024 * 1024
/** Number of deleted logical clusters that are remembered: a request lasts at most a minute. */
const maxEnded = 10_000

/** A logical cluster for which deleteCluster was called. */
interface Ended {
  /** Calls of deleteCluster that have not settled. */
  running: number
  /** Whether a call has deleted all its objects. */
  isEmpty: boolean
  /** Whether its LogicalCluster was made anew since the last call. */
  isReopened: boolean
}

interface Loading {
  readonly done: Promise<ClusterState>
  /** Changes since the load began; the changes that the list does not include are applied after it. */
  readonly changes: Change[]
}

interface WindowItem {
  readonly revision: Revision
  readonly event: CacheEvent
  /**
   * The window of the cluster's table, without keeping the table in memory; absent if the logical cluster was not
   * loaded.
   */
  readonly window: ResourceTable['window'] | undefined
}

/**
 * Creates a watch cache that follows the store from now on. Disposing it ends its watches and leaves the store open.
 */
export async function createWatchCache(store: Store, options: WatchCacheOptions & Waiting): Promise<WatchCache> {
  const watchCache = new MemoryWatchCache(store, options, await store.revision(options))
  watchCache.follow()
  return watchCache
}

class MemoryWatchCache implements WatchCache, WatchCacheCore {
  readonly store: Store
  readonly options: WatchCacheOptions
  readonly base: BaseEntries
  readonly windowEvents: number
  readonly watcherBytes: number
  readonly memory: EntryMemory | undefined
  readonly #cache: ClusterCache
  readonly #loading = new Map<ClusterId, Loading>()
  readonly #ended = new LRUCache<ClusterId, Ended>({ max: maxEnded })
  readonly #wildcards = new Map<string, Set<CacheWatcher>>()
  readonly #watchers = new Set<CacheWatcher>()
  readonly #observers = new Set<CacheObserver>()
  readonly #window: EventWindow<WindowItem>
  readonly #revisions: Revisions
  readonly #life = new AbortController()
  /** Revision of the watch cache at each of the last checks, oldest first. */
  readonly #revisionsAtLooks: Revision[] = []
  #windowBytes = 0
  #following: Promise<void> = Promise.resolve()
  #failure: StoreError | undefined

  constructor(store: Store, options: WatchCacheOptions, revision: Revision) {
    this.store = store
    this.options = options
    this.base = new BaseEntries(options)
    this.windowEvents = options.windowEvents ?? 1024
    this.watcherBytes = options.watcherBufferBytes ?? 8 * 1024 * 1024
    this.#cache = new ClusterCache({
      idleMs: options.idleMs ?? 5 * 60_000,
      memoryBytes: options.memoryBytes ?? 256 * 1024 * 1024,
      onLook: () => this.#forgetOld(),
    })
    this.memory = options.packing === undefined ? undefined : new EntryMemory(options.packing)
    this.#revisions = new Revisions(revision)
    this.#window = new EventWindow(revision)
  }

  /** Starts to apply the store's stream. */
  follow(): void {
    this.#following = this.#follow()
  }

  applied(): Revision {
    return this.#revisions.current
  }

  revision(): Revision {
    return this.#revisions.current
  }

  observe(observer: CacheObserver): () => void {
    this.#observers.add(observer)
    for (const id of this.#cache.ids()) {
      const objects = this.loaded(id)
      if (objects) observer.loaded(objects)
    }
    return () => void this.#observers.delete(observer)
  }

  reached(revision: Revision, { signal }: Waiting): Promise<void> {
    if (this.#failure && revision > this.#revisions.current) return Promise.reject(this.#failure)
    return this.#revisions.reached(revision, signal)
  }

  recent(cluster: ClusterId, resource: string, after: Revision): readonly CacheEvent[] | undefined {
    if (after < this.#window.floor) return undefined
    return this.#window
      .after(after)
      .flatMap(({ event }) =>
        event.entry.key.cluster === cluster && event.entry.key.resource === resource ? [event] : [],
      )
  }

  recentFrom(): Revision {
    return this.#window.floor
  }

  count(objects: number, bytes: number): void {
    this.#cache.count(objects, bytes)
  }

  keep(state: ClusterState): void {
    this.#cache.keep(state)
  }

  loaded(id: ClusterId): ClusterObjects | undefined {
    return this.#ended.has(id) ? undefined : this.#cache.peek(id)
  }

  async cluster(id: ClusterId, { signal }: Waiting): Promise<ClusterObjects> {
    if (this.#failure) throw this.#failure
    if (this.#ended.has(id)) throw hasEnded(id)
    const loaded = this.#cache.use(id)
    if (loaded) return loaded
    let loading = this.#loading.get(id)
    if (!loading) {
      const changes: Change[] = []
      loading = { changes, done: this.#load(id, changes) }
      // Waiting callers get the rejection; without any, it must not count as unhandled.
      loading.done.catch(() => undefined)
      this.#loading.set(id, loading)
    }
    return abortable(loading.done, signal)
  }

  release(id: ClusterId): boolean {
    return this.#cache.release(id)
  }

  unload(id: ClusterId): void {
    // A load that has begun ends without a result: its list may be older than what comes next.
    this.#loading.delete(id)
    this.#cache.peek(id)?.unload()
    this.#cache.drop(id)
  }

  hasEnded(id: ClusterId): boolean {
    return this.#ended.has(id)
  }

  async deleteCluster(id: ClusterId, options: Waiting): Promise<void> {
    const ended = this.#ended.get(id) ?? { running: 0, isEmpty: false, isReopened: false }
    ended.running++
    ended.isReopened = false
    // Writes are refused from here on: those already sent to the store come before the deletion.
    this.#ended.set(id, ended)
    this.#cache.peek(id)?.end()
    try {
      await this.store.deleteCluster(id, options)
      await this.reached(await this.store.revision(options), options)
      this.unload(id)
      ended.isEmpty = true
    } finally {
      ended.running--
      this.#forgetEnded(id, ended)
    }
  }

  reopen(id: ClusterId): void {
    const ended = this.#ended.peek(id)
    if (ended === undefined) return
    ended.isReopened = true
    this.#forgetEnded(id, ended)
  }

  /** A call of deleteCluster that still runs would delete the new objects. */
  #forgetEnded(id: ClusterId, { running, isEmpty, isReopened }: Ended): void {
    if (running === 0 && isEmpty && isReopened) this.#ended.delete(id)
  }

  async find(scope: ListScope, options: Waiting & { limit?: number }): Promise<readonly ObjectKey[]> {
    if (this.#failure) throw this.#failure
    const { items } = await this.store.list(scope, options)
    return items.filter(({ value }) => !isTombstone(value)).map(({ key }) => key)
  }

  async listAll(
    scope: WatchScope,
    clusters: Iterable<ClusterId>,
    { signal }: Waiting,
  ): Promise<{ entries: readonly Entry[]; revision: Revision }> {
    if (this.#failure) throw this.#failure
    const ids = [...clusters].filter((id) => !this.#ended.has(id)).sort()
    const states = ids.map((id) => this.#cache.peek(id))
    const revision = this.#revisions.current
    if (states.every((state) => state !== undefined && state.revision() === revision)) {
      return { entries: states.flatMap((state) => state?.list(scope) ?? []), revision }
    }
    // One snapshot, so all of it is read from the store; entries in memory at the same revision are shared, not copied.
    const list = await this.store.list(scope, { signal })
    const byCluster = Map.groupBy(list.items, ({ key }) => key.cluster)
    const entries: Entry[] = []
    for (const id of ids) for (const entry of this.#snapshot(id, scope, byCluster.get(id) ?? [])) entries.push(entry)
    return { entries, revision: list.revision }
  }

  async listStored(scope: WatchScope, { signal }: Waiting): Promise<{ entries: readonly Entry[]; revision: Revision }> {
    if (this.#failure) throw this.#failure
    const { items, revision } = await this.store.list(scope, { signal })
    const written = items.filter(({ key, value }) => !this.#ended.has(key.cluster) && !isTombstone(value))
    const byCluster = [...Map.groupBy(written, ({ key }) => key.cluster)].sort(([a], [b]) => (a < b ? -1 : 1))
    const entries = byCluster.flatMap(([, objects]) => objects.map((object) => this.#entry(object)))
    return { entries, revision }
  }

  async watchAll(scope: WatchScope, { since, signal }: { since: Revision; signal: AbortSignal }): Promise<CacheWatch> {
    if (this.#failure) throw this.#failure
    // Every event after this revision is in memory; for earlier changes the store knows the final states.
    const until = this.#window.floor
    const { resource } = scope
    const changes = since < this.#window.floor ? await this.store.changes({ resource }, { since, signal }) : undefined
    // No await below: a change applied later goes to the watcher itself.
    this.#requireStream()
    if (until < this.#window.floor) throw new StoreError('Compacted', `revision ${since} is too old to watch from`)
    const newerThan = (revision: Revision): readonly CacheEvent[] =>
      this.#window.after(revision).flatMap(({ event }) => (event.entry.key.resource === resource ? [event] : []))
    const asEvent = (change: Change): CacheEvent | undefined => this.#pastEvent(change, since)
    const isBase = ({ key }: Entry): boolean => this.base.get(key) !== undefined
    const replay = changes
      ? replayOf({ changes, since, until, newer: newerThan(until), asEvent, isBase })
      : newerThan(since)
    const watcher = new CacheWatcher(scope, since, this)
    const all = this.#wildcards.get(scope.resource) ?? new Set()
    this.#wildcards.set(scope.resource, all.add(watcher))
    this.watcherBegan(watcher)
    for (const event of replay) watcher.offer(event)
    watcher.flush()
    return watcher
  }

  changedSince(resource: string, revision: Revision): boolean {
    if (revision < this.#window.floor) return true
    return this.#window.after(revision).some(({ event }) => event.entry.key.resource === resource)
  }

  #requireStream(): void {
    if (this.#failure) throw this.#failure
  }

  watcherBegan(watcher: CacheWatcher): void {
    this.#watchers.add(watcher)
  }

  watcherEnded(watcher: CacheWatcher): void {
    this.#watchers.delete(watcher)
    const { resource } = watcher.scope
    const all = this.#wildcards.get(resource)
    if (all?.delete(watcher) === true && all.size === 0) this.#wildcards.delete(resource)
  }

  loadOf(cluster: ClusterId): ClusterLoad | undefined {
    const state = this.#cache.peek(cluster)
    return state && { cluster, objects: state.size, bytes: state.bytes, watches: state.watches }
  }

  *loads(): Iterable<ClusterLoad> {
    for (const cluster of this.#cache.ids()) {
      const load = this.loadOf(cluster)
      if (load !== undefined) yield load
    }
  }

  usage(): { clusters: number; objects: number; bytes: number; watchers: number } {
    return {
      clusters: this.#cache.size,
      objects: this.#cache.objects,
      bytes: this.#cache.bytes,
      watchers: this.#watchers.size,
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#fail(new StoreError('Closed', 'the server is shutting down'))
    this.#life.abort(this.#failure)
    for (const watcher of [...this.#watchers]) watcher.end()
    await this.#following
    this.#cache[Symbol.dispose]()
    this.memory?.[Symbol.dispose]()
    for (const id of this.#cache.ids()) this.unload(id)
  }

  async #follow(): Promise<void> {
    try {
      for await (const batch of this.store.watch({ since: this.#revisions.current, signal: this.#life.signal })) {
        this.#apply(batch)
      }
    } catch (error) {
      const why = error instanceof Error ? `: ${error.message}` : ''
      const failure = new StoreError('Unavailable', `the stream of changes from the store broke${why}`, {
        cause: error,
      })
      this.#fail(failure)
      for (const watcher of [...this.#watchers]) watcher.fail(failure)
      if (!this.#life.signal.aborted) this.options.onBroken?.(failure)
    }
  }

  #fail(failure: StoreError): void {
    this.#failure ??= failure
    this.#revisions.fail(this.#failure)
  }

  #apply(batch: readonly StoreEvent[]): void {
    const touched: CacheWatcher[] = []
    let revision = this.#revisions.current
    for (const change of batch) {
      if (change.type === 'progress') {
        revision = Math.max(revision, change.revision) as Revision
        continue
      }
      revision = change.type === 'put' ? change.object.revision : change.revision
      this.#applyChange(change, touched)
    }
    while (this.#window.size > maxWindowEvents || (this.#windowBytes > maxWindowBytes && this.#window.size > 0)) {
      this.#forgetOldest()
    }
    this.#cache.fit()
    this.#revisions.advance(revision)
    for (const watcher of touched) watcher.flush()
  }

  #applyChange(change: Change, touched: CacheWatcher[]): void {
    const key = change.type === 'put' ? change.object.key : change.key
    this.#loading.get(key.cluster)?.changes.push(change)
    const state = this.#cache.peek(key.cluster)
    // A change that the load's list included is not new to that logical cluster, but it is new to watchers of all
    // logical clusters.
    const known = state === undefined || state.wasLoadedWith(change)
    const applied = known ? undefined : state.apply(change)
    const event = known ? this.#unloadedEvent(change) : applied?.event
    const isMissed = change.type === 'delete' && change.missed === true
    if (isMissed) this.#startOver(key.resource, change.revision, applied?.table)
    if (!event) return
    for (const observer of this.#observers) observer.changed(event)
    if (isMissed) return
    this.#window.push({ revision: event.revision, event, window: applied?.table.window })
    this.#windowBytes += event.entry.size
    for (const watcher of applied?.table.watchers ?? []) if (watcher.offer(event)) touched.push(watcher)
    for (const watcher of this.#wildcards.get(key.resource) ?? []) if (watcher.offer(event)) touched.push(watcher)
  }

  /** An object was deleted at an unknown revision, so no watch can resume from before it: watchers must list again. */
  #startOver(resource: string, revision: Revision, table: ResourceTable | undefined): void {
    while (this.#window.size > 0) this.#forgetOldest()
    this.#window.clear(revision)
    const watchers = [...(table?.watchers ?? []), ...(this.#wildcards.get(resource) ?? [])]
    const expired = new StoreError('Compacted', 'objects were deleted while the stream of the store was interrupted')
    for (const watcher of watchers) watcher.fail(expired)
  }

  /** Drops events older than the idle time: a watch that resumes from there reads the store, or lists again. */
  #forgetOld(): void {
    const old = this.#revisionsAtLooks.length >= looksPerIdle ? this.#revisionsAtLooks.shift() : undefined
    this.#revisionsAtLooks.push(this.#revisions.current)
    while (old !== undefined && (this.#window.first?.revision ?? Infinity) <= old) this.#forgetOldest()
  }

  #forgetOldest(): void {
    const item = this.#window.dropFirst()
    if (!item) return
    this.#windowBytes -= item.event.entry.size
    if (item.window?.first === item.event) item.window.dropFirst()
  }

  /** The event of a change to a logical cluster that is not in memory, for watchers of all logical clusters. */
  #unloadedEvent(change: Change): CacheEvent | undefined {
    if (change.type === 'delete' || isTombstone(change.object.value)) {
      const key = change.type === 'put' ? change.object.key : change.key
      const revision = change.type === 'put' ? change.object.revision : change.revision
      const previous = change.type === 'put' ? undefined : change.previous
      const last = previous && !isTombstone(previous.value) ? previous.value : this.base.get(key)?.bytes
      if (!last || (previous && isTombstone(previous.value))) return undefined
      const entry = this.#entry({ key, revision, createRevision: previous?.createRevision ?? revision, value: last })
      return { type: 'DELETED', entry, previous: undefined, revision }
    }
    const entry = this.#entry(change.object)
    const { revision } = entry
    const isNew = entry.createRevision === revision && !this.base.get(entry.key)
    return isNew ? { type: 'ADDED', entry, revision } : { type: 'MODIFIED', entry, previous: undefined, revision }
  }

  /** The event of a change before the window began: an object is new if it was created after the reader's revision. */
  #pastEvent(change: Change, since: Revision): CacheEvent | undefined {
    const event = this.#unloadedEvent(change)
    if (event === undefined || event.type === 'DELETED') return event
    const { entry, revision } = event
    const isNew = entry.createRevision > since && !this.base.get(entry.key)
    return isNew ? { type: 'ADDED', entry, revision } : { type: 'MODIFIED', entry, previous: undefined, revision }
  }

  async #load(id: ClusterId, changes: Change[]): Promise<ClusterState> {
    try {
      const { items, revision } = await this.#itemsOf(id)
      if (this.#ended.has(id)) throw hasEnded(id)
      if (this.#loading.get(id)?.changes !== changes)
        throw new StoreError('Unavailable', `logical cluster "${id}" was unloaded`)
      const state = new ClusterState(id, this, emptied(items), revision)
      for (const change of changes) state.apply(change)
      this.#cache.keep(state)
      for (const observer of this.#observers) observer.loaded(state)
      return state
    } finally {
      if (this.#loading.get(id)?.changes === changes) this.#loading.delete(id)
    }
  }

  /** The objects of a logical cluster, in an array that only the caller has: `emptied` clears its slots. */
  async #itemsOf(id: ClusterId): Promise<{ items: StoredObject[]; revision: Revision }> {
    const { items, revision } = await this.store.list({ cluster: id }, { signal: this.#life.signal })
    return { items: [...items], revision }
  }

  #snapshot(id: ClusterId, scope: WatchScope, items: readonly StoredObject[]): readonly Entry[] {
    const written = new Set(items.map(({ key }) => `${key.namespace}/${key.name}`))
    const stored = items.filter(({ value }) => !isTombstone(value)).map((object) => this.#entry(object))
    const under: Entry[] = []
    for (const key of this.base.keys(id, scope.resource, scope.namespace)) {
      const entry = written.has(`${key.namespace}/${key.name}`) ? undefined : this.base.get(key)
      if (entry) under.push(entry)
    }
    return mergeByKey(stored, under)
  }

  /** The entry of an object: the one in memory if it has the same revision, else a new one. */
  #entry(object: StoredObject): Entry {
    const { key, revision, createRevision, value } = object
    const known = this.loaded(key.cluster)?.get(key.resource, key.namespace, key.name)
    if (known?.revision === revision) return known
    const bytes = this.options.stamp(value, revision)
    return new StoredEntry({ key, revision, createRevision, bytes, base: false }, this.options.readFacts)
  }
}

function hasEnded(id: ClusterId): StoreError {
  return new StoreError('Closed', `logical cluster "${id}" was deleted`)
}

/**
 * Yields the items and clears each slot first: most objects are packed when they are loaded, and both forms together
 * would take twice the memory.
 */
function* emptied(items: (StoredObject | undefined)[]): Generator<StoredObject> {
  for (const [i, item] of items.entries()) {
    items[i] = undefined
    if (item !== undefined) yield item
  }
}
