// The controllers' view of all logical clusters: changes of objects, and owner references. The graph reads from the
// watch cache, and notifies its listeners when the watch cache applies a change.
import { sleep, yieldEvery } from '#async/index.ts'
import {
  apiVersionOf,
  parseApiVersion,
  tryClusterId,
  type ClusterId,
  type KubeObject,
} from '#apimachinery/meta/index.ts'
import type {
  Candidate,
  ChangeListener,
  GraphObject,
  GraphObserver,
  ObjectChange,
  ObjectFeed,
  ObjectGraph as ObjectGraphContract,
  ObjectKey,
  ServedResource,
  SelectedObject,
} from '#reconcile/object-graph/index.ts'
import { isStoreError } from '#store/index.ts'
import type { BaseLayer, ClusterObjects, Entry, WatchCache, CacheEvent } from '#store/watch-cache/index.ts'
import type { ClusterDirectory } from '#virtualapi/request/logical-cluster.ts'
import type { ClusterFilter, ClusterOwnership } from '#virtualapi/request/ownership.ts'
import { builtInResources } from '#virtualapi/kinds/resources/builtin-resources.ts'
import type { Catalog } from '#virtualapi/catalog/catalog.ts'
import { asBuffer, decodeMetadata, decodeObject, kindOf } from '#virtualapi/kinds/resources/object-bytes.ts'
import { storageKeyOf } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import { storageOf } from '#virtualapi/kinds/conversions.ts'
import { outdatedQuotas } from '#virtualapi/write/quota/index.ts'
import { Gains } from './gains.ts'
import { loadUnfinishedClusters } from './load-unfinished-clusters.ts'
import { QuotaNamespaces, type NamespaceListener } from './quota-namespaces.ts'
import { linksOf, sameLinks, objectsToCollect } from './object-links.ts'

/**
 * Resources that garbage collection skips, as kube-controller-manager does. The owners of Events do not matter, and
 * Events expire.
 */
const ignored = new Set(['events'])
/** The pause between two searches for unfinished work if the store could not respond to the first. */
const searchAgainMs = 5000
/** The longest time for which `select` runs before other work gets a turn. */
const sliceMs = 5

/**
 * The server's implementation of src/reconcile/object-graph. It loads a logical cluster only when a method needs its
 * objects.
 */
export class ObjectGraph implements ObjectGraphContract, ObjectFeed {
  readonly #watchCache: WatchCache
  readonly #catalog: Catalog
  readonly #directory: ClusterDirectory
  readonly #observers = new Set<GraphObserver>()
  readonly #quotas = new QuotaNamespaces()
  readonly #listeners = new Map<string, Set<ChangeListener>>()
  /**
   * Logical clusters that were loaded since this process began, or since it took them over. Observers get all later
   * changes of them, whether or not they stay loaded.
   */
  readonly #loadedOnce = new Set<ClusterId>()
  /** Logical clusters that were searched for unfinished work since this process began, or since it took them over. */
  readonly #searched = new Set<ClusterId>()
  readonly #ownership: ClusterOwnership | undefined
  readonly #baseLayer: BaseLayer | undefined

  constructor({
    watchCache,
    catalog,
    directory,
    ownership,
    baseLayer,
  }: {
    watchCache: WatchCache
    catalog: Catalog
    directory: ClusterDirectory
    /** The logical clusters of which listeners get changes: those that this process owns. Absent: all. */
    ownership?: ClusterOwnership
    /** The objects that every logical cluster is created with. Absent: none. */
    baseLayer?: BaseLayer
  }) {
    this.#baseLayer = baseLayer
    this.#ownership = ownership
    this.#watchCache = watchCache
    this.#catalog = catalog
    this.#directory = directory
    // The subscription never ends, because the graph lives as long as the watch cache.
    watchCache.observe({
      changed: (event) => this.#changed(event),
      loaded: (objects) => this.#firstLook(objects),
    })
    directory.onChange(({ before, after }) => {
      if (before === undefined || after?.id === before.id) return
      this.#forget(before.id)
    })
    // Logical clusters that moved between processes are as unknown as after a start.
    const moved = (isMoved: ClusterFilter): void => {
      for (const id of new Set([...this.#loadedOnce, ...this.#searched])) if (isMoved(id)) this.#forget(id)
    }
    ownership?.follow({ gained: moved, lost: moved })
  }

  observe(observer: GraphObserver): () => void {
    this.#observers.add(observer)
    for (const objects of this.#inMemory()) notifyObjectsToCollect(observer, objects)
    return () => void this.#observers.delete(observer)
  }

  follow(resource: string, listener: ChangeListener): () => void {
    const listeners = this.#listeners.get(resource) ?? new Set()
    this.#listeners.set(resource, listeners.add(listener))
    for (const objects of this.#inMemory()) notifyWritten(listener, objects, resource)
    return () => void listeners.delete(listener)
  }

  followQuotas(listener: NamespaceListener): () => void {
    return this.#quotas.follow(listener)
  }

  async outdatedQuotas(cluster: string, namespace: string, signal: AbortSignal): Promise<readonly KubeObject[]> {
    const objects = await this.#objects(cluster, signal)
    return objects === undefined ? [] : outdatedQuotas(objects, namespace, Date.now())
  }

  async loadUnfinished(signal: AbortSignal): Promise<void> {
    const [watchCache, directory, searched, ownership] = [
      this.#watchCache,
      this.#directory,
      this.#searched,
      this.#ownership,
    ]
    const isDone: ClusterFilter = (id) => this.#loadedOnce.has(id) || searched.has(id) || !this.#owns(id)
    if (ownership === undefined) {
      await loadUnfinishedClusters({ watchCache, directory, isDone, searched }, signal)
      return
    }
    const gains = new Gains(ownership)
    try {
      for (;;) {
        const seen = gains.count
        const isComplete = await isSearched(() =>
          loadUnfinishedClusters({ watchCache, directory, isDone, searched }, signal),
        )
        if (isComplete) await gains.after(seen, signal)
        else await sleep(searchAgainMs, signal, { unref: true })
      }
    } finally {
      gains[Symbol.dispose]()
    }
  }

  nameOf(cluster: string): string | undefined {
    const id = tryClusterId(cluster)
    return id === undefined || !this.#owns(id) ? undefined : this.#directory.byId(id)?.name
  }

  async get(key: ObjectKey, signal: AbortSignal): Promise<GraphObject | undefined> {
    const objects = await this.#objects(key.cluster, signal)
    const entry = objects?.get(key.resource, key.namespace, key.name)
    if (objects !== undefined) await this.#catalog.load(objects, signal)
    const info = objects === undefined ? undefined : this.#served(objects, key.resource)
    if (entry === undefined || info === undefined) return undefined
    const metadata = decodeMetadata(entry.bytes)
    return { ...servedOf(info), key, apiVersion: apiVersionOf(info), kind: info.kind, metadata }
  }

  initial({ cluster, ...key }: ObjectKey): KubeObject | undefined {
    const id = tryClusterId(cluster)
    const bytes = id === undefined ? undefined : this.#baseLayer?.get({ cluster: id, ...key })
    return bytes === undefined ? undefined : decodeObject(bytes)
  }

  async dependents(cluster: string, uid: string, signal: AbortSignal): Promise<readonly ObjectKey[]> {
    const objects = await this.#objects(cluster, signal)
    return (objects?.dependents(uid) ?? []).filter(({ key }) => !ignored.has(key.resource)).map(keyOf)
  }

  async isBlocked({ cluster, namespace }: ObjectKey, uid: string, signal: AbortSignal): Promise<boolean> {
    const objects = await this.#objects(cluster, signal)
    if (objects !== undefined) await this.#catalog.load(objects, signal)
    for (const blocker of objects?.blockers(uid) ?? []) {
      if (namespace !== '' && blocker.namespace !== namespace) continue
      // An object of a resource that is not served cannot be deleted, so it does not block its owner.
      if (!ignored.has(blocker.resource) && objects !== undefined && this.#served(objects, blocker.resource))
        return true
    }
    return false
  }

  async resourceOf(
    cluster: string,
    { apiVersion, kind }: { apiVersion: string; kind: string },
    signal: AbortSignal,
  ): Promise<ServedResource | undefined> {
    const { group, version } = parseApiVersion(apiVersion)
    const matches = (info: ResourceInfo): boolean =>
      info.group === group && info.version === version && namesKind(kind, info.kind)
    const builtIn = builtInResources().find(matches)
    if (builtIn !== undefined) return servedOf(builtIn)
    const objects = await this.#objects(cluster, signal)
    if (objects === undefined) return undefined
    await this.#catalog.load(objects, signal)
    const definitions = [...this.#catalog.crds(objects), ...this.#catalog.shared(objects)]
    const custom = definitions.flatMap(({ compiled }) => compiled.resourceInfos)
    const found = custom.find(matches)
    return found === undefined ? undefined : servedOf(found)
  }

  async select(
    cluster: string,
    resource: string,
    isWanted: (candidate: Candidate) => boolean,
    signal: AbortSignal,
  ): Promise<readonly SelectedObject[]> {
    const objects = await this.#objects(cluster, signal)
    const selected: SelectedObject[] = []
    const pause = yieldEvery(sliceMs, signal)
    for (const entry of objects?.list({ resource }) ?? []) {
      const due = pause()
      if (due !== undefined) await due
      if (isWanted(candidateOf(entry))) selected.push(selectedOf(entry))
    }
    return selected.sort((a, b) => (a.key.name < b.key.name ? -1 : 1))
  }

  async namespaceOf(cluster: string, resource: string, uid: string, signal: AbortSignal): Promise<string | undefined> {
    const objects = await this.#objects(cluster, signal)
    return objects?.list({ resource }).find(({ facts }) => facts.uid === uid)?.key.namespace
  }

  async #objects(cluster: string, signal: AbortSignal): Promise<ClusterObjects | undefined> {
    const id = tryClusterId(cluster)
    if (id === undefined || !this.#owns(id)) return undefined
    if (this.#directory.byId(id) === undefined || this.#watchCache.hasEnded(id)) return undefined
    return this.#watchCache.cluster(id, { signal })
  }

  *#inMemory(): Generator<ClusterObjects> {
    for (const id of this.#loadedOnce) {
      const objects = this.#watchCache.loaded(id)
      if (objects !== undefined) yield objects
    }
  }

  #owns(id: ClusterId): boolean {
    return this.#ownership?.owns(id) ?? true
  }

  #forget(id: ClusterId): void {
    this.#loadedOnce.delete(id)
    this.#searched.delete(id)
    this.#quotas.forget(id)
  }

  #firstLook(objects: ClusterObjects): void {
    if (this.#loadedOnce.has(objects.cluster) || !this.#owns(objects.cluster)) return
    this.#loadedOnce.add(objects.cluster)
    this.#quotas.loaded(objects)
    for (const observer of this.#observers) notifyObjectsToCollect(observer, objects)
    for (const [resource, listeners] of this.#listeners)
      for (const listener of listeners) notifyWritten(listener, objects, resource)
  }

  #changed(event: CacheEvent): void {
    if (!this.#owns(event.entry.key.cluster)) return
    for (const observer of this.#observers) notifyObserver(observer, event)
    this.#quotas.changed(event)
    const listeners = this.#listeners.get(event.entry.key.resource)
    if (listeners === undefined) return
    const exists = event.type !== 'DELETED'
    const change = changeOf(event.entry, { exists, isNew: event.type === 'ADDED' })
    for (const listener of listeners) listener(change)
  }

  /** The resource in one of its served versions. */
  #served(objects: ClusterObjects, resource: string): ResourceInfo | undefined {
    const builtIn = builtInByStorageKey().get(resource)
    if (builtIn !== undefined) return builtIn
    const crd =
      this.#catalog.crds(objects).find(({ entry }) => entry.key.name === resource) ??
      this.#catalog.sharedDefinition(objects, resource)
    if (crd === undefined) return undefined
    // The stored version, if it is served, needs no conversion webhook for deletions.
    const { resourceInfos, storageVersion } = crd.compiled
    return resourceInfos.find(({ version }) => version === storageVersion) ?? resourceInfos[0]
  }
}

/** Runs `search`. Resolves with false if the store could not respond. */
async function isSearched(search: () => Promise<void>): Promise<boolean> {
  try {
    await search()
    return true
  } catch (error) {
    if (isStoreError(error)) return false
    throw error
  }
}

let byStorageKey: Map<string, ResourceInfo> | undefined

function builtInByStorageKey(): Map<string, ResourceInfo> {
  if (byStorageKey !== undefined) return byStorageKey
  byStorageKey = new Map()
  for (const info of builtInResources()) {
    const { storageKey, storageApiVersion } = storageOf(info)
    if (!byStorageKey.has(storageKey) || storageApiVersion === apiVersionOf(info)) byStorageKey.set(storageKey, info)
  }
  return byStorageKey
}

function servedOf(info: ResourceInfo): ServedResource {
  const { group, version, resource, namespaced, builtIn } = info
  const storageKey = builtIn ? storageOf(info).storageKey : storageKeyOf(info)
  return { resource: storageKey, gvr: { group, version, resource }, namespaced }
}

function keyOf({ key: { cluster, resource, namespace, name } }: Entry): ObjectKey {
  return { cluster, resource, namespace, name }
}

function selectedOf(entry: Entry): SelectedObject {
  return {
    key: keyOf(entry),
    revision: entry.revision,
    labels: entry.facts.labels ?? {},
    bytes: entry.size,
    object: () => decodeObject(entry.bytes),
  }
}

function candidateOf(entry: Entry): Candidate {
  return {
    get labels() {
      return entry.facts.labels ?? {}
    },
    contains: (text) => asBuffer(entry.bytes).includes(text),
  }
}

function changeOf(entry: Entry, { exists, isNew }: Pick<ObjectChange, 'exists' | 'isNew'>): ObjectChange {
  const contains = (text: string): boolean => asBuffer(entry.bytes).includes(text)
  return {
    key: keyOf(entry),
    exists,
    isNew,
    get deleting() {
      return linksOf(entry.bytes).deleting
    },
    get labels() {
      return entry.facts.labels
    },
    contains,
    object: () => decodeObject(entry.bytes),
  }
}

/** Notifies of every written object of a resource, and of every deleted bootstrap object. */
function notifyWritten(listener: ChangeListener, objects: ClusterObjects, resource: string): void {
  for (const [written, entries] of objects.written()) {
    if (written !== resource) continue
    for (const entry of entries) listener(changeOf(entry, { exists: true, isNew: true }))
  }
  for (const { namespace, name } of objects.hidden(resource)) {
    const key = { cluster: objects.cluster, resource, namespace, name }
    const nothing = { labels: undefined, contains: () => false, object: () => undefined }
    listener({ key, exists: false, isNew: true, deleting: false, ...nothing })
  }
}

function notifyObjectsToCollect(observer: GraphObserver, objects: ClusterObjects): void {
  for (const entry of objectsToCollect(objects, ignored)) observer.onChanged(keyOf(entry))
}

/** Notifies garbage collection of a change. Called for every change, so it decodes only objects with owners. */
function notifyObserver(observer: GraphObserver, event: CacheEvent): void {
  const { entry } = event
  const { key } = entry
  if (ignored.has(key.resource)) return
  if (event.type === 'DELETED') {
    const last = event.previous ?? entry
    observer.onDeleted({ ...keyOf(last), kind: kindOf(last.bytes), uid: last.facts.uid })
    notifyOwnersRemoved(observer, last, undefined)
    return
  }
  const previous = event.type === 'MODIFIED' ? event.previous : undefined
  const now = linksOf(entry.bytes)
  const before = previous === undefined ? undefined : linksOf(previous.bytes)
  if (before !== undefined && sameLinks(now, before)) return
  if (now.owners !== '' || now.deleting) observer.onChanged(keyOf(entry))
  if (previous !== undefined && before !== undefined && before.owners !== now.owners)
    notifyOwnersRemoved(observer, previous, entry)
}

/** True if an owner reference with kind `named` means this kind; the name may be in lower case. */
function namesKind(named: string, kind: string): boolean {
  return named === kind || named === kind.toLowerCase()
}

/** Notifies of the owners that an object no longer has. */
function notifyOwnersRemoved(observer: GraphObserver, before: Entry, after: Entry | undefined): void {
  if (before.facts.ownerUids.length === 0) return
  const kept = new Set(after?.facts.ownerUids ?? [])
  // An owner whose reference may no longer block it is reported, too, because a needless check does no harm.
  const { ownerReferences = [], namespace = '' } = decodeMetadata(before.bytes)
  const released = ownerReferences.filter(
    ({ uid, blockOwnerDeletion }) => !kept.has(uid) || blockOwnerDeletion === true,
  )
  if (released.length > 0) observer.onOwnersRemoved(before.key.cluster, namespace, released)
}
