// The APIExports and APIBindings of all logical clusters, as a few facts of each: how a request finds the consumers of
// an export without loading any logical cluster. It is filled at its first use.
import { LRUCache } from 'lru-cache'
import {
  groupResourceText,
  isJsonObject,
  tryClusterId,
  tryClusterName,
  type ClusterId,
} from '#apimachinery/meta/index.ts'
import {
  apiBindings,
  apiExports,
  identityHashOf,
  identityOf,
  inheritLabel,
  type APIBinding,
  type APIExport,
} from '#crds/index.ts'
import type { BindingFacts, ExportFacts, SharedApis, SharingListener } from '#reconcile/object-graph/index.ts'
import type { CacheEvent, Entry, WatchCache } from '#store/watch-cache/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ClusterDirectory } from '#virtualapi/request/logical-cluster.ts'

export const exportKey = groupResourceText(apiExports)
export const bindingKey = groupResourceText(apiBindings)

export interface SharingDependencies {
  readonly watchCache: Pick<WatchCache, 'observe' | 'listStored'>
  readonly directory: Pick<ClusterDirectory, 'byId' | 'byName'>
  readonly signal: AbortSignal
}

interface Known<Facts> {
  readonly facts: Facts
  readonly revision: number
}

/** The part of the contract that is answered from the index alone. */
type Indexed = Omit<
  SharedApis,
  'idOf' | 'nameOf' | 'parentOf' | 'childrenOf' | 'followChildren' | 'resourcesOf' | 'objections' | 'countObjects'
>

export class SharingIndex implements Indexed {
  readonly #dependencies: SharingDependencies
  readonly #exports = new Map<string, Known<ExportFacts>>()
  readonly #exportsByCluster = new Map<string, Map<string, string>>()
  readonly #exportsByUid = new Map<string, ExportFacts>()
  readonly #bindings = new Map<string, Known<BindingFacts>>()
  /** By logical cluster, the bindings that hold below. */
  readonly #marked = new Map<string, Map<string, BindingFacts>>()
  readonly #bindingsByExport = new Map<string, Map<string, BindingFacts>>()
  /** Nearly every logical cluster has one binding at most, which needs no list. */
  readonly #bindingsByCluster = new Map<string, BindingFacts | readonly BindingFacts[]>()
  readonly #bindingsByName = new Map<string, Map<string, BindingFacts>>()
  readonly #exportsByIdentity = new Map<string, ExportFacts>()
  readonly #listeners = new Set<SharingListener>()
  /** The newest revision at which a consumer of an export has left; by uid of the export. */
  readonly #losses = new Map<string, number>()
  #firstRevision = 0
  #filled: Promise<void> | undefined

  constructor(dependencies: SharingDependencies) {
    this.#dependencies = dependencies
  }

  ready(): Promise<void> {
    this.#filled ??= this.#fill().catch((error: unknown) => {
      this.#filled = undefined
      throw error
    })
    return this.#filled
  }

  exportOf({
    cluster,
    path,
    exportName,
  }: Pick<BindingFacts, 'cluster' | 'path' | 'exportName'>): ExportFacts | undefined {
    const id = path === undefined ? cluster : this.#clusterAt(path)
    const facts = id === undefined ? undefined : this.#exports.get(`${id}/${exportName}`)?.facts
    return facts !== undefined && this.#exportsByUid.get(facts.uid) === facts ? facts : undefined
  }

  exportByUid(uid: string): ExportFacts | undefined {
    return this.#exportsByUid.get(uid)
  }

  /** The export with this identity hash, as clients of the kcp project name it. */
  exportByIdentity(identityHash: string): ExportFacts | undefined {
    return this.#exportsByIdentity.get(identityHash)
  }

  /** The binding of a logical cluster to an export, by its name. */
  binding(exportUid: string, cluster: string, name: string): BindingFacts | undefined {
    return this.#bindingsByExport.get(exportUid)?.get(`${cluster}/${name}`)
  }

  /** The bindings of one logical cluster to an export; nearly always one at most. */
  bindingsIn(cluster: string, exportUid: string): readonly BindingFacts[] {
    return [this.#bindingsByCluster.get(cluster) ?? []].flat().filter((facts) => facts.exportUid === exportUid)
  }

  /** True if a binding gives the resource (PLURAL.GROUP) to the logical cluster. */
  isBound(cluster: string, resource: string): boolean {
    return [this.#bindingsByCluster.get(cluster) ?? []].flat().some(({ resources }) => resources.includes(resource))
  }

  hasBinding(cluster: string, name: string): boolean {
    return this.#bindings.has(`${cluster}/${name}`)
  }

  markedIn(cluster: string): readonly BindingFacts[] {
    return [...(this.#marked.get(cluster)?.values() ?? [])]
  }

  allMarked(): readonly BindingFacts[] {
    return [...this.#marked.values()].flatMap((bindings) => [...bindings.values()])
  }

  /** The revision of the last change of a binding. */
  revisionOf({ cluster, name }: BindingFacts): number {
    return this.#bindings.get(`${cluster}/${name}`)?.revision ?? 0
  }

  /** The revision after which no consumer has left the export, as far as this process knows. */
  lastLoss(exportUid: string): number {
    return Math.max(this.#firstRevision, this.#losses.get(exportUid) ?? 0)
  }

  /** How many bindings of other logical clusters there are to exports of this one; those that are known. */
  consumersElsewhere(cluster: string): number {
    let count = 0
    for (const name of this.exportsOf(cluster)) {
      const facts = this.#exports.get(`${cluster}/${name}`)?.facts
      if (facts === undefined || this.#exportsByUid.get(facts.uid) !== facts) continue
      for (const binding of this.bindingsOf(facts.uid)) if (binding.cluster !== cluster) count++
    }
    return count
  }

  exportsOf(cluster: string): readonly string[] {
    return [...(this.#exportsByCluster.get(cluster)?.values() ?? [])]
  }

  bindingsOf(exportUid: string): Iterable<BindingFacts> {
    return this.#bindingsByExport.get(exportUid)?.values() ?? []
  }

  bindingsTo(clusterName: string, exportName: string): Iterable<BindingFacts> {
    return this.#bindingsByName.get(`${clusterName}/${exportName}`)?.values() ?? []
  }

  follow(listener: SharingListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #clusterAt(path: string): ClusterId | undefined {
    const name = tryClusterName(clusterNameOf(path))
    return name === undefined ? undefined : this.#dependencies.directory.byName(name)?.id
  }

  async #fill(): Promise<void> {
    const { watchCache, signal } = this.#dependencies
    const stop = watchCache.observe({ changed: (event) => this.#changed(event), loaded: () => undefined })
    signal.addEventListener('abort', stop, { once: true })
    for (const resource of [exportKey, bindingKey]) {
      const { entries, revision } = await watchCache.listStored({ resource }, { signal })
      this.#firstRevision = Math.max(this.#firstRevision, revision)
      for (const entry of entries) this.#take(entry, true)
    }
  }

  #changed({ type, entry }: CacheEvent): void {
    const { resource } = entry.key
    if (resource === bindingKey || resource === exportKey) this.#take(entry, type !== 'DELETED')
  }

  #take(entry: Entry, exists: boolean): void {
    if (entry.key.resource === exportKey) this.#takeExport(entry, exists)
    else this.#takeBinding(entry, exists)
  }

  #takeExport(entry: Entry, exists: boolean): void {
    const key = `${entry.key.cluster}/${entry.key.name}`
    const known = this.#exports.get(key)
    // The list may be older than a change that was seen while it was read.
    if (known !== undefined && known.revision >= entry.revision) return
    const facts = exportFacts(entry)
    if (known !== undefined) this.#identify(known.facts, false)
    arrange(this.#exportsByCluster, facts.cluster, key, exists ? facts.name : undefined)
    if (exists) {
      this.#exports.set(key, { facts, revision: entry.revision })
      this.#identify(facts, true)
    } else this.#exports.delete(key)
    for (const listener of this.#listeners) listener.onExport(facts, exists, known?.facts)
  }

  /** Of exports with one identity, the one that was transferred last is in force. */
  #identify(facts: ExportFacts, exists: boolean): void {
    const { uid, transfers } = facts
    const current = this.#exportsByUid.get(uid)
    if (exists) {
      if (current !== undefined && current.transfers > transfers) return
      this.#exportsByUid.set(uid, facts)
      this.#exportsByIdentity.set(identityHashOf(uid), facts)
    } else if (current === facts) {
      this.#exportsByUid.delete(uid)
      this.#exportsByIdentity.delete(identityHashOf(uid))
      if (transfers > 0) this.#fallBack(facts)
    }
  }

  /** Gives an identity back to its former owner, if a transfer ends before all bindings have followed. */
  #fallBack(lost: ExportFacts): void {
    for (const { facts } of this.#exports.values())
      if (facts.uid === lost.uid && facts !== lost) this.#identify(facts, true)
  }

  #takeBinding(entry: Entry, exists: boolean): void {
    const key = `${entry.key.cluster}/${entry.key.name}`
    const known = this.#bindings.get(key)
    if (known !== undefined && known.revision >= entry.revision) return
    const facts = bindingFacts(entry)
    if (known !== undefined) this.#arrange(key, known.facts, false)
    this.#bindings.delete(key)
    const before = known?.facts.exportUid
    if (
      before !== undefined &&
      (!exists || facts.accepted !== known?.facts.accepted || facts.resources !== known.facts.resources)
    )
      this.#losses.set(before, entry.revision)
    if (exists) {
      this.#bindings.set(key, { facts, revision: entry.revision })
      this.#arrange(key, facts, true)
    }
    for (const listener of this.#listeners) listener.onBinding(facts, exists)
  }

  #arrange(key: string, facts: BindingFacts, exists: boolean): void {
    const { cluster, path, exportName, exportUid } = facts
    const id = tryClusterId(cluster)
    const own = id === undefined ? undefined : this.#dependencies.directory.byId(id)?.name
    const clusterName = path === undefined ? (own ?? '') : clusterNameOf(path)
    arrange(this.#bindingsByName, `${clusterName}/${exportName}`, key, exists ? facts : undefined)
    if (facts.labels?.[inheritLabel] === 'true') arrange(this.#marked, cluster, key, exists ? facts : undefined)
    if (exportUid === undefined) return
    arrange(this.#bindingsByExport, exportUid, key, exists ? facts : undefined)
    const others = [this.#bindingsByCluster.get(cluster) ?? []].flat().filter(({ name }) => name !== facts.name)
    const all = exists ? [...others, facts] : others
    const [first] = all
    if (first === undefined) this.#bindingsByCluster.delete(cluster)
    else this.#bindingsByCluster.set(cluster, all.length === 1 ? first : all)
  }
}

/** The name of a logical cluster from a path of the kcp project, such as root:org:team: names are unique here. */
export function clusterNameOf(path: string): string {
  return path.slice(path.lastIndexOf(':') + 1)
}

function arrange<T>(groups: Map<string, Map<string, T>>, group: string, key: string, value: T | undefined): void {
  const members = groups.get(group) ?? new Map<string, T>()
  if (value === undefined) members.delete(key)
  else members.set(key, value)
  if (members.size === 0) groups.delete(group)
  else groups.set(group, members)
}

/** Values that thousands of bindings have alike, kept once. */
const texts = new LRUCache<string, string>({
  max: 10_000,
  maxSize: 8 << 20,
  sizeCalculation: ({ length }) => length + 1,
})
const lists = new LRUCache<string, readonly string[]>({
  max: 10_000,
  maxSize: 8 << 20,
  sizeCalculation: (_, key) => key.length + 1,
})

function shared(text: string): string {
  const known = texts.get(text)
  if (known !== undefined) return known
  texts.set(text, text)
  return text
}

function sharedList(names: readonly string[]): readonly string[] {
  const key = names.join()
  const known = lists.get(key)
  if (known !== undefined) return known
  lists.set(key, names)
  return names
}

function exportFacts(entry: Entry): ExportFacts {
  const object = decodeObject(entry.bytes) as APIExport
  const { spec, status } = object
  const claims = spec?.permissionClaims === undefined ? '' : JSON.stringify(spec.permissionClaims)
  const resources = (spec?.resources ?? []).map(({ group, name: resource }) => groupResourceText({ group, resource }))
  const hasPolicy = spec?.maximalPermissionPolicy?.local !== undefined
  const { revision = 0, rollout, admission } = status ?? {}
  const { cluster, name } = entry.key
  return {
    cluster,
    name,
    uid: identityOf(object),
    transfers: status?.origin?.transfers ?? 0,
    revision,
    released: rollout?.released ?? 100,
    order: spec?.rollout?.order === undefined ? '' : JSON.stringify(spec.rollout.order),
    releasedGroups: rollout?.groups,
    resources,
    hasPolicy,
    claims,
    admission: admission === undefined ? '' : JSON.stringify(admission),
  }
}

function bindingFacts(entry: Entry): BindingFacts {
  const { metadata, spec, status } = decodeObject(entry.bytes) as APIBinding
  const conditions = Array.isArray(status?.conditions) ? status.conditions.filter(isJsonObject) : []
  const conditionOf = (type: string) => conditions.find((condition) => condition.type === type)
  const updated = conditionOf('BindingUpToDate')
  const { path, name: exportName = '' } = spec?.reference?.export ?? {}
  return {
    cluster: entry.key.cluster,
    name: shared(entry.key.name),
    path: path === undefined || path === '' ? undefined : shared(path),
    exportName: shared(exportName),
    exportUid: status?.exportUID === undefined ? undefined : shared(status.exportUID),
    providerName: status?.apiExportClusterName && shared(status.apiExportClusterName),
    revision: status?.revision ?? 0,
    resources: sharedList((status?.boundResources ?? []).map(groupResourceText)),
    accepted: shared(JSON.stringify(status?.appliedPermissionClaims ?? [])),
    labels: entry.facts.labels,
    isReady: conditionOf('Ready')?.status === 'True',
    isDeleting: metadata.deletionTimestamp !== undefined,
    held: updated?.status === 'False' && updated.reason === 'ObjectsWouldBreak' ? updated.message : undefined,
  }
}
