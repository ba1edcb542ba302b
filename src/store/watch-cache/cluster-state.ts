// The objects of one logical cluster in memory.
import { abortable } from '#async/index.ts'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import {
  isStoreError,
  StoreError,
  type Creating,
  type ObjectKey,
  type Store,
  type StoredObject,
  type StoreEvent,
  type Updating,
  type Waiting,
} from '#store/store.ts'
import { type BaseEntries, isTombstone, tombstoneValue } from './base-entries.ts'
import { Dependents } from './dependents.ts'
import type { EntryMemory } from './entry-memory.ts'
import {
  markResource,
  type BaseLayer,
  type ClusterObjects,
  type Entry,
  type CacheEvent,
  type MarkName,
  type WatchCacheOptions,
  type CacheWatch,
  type WatchScope,
} from './watch-cache.ts'
import { mergeByKey, rewind } from './lists.ts'
import { ResourceTable } from './resource-table.ts'
import { type QuotaAccount, StorageBudget } from '#store/quota-account.ts'
import { StoredEntry } from './stored-entry.ts'
import { replayOf } from './replay.ts'
import { CacheWatcher, type WatcherHome } from './watcher.ts'

type Change = Exclude<StoreEvent, { type: 'progress' }>
type LocalKey = Omit<ObjectKey, 'cluster'>

/** The parts of the watch cache that a logical cluster uses. */
export interface WatchCacheCore {
  readonly store: Store
  readonly options: WatchCacheOptions
  readonly base: BaseEntries
  readonly windowEvents: number
  /** Absent where objects are not packed. */
  readonly memory: EntryMemory | undefined
  applied(): Revision
  reached(revision: Revision, options: Waiting): Promise<void>
  /** Every event of this resource after the revision, up to `applied`; undefined if some are no longer in memory. */
  recent(cluster: ClusterId, resource: string, after: Revision): readonly CacheEvent[] | undefined
  /** The oldest revision from which `recent` knows all events. */
  recentFrom(): Revision
  readonly watcherBytes: number
  watcherBegan(watcher: CacheWatcher): void
  watcherEnded(watcher: CacheWatcher): void
  /** A watch began: puts the cluster back into the cache if it was evicted. */
  keep(state: ClusterState): void
  /** Adds to the memory accounting of a counted cluster; negative for removals. */
  count(objects: number, bytes: number): void
}

/** Filled by `load`, then changed only by `apply`; the watch cache calls both. */
export class ClusterState implements ClusterObjects, WatcherHome {
  readonly cluster: ClusterId
  readonly #core: WatchCacheCore
  readonly #tables = new Map<string, ResourceTable>()
  #dependents: Dependents | undefined
  /** Revision of the list that filled this state; older events are already included. */
  #loadedAt: Revision
  #ended = false
  #unloaded = false
  #watches = 0
  /** Writes that are under way. */
  #changes = 0
  #isFreezing = false
  /** Called when no write is under way any more. */
  #settled: (() => void) | undefined
  #size = 0
  #bytes = 0
  readonly #account: QuotaAccount
  /** Number of the last use; higher is later. Set by the ClusterCache. */
  lastUse = 0
  /** Whether the objects count towards the memory limit; set by the ClusterCache. */
  isCounted = false

  constructor(cluster: ClusterId, core: WatchCacheCore, items: Iterable<StoredObject>, loadedAt: Revision) {
    this.cluster = cluster
    this.#core = core
    this.#loadedAt = loadedAt
    this.#account = core.options.quotaAccount?.(cluster) ?? new StorageBudget(Infinity)
    for (const object of items) this.#load(object)
  }

  /** Number of objects written here, without marks. */
  get size(): number {
    return this.#size
  }

  /** Bytes of these objects. */
  get bytes(): number {
    return this.#bytes
  }

  /** Number of objects of this resource written here. */
  countOf(resource: string): number {
    return this.#tables.get(resource)?.size ?? 0
  }

  get isWatched(): boolean {
    return this.#watches > 0
  }

  /** Open watches. */
  get watches(): number {
    return this.#watches
  }

  revision(): Revision {
    return Math.max(this.#core.applied(), this.#loadedAt) as Revision
  }

  get(resource: string, namespace: string, name: string): Entry | undefined {
    this.#check()
    const table = this.#tables.get(resource)
    const entry = table?.get(namespace, name)
    if (entry || table?.tombstone(namespace, name)) return entry
    return this.#base({ resource, namespace, name })
  }

  list({ resource, namespace }: WatchScope): readonly Entry[] {
    this.#check()
    const table = this.#tables.get(resource)
    const stored = table?.list(namespace) ?? []
    const keys = this.#core.base.keys(this.cluster, resource, namespace)
    if (keys.length === 0) return stored
    const under: Entry[] = []
    for (const key of keys) {
      if (table?.get(key.namespace, key.name) ?? table?.tombstone(key.namespace, key.name)) continue
      const entry = this.#core.base.get(key)
      if (entry) under.push(entry)
    }
    return mergeByKey(stored, under)
  }

  listAt(scope: WatchScope, at: Revision): readonly Entry[] | undefined {
    const current = this.list(scope)
    const window = this.#tables.get(scope.resource)?.window
    if (at < (window?.floor ?? this.#loadedAt) || at < (this.mark('resumed')?.revision ?? 0)) return undefined
    return rewind(current, window?.after(at) ?? [], scope)
  }

  count({ resource, namespace }: WatchScope): number {
    this.#check()
    const table = this.#tables.get(resource)
    let count = table?.count(namespace) ?? 0
    for (const key of this.#core.base.keys(this.cluster, resource, namespace)) {
      if (!(table?.get(key.namespace, key.name) ?? table?.tombstone(key.namespace, key.name))) count++
    }
    return count
  }

  changes(resource: string): number {
    this.#check()
    return this.#tables.get(resource)?.window.changes ?? 0
  }

  changedNames(resource: string, since: number): readonly Pick<ObjectKey, 'namespace' | 'name'>[] | undefined {
    this.#check()
    const window = this.#tables.get(resource)?.window
    if (window === undefined) return since === 0 ? [] : undefined
    return window.sinceChange(since)?.map(({ entry }) => entry.key)
  }

  dependents(ownerUid: string): readonly Entry[] {
    return this.#links().of(ownerUid)
  }

  blockers(ownerUid: string): Iterable<Pick<ObjectKey, 'resource' | 'namespace'>> {
    return this.#links().blockersOf(ownerUid)
  }

  #links(): Dependents {
    this.#check()
    if (!this.#dependents) {
      this.#dependents = new Dependents()
      for (const table of this.#tables.values()) for (const entry of table.entries) this.#dependents.add(entry)
    }
    return this.#dependents
  }

  *written(): Iterable<readonly [resource: string, entries: readonly Entry[]]> {
    this.#check()
    for (const { resource, entries, size } of this.#tables.values())
      if (size > 0 && resource !== markResource) yield [resource, entries]
  }

  hidden(resource: string): readonly Pick<ObjectKey, 'namespace' | 'name'>[] {
    this.#check()
    return this.#tables.get(resource)?.hidden() ?? []
  }

  unwritten(resource: string): BaseLayer | undefined {
    this.#check()
    const table = this.#tables.get(resource)
    return table === undefined || (table.size === 0 && table.tombstoneCount === 0)
      ? this.#core.options.baseLayer
      : undefined
  }

  resources(): readonly string[] {
    this.#check()
    const found = new Set<string>()
    for (const table of this.#tables.values()) if (table.size > 0) found.add(table.resource)
    found.delete(markResource)
    for (const resource of this.#core.base.resources) if (this.count({ resource }) > 0) found.add(resource)
    return [...found].sort()
  }

  create(key: LocalKey, value: Uint8Array, options: Waiting): Promise<Entry> {
    const growth = { bytes: value.length, creates: true, resource: key.resource }
    return this.#changing(() => this.#account.admit(this, growth, () => this.#create(key, value, options)))
  }

  async #create(key: LocalKey, value: Uint8Array, options: Waiting): Promise<Entry> {
    const full = this.#fullKey(key)
    const table = this.#tables.get(key.resource)
    const tombstone = table?.tombstone(key.namespace, key.name)
    if (tombstone) {
      const writing = this.#core.store.update(full, value, { ...options, ifRevision: tombstone.revision })
      return this.#written(await raced(writing, 'KeyExists', key), options)
    }
    if (!table?.get(key.namespace, key.name) && this.#base(key)) throw exists(key)
    return this.#written(await this.#core.store.create(full, value, options), options)
  }

  update(key: LocalKey, value: Uint8Array, options: Updating): Promise<Entry> {
    const before = this.#tables.get(key.resource)?.get(key.namespace, key.name)
    const creates = before === undefined
    const growth = { bytes: value.length - (before?.size ?? 0), creates, resource: key.resource }
    const replace = async (): Promise<Entry> => this.#written(await this.#replace(key, value, options), options)
    return this.#changing(() => this.#account.admit(this, growth, replace))
  }

  delete(key: LocalKey, options: Waiting & { ifRevision: Revision }): Promise<Entry> {
    return this.#changing(() => this.#delete(key, options))
  }

  async #delete(key: LocalKey, options: Waiting & { ifRevision: Revision }): Promise<Entry> {
    const last = this.get(key.resource, key.namespace, key.name)
    const full = this.#fullKey(key)
    // Deleting an override would uncover the base layer's object: a tombstone hides it.
    const revision = this.#base(key)
      ? (await this.#replace(key, tombstoneValue, options)).revision
      : await this.#core.store.delete(full, options).catch((error: unknown) => this.#goneBefore(error, options))
    await this.#core.reached(revision, options)
    const event = this.#tables
      .get(key.resource)
      ?.window.after((revision - 1) as Revision)
      .find(({ entry: { key: other } }) => other.namespace === key.namespace && other.name === key.name)
    if (event?.type === 'DELETED') return event.entry
    if (last) return this.#deletedEntry(last, revision)
    throw new StoreError('Unavailable', `${text(key)} was deleted, but its last state is not known here`)
  }

  mark(name: MarkName): Entry | undefined {
    return this.#tables.get(markResource)?.get('', name)
  }

  async setMark(name: MarkName, value: Uint8Array, options: Creating): Promise<Entry> {
    this.#check()
    return this.#written(await this.#core.store.create(this.#markKey(name), value, options), options)
  }

  async replaceMark(name: MarkName, value: Uint8Array, options: Updating): Promise<Entry> {
    this.#check()
    return this.#written(await this.#core.store.update(this.#markKey(name), value, options), options)
  }

  async removeMark(name: MarkName, options: Waiting & { ifRevision: Revision }): Promise<void> {
    this.#check()
    await this.#core.reached(await this.#core.store.delete(this.#markKey(name), options), options)
  }

  async freeze(value: Uint8Array, options: Waiting): Promise<Entry> {
    this.#requireThawed()
    this.#isFreezing = true
    try {
      if (this.#changes > 0) {
        const { promise, resolve } = Promise.withResolvers<undefined>()
        this.#settled = () => resolve(undefined)
        await abortable(promise, options.signal)
      }
      return await this.setMark('frozen', value, options)
    } finally {
      this.#isFreezing = false
      this.#settled = undefined
    }
  }

  expireWatches(): void {
    const error = new StoreError('Compacted', `logical cluster "${this.cluster}" has moved`)
    for (const table of this.#tables.values()) for (const watcher of [...table.watchers]) watcher.fail(error)
  }

  #markKey(name: MarkName): ObjectKey {
    return this.#fullKey({ resource: markResource, namespace: '', name })
  }

  /** Runs a write, for which `freeze` waits. Rejects Frozen instead if there may be none. */
  async #changing<T>(write: () => Promise<T>): Promise<T> {
    this.#check()
    this.#requireThawed()
    this.#changes++
    try {
      return await write()
    } finally {
      if (--this.#changes === 0) this.#settled?.()
    }
  }

  #requireThawed(): void {
    if (this.#isFreezing || this.mark('frozen') !== undefined)
      throw new StoreError('Frozen', 'the logical cluster is being moved to another installation')
  }

  async watch(scope: WatchScope, options: { since: Revision; signal: AbortSignal }): Promise<CacheWatch> {
    this.#check()
    const { since } = options
    if (since < (this.mark('resumed')?.revision ?? 0) || this.mark('moved') !== undefined)
      throw new StoreError('Compacted', `revision ${since} is of another installation`)
    // The earlier owner may have shown revisions after `since` that are lost: the changes since then are unknown.
    if (since < this.#loadedAt && this.#core.store.mayLoseRenewals?.(scope.resource) === true)
      throw new StoreError('Compacted', `renewals after revision ${since} may be lost`)
    let table = this.#table(scope.resource)
    let replay: readonly CacheEvent[] = []
    // The watch cache follows all logical clusters, so it may know every event from before the list that filled this
    // state.
    if (since < table.window.floor && since < this.#loadedAt) await this.#core.reached(this.#loadedAt, options)
    const recent = since < table.window.floor ? this.#core.recent(this.cluster, scope.resource, since) : undefined
    if (recent !== undefined) {
      this.#check()
      table = this.#table(scope.resource)
      replay = recent
    } else if (since < table.window.floor) {
      // Every event after this revision is in memory; for earlier changes the store knows the final states.
      const until = Math.min(table.window.floor, this.#core.recentFrom()) as Revision
      const changes = await this.#core.store.changes({ cluster: this.cluster, resource: scope.resource }, options)
      this.#check()
      table = this.#table(scope.resource)
      const { window } = table
      const newer = until < window.floor ? this.#core.recent(this.cluster, scope.resource, until) : window.after(until)
      if (newer === undefined) throw new StoreError('Compacted', `revision ${since} is too old to watch from`)
      const asEvent = (change: Change): CacheEvent | undefined => this.#pastEvent(change, since)
      const isBase = ({ key }: Entry): boolean => this.#base(key) !== undefined
      replay = replayOf({ changes, since, until, newer, asEvent, isBase })
    } else replay = table.window.after(since)
    const watcher = new CacheWatcher(scope, since, this)
    table.addWatcher(watcher)
    this.#watches++
    this.#core.watcherBegan(watcher)
    this.#core.keep(this)
    for (const event of replay) watcher.offer(event)
    watcher.flush()
    return watcher
  }

  /** True if the list that filled this state included the change. */
  wasLoadedWith(change: Change): boolean {
    return (change.type === 'put' ? change.object.revision : change.revision) <= this.#loadedAt
  }

  /** Applies a change of the store's stream. Returns the event for watchers, and the table they watch. */
  apply(change: Change): { event: CacheEvent; table: ResourceTable } | undefined {
    if (this.wasLoadedWith(change)) return undefined
    const { resource } = change.type === 'put' ? change.object.key : change.key
    const table = this.#table(resource)
    const event = change.type === 'put' ? this.#applyPut(table, change.object) : this.#applyDelete(table, change)
    this.#account.changed?.(this)
    if (!event) return undefined
    if (change.type === 'delete' && change.missed === true) {
      // The revision of the deletion is unknown: no watch may resume from before it.
      table.window.clear(change.revision)
      return { event, table }
    }
    table.window.push(event)
    if (table.window.size > this.#core.windowEvents) table.window.dropFirst()
    return { event, table }
  }

  /** Ends its watches; every later use rejects Closed. It still applies the store's stream. */
  end(): void {
    this.#ended = true
    for (const table of this.#tables.values()) for (const watcher of [...table.watchers]) watcher.end()
  }

  /** Ends it and frees its memory. */
  unload(): void {
    if (this.#unloaded) return
    this.#unloaded = true
    this.end()
    this.#count(-this.#size, -this.#bytes)
    this.#tables.clear()
    this.#dependents = undefined
  }

  #check(): void {
    if (this.#ended) throw new StoreError('Closed', `logical cluster "${this.cluster}" is no longer in memory here`)
  }

  #table(resource: string): ResourceTable {
    let table = this.#tables.get(resource)
    if (!table) {
      table = new ResourceTable(resource, this.#loadedAt)
      this.#tables.set(resource, table)
    }
    return table
  }

  get watcherBytes(): number {
    return this.#core.watcherBytes
  }

  applied(): Revision {
    return this.#core.applied()
  }

  watcherEnded(watcher: CacheWatcher): void {
    this.#core.watcherEnded(watcher)
    const { resource } = watcher.scope
    const table = this.#tables.get(resource)
    if (table?.removeWatcher(watcher) === true) this.#watches--
    if (table?.isIdle && table.window.changes === 0) this.#tables.delete(resource)
  }

  #load(object: StoredObject): void {
    const table = this.#table(object.key.resource)
    if (isTombstone(object.value)) table.setTombstone(object.key.namespace, object.key.name, object.revision)
    else this.#put(table, this.#entry(table, object))
  }

  #put(table: ResourceTable, entry: StoredEntry): Entry | undefined {
    const before = table.set(entry)
    if (this.#core.memory !== undefined) entry.packIn(this.#core.memory)
    before?.leave()
    this.#countOf(table, before ? 0 : 1, entry.size - (before?.size ?? 0))
    if (before) this.#dependents?.remove(before)
    this.#dependents?.add(entry)
    return before
  }

  #remove(table: ResourceTable, { namespace, name }: ObjectKey): Entry | undefined {
    const before = table.remove(namespace, name)
    if (!before) return undefined
    before.leave()
    this.#countOf(table, -1, -before.size)
    this.#dependents?.remove(before)
    return before
  }

  /** Marks are no objects of the tenant, and there are at most four. */
  #countOf({ resource }: ResourceTable, objects: number, bytes: number): void {
    if (resource !== markResource) this.#count(objects, bytes)
  }

  #count(objects: number, bytes: number): void {
    this.#size += objects
    this.#bytes += bytes
    if (this.isCounted) this.#core.count(objects, bytes)
  }

  #entry(table: ResourceTable, { key, revision, createRevision, value }: StoredObject): StoredEntry {
    const { options } = this.#core
    // All keys of a table share one string of the resource; each stored object has its own copy.
    const own = { cluster: this.cluster, resource: table.resource, namespace: key.namespace, name: key.name }
    const bytes = options.stamp(value, revision)
    return new StoredEntry({ key: own, revision, createRevision, bytes, base: false }, options.readFacts)
  }

  #applyPut(table: ResourceTable, object: StoredObject): CacheEvent | undefined {
    const { key, revision } = object
    if (isTombstone(object.value)) {
      const hidden = table.tombstone(key.namespace, key.name) !== undefined
      const last = this.#remove(table, key) ?? (hidden ? undefined : this.#base(key))
      table.setTombstone(key.namespace, key.name, revision)
      return last && { type: 'DELETED', entry: this.#deletedEntry(last, revision), previous: last, revision }
    }
    const entry = this.#entry(table, object)
    const wasTombstone = table.removeTombstone(key.namespace, key.name)
    const previous = this.#put(table, entry) ?? (wasTombstone ? undefined : this.#base(key))
    return previous ? { type: 'MODIFIED', entry, previous, revision } : { type: 'ADDED', entry, revision }
  }

  #applyDelete(table: ResourceTable, { key, revision }: Extract<Change, { type: 'delete' }>): CacheEvent | undefined {
    table.removeTombstone(key.namespace, key.name)
    const last = this.#remove(table, key)
    return last && { type: 'DELETED', entry: this.#deletedEntry(last, revision), previous: last, revision }
  }

  /** The last state as a DELETED event shows it. */
  #deletedEntry(last: Entry, revision: Revision): Entry {
    const { options } = this.#core
    const bytes = options.stamp(last.bytes, revision)
    return new StoredEntry(
      { key: last.key, revision, bytes, createRevision: last.createRevision, base: false },
      options.readFacts,
    )
  }

  /** The event of a change before the window began, derived from the object alone. */
  #pastEvent(change: Change, since: Revision): CacheEvent | undefined {
    const table = this.#table(change.type === 'put' ? change.object.key.resource : change.key.resource)
    if (change.type === 'put' && !isTombstone(change.object.value)) {
      const entry = this.#entry(table, change.object)
      const { revision } = entry
      const isNew = entry.createRevision > since && !this.#base(entry.key)
      return isNew ? { type: 'ADDED', entry, revision } : { type: 'MODIFIED', entry, previous: undefined, revision }
    }
    const revision = change.type === 'put' ? change.object.revision : change.revision
    const last =
      change.type === 'put' ? this.#base(change.object.key) : change.previous && this.#entry(table, change.previous)
    return last && { type: 'DELETED', entry: this.#deletedEntry(last, revision), previous: undefined, revision }
  }

  async #replace(key: LocalKey, value: Uint8Array, options: Updating): Promise<StoredObject> {
    this.#check()
    const full = this.#fullKey(key)
    const table = this.#tables.get(key.resource)
    const { store, base } = this.#core
    if (table?.tombstone(key.namespace, key.name)) throw missing(key)
    if (table?.get(key.namespace, key.name) || !this.#base(key)) return store.update(full, value, options)
    if (options.ifRevision !== base.revision) throw mismatch(key)
    return raced(store.create(full, value, options), 'RevisionMismatch', key)
  }

  /** The entry of a finished write, once reads here see it. */
  async #written(object: StoredObject, options: Waiting): Promise<Entry> {
    await this.#core.reached(object.revision, options)
    const table = this.#tables.get(object.key.resource)
    const entry = table?.get(object.key.namespace, object.key.name)
    if (entry?.revision === object.revision) return entry
    return this.#entry(table ?? new ResourceTable(object.key.resource, object.revision), object)
  }

  /** Rejects with the error of a failed deletion. If another deletion came first, waits until reads here see it. */
  async #goneBefore(error: unknown, options: Waiting): Promise<never> {
    if (isStoreError(error, 'KeyMissing')) await this.#core.reached(await this.#core.store.revision(options), options)
    throw error
  }

  #base(key: LocalKey): Entry | undefined {
    return this.#core.base.hasResource(key.resource) ? this.#core.base.get(this.#fullKey(key)) : undefined
  }

  #fullKey({ resource, namespace, name }: LocalKey): ObjectKey {
    return { cluster: this.cluster, resource, namespace, name }
  }
}

/** A write over the base layer that lost a race against another write: translates the store's error for the caller. */
async function raced(
  writing: Promise<StoredObject>,
  as: 'KeyExists' | 'RevisionMismatch',
  key: LocalKey,
): Promise<StoredObject> {
  try {
    return await writing
  } catch (error) {
    const lost = isStoreError(error) && ['KeyExists', 'KeyMissing', 'RevisionMismatch'].includes(error.code)
    throw lost ? (as === 'KeyExists' ? exists(key) : mismatch(key)) : error
  }
}

function exists(key: LocalKey): StoreError {
  return new StoreError('KeyExists', `${text(key)} exists already`)
}

function missing(key: LocalKey): StoreError {
  return new StoreError('KeyMissing', `${text(key)} does not exist`)
}

function mismatch(key: LocalKey): StoreError {
  return new StoreError('RevisionMismatch', `${text(key)} is at another revision`)
}

function text({ resource, namespace, name }: LocalKey): string {
  return `"${resource}/${namespace === '' ? '' : `${namespace}/`}${name}"`
}
