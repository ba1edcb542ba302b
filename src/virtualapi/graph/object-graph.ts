// Who owns whom, for the loops beside the server: read from the hub, told as the hub applies changes.
import { Buffer } from 'node:buffer'
import {
  apiVersionOf,
  parseApiVersion,
  tryClusterId,
  type ClusterId,
  type GroupVersionResource,
  type ObjectMeta,
  type OwnerReference,
} from '../../apimachinery/meta/index.ts'
import type { ClusterObjects, Entry, Hub, HubEvent } from '../../store/hub/index.ts'
import type { ClusterDirectory } from '../clusters/index.ts'
import { builtInResources } from '../registry/builtin-resources.ts'
import type { Catalog } from '../registry/catalog.ts'
import { decodeObject } from '../registry/object-bytes.ts'
import { storageKeyOf } from '../registry/resource-definition.ts'
import type { ResourceInfo } from '../registry/resource-info.ts'
import { storageOf } from '../registry/strategies/conversions.ts'

interface ObjectPlace {
  readonly cluster: string
  readonly resource: string
  readonly namespace: string
  readonly name: string
}
interface ServedResource {
  readonly resource: string
  readonly gvr: GroupVersionResource
  readonly namespaced: boolean
}
interface GraphObject extends ServedResource {
  readonly place: ObjectPlace
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
}
interface GraphObserver {
  touched(place: ObjectPlace): void
  gone(cluster: string, uid: string): void
  released(cluster: string, namespace: string, owners: readonly OwnerReference[]): void
}

/** Have no dependents and no owners that count, and are most of all changes. */
const ignored = new Set(['events', 'leases.coordination.k8s.io'])

/** What garbage collection reads (see `ObjectGraph` in controllers/garbage). Loads a logical cluster only to answer about it. */
export class ObjectGraph {
  private readonly hub: Hub
  private readonly catalog: Catalog
  private readonly directory: ClusterDirectory

  constructor({ hub, catalog, directory }: { hub: Hub; catalog: Catalog; directory: ClusterDirectory }) {
    this.hub = hub
    this.catalog = catalog
    this.directory = directory
  }

  observe(observer: GraphObserver): () => void {
    return this.hub.observe({
      changed: (event) => tell(observer, event),
      loaded: (objects) => tellAll(observer, objects),
    })
  }

  nameOf(cluster: string): string | undefined {
    const id = tryClusterId(cluster)
    return id === undefined ? undefined : this.directory.byId(id)?.name
  }

  async get(place: ObjectPlace, signal: AbortSignal): Promise<GraphObject | undefined> {
    const objects = await this.objects(place.cluster, signal)
    const entry = objects?.get(place.resource, place.namespace, place.name)
    const info = objects === undefined ? undefined : this.served(objects, place.resource)
    if (entry === undefined || info === undefined) return undefined
    const { metadata } = decodeObject(entry.bytes)
    return { ...servedOf(info), place, apiVersion: apiVersionOf(info), kind: info.kind, metadata }
  }

  async dependents(cluster: string, uid: string, signal: AbortSignal): Promise<readonly ObjectPlace[]> {
    const objects = await this.objects(cluster, signal)
    return (objects?.dependents(uid) ?? []).filter(({ key }) => !ignored.has(key.resource)).map(placeOf)
  }

  async resourceOf(
    cluster: string,
    { apiVersion, kind }: { apiVersion: string; kind: string },
    signal: AbortSignal,
  ): Promise<ServedResource | undefined> {
    const { group, version } = parseApiVersion(apiVersion)
    const isIt = (info: ResourceInfo): boolean => info.kind === kind && info.group === group && info.version === version
    const builtIn = builtInResources().find(isIt)
    if (builtIn !== undefined) return servedOf(builtIn)
    const objects = await this.objects(cluster, signal)
    if (objects === undefined) return undefined
    const custom = this.catalog.crds(objects).flatMap(({ compiled }) => compiled.resourceInfos)
    const found = custom.find(isIt)
    return found === undefined ? undefined : servedOf(found)
  }

  async namespaceOf(cluster: string, resource: string, uid: string, signal: AbortSignal): Promise<string | undefined> {
    const objects = await this.objects(cluster, signal)
    return objects?.list({ resource }).find(({ facts }) => facts.uid === uid)?.key.namespace
  }

  private async objects(cluster: string, signal: AbortSignal): Promise<ClusterObjects | undefined> {
    const id = tryClusterId(cluster)
    if (id === undefined || this.directory.byId(id) === undefined) return undefined
    return this.hub.cluster(id, { signal })
  }

  /** One version in which the resource is served. */
  private served(objects: ClusterObjects, resource: string): ResourceInfo | undefined {
    const builtIn = builtInByStorageKey().get(resource)
    if (builtIn !== undefined) return builtIn
    const crd = this.catalog.crds(objects).find(({ entry }) => entry.key.name === resource)
    return crd?.compiled.resourceInfos[0]
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

function placeOf({ key: { cluster, resource, namespace, name } }: Entry): ObjectPlace {
  return { cluster, resource, namespace, name }
}

/** Called for every change there is: looks at bytes, and decodes only what has owners. */
function tell(observer: GraphObserver, event: HubEvent): void {
  const { entry } = event
  const { key } = entry
  if (ignored.has(key.resource)) return
  const cluster: ClusterId = key.cluster
  if (event.type === 'DELETED') {
    const last = event.previous ?? entry
    observer.gone(cluster, last.facts.uid)
    release(observer, last, undefined)
    return
  }
  const previous = event.type === 'MODIFIED' ? event.previous : undefined
  const now = linksOf(entry.bytes)
  const before = previous === undefined ? undefined : linksOf(previous.bytes)
  if (before !== undefined && sameLinks(now, before)) return
  if (now.owners !== '' || now.deleting) observer.touched(placeOf(entry))
  if (previous !== undefined && before !== undefined && before.owners !== now.owners) release(observer, previous, entry)
}

/** What is in memory from now on may have lost its owners while nobody looked. */
function tellAll(observer: GraphObserver, objects: ClusterObjects): void {
  for (const resource of objects.resources()) {
    if (ignored.has(resource)) continue
    for (const entry of objects.list({ resource })) {
      if (entry.base) continue
      const { owners, deleting } = linksOf(entry.bytes)
      if (owners !== '' || deleting) observer.touched(placeOf(entry))
    }
  }
}

/** Tells the owners that an object had and has no more. */
function release(observer: GraphObserver, before: Entry, after: Entry | undefined): void {
  if (before.facts.ownerUids.length === 0) return
  const kept = new Set(after?.facts.ownerUids ?? [])
  // An owner that does not block any more is released as well: it is looked at, no more.
  const { ownerReferences = [], namespace = '' } = decodeObject(before.bytes).metadata
  const released = ownerReferences.filter(
    ({ uid, blockOwnerDeletion }) => !kept.has(uid) || blockOwnerDeletion === true,
  )
  if (released.length > 0) observer.released(before.key.cluster, namespace, released)
}

interface Links {
  /** The list as it is written; empty for none. */
  readonly owners: string
  readonly finalizers: string
  readonly deleting: boolean
}

function linksOf(bytes: Uint8Array): Links {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return {
    owners: listText(buffer, ownersStart),
    finalizers: listText(buffer, finalizersStart),
    deleting: buffer.includes(deletionStart),
  }
}

const ownersStart = Buffer.from('"ownerReferences":[')
const finalizersStart = Buffer.from('"finalizers":[')
const deletionStart = Buffer.from('"deletionTimestamp":"')

/** Metadata is written before all else that may have such a list. */
function listText(buffer: Buffer, start: Buffer): string {
  const at = buffer.indexOf(start)
  return at < 0 ? '' : buffer.toString('latin1', at + start.length, buffer.indexOf(0x5d, at))
}

function sameLinks(a: Links, b: Links): boolean {
  return a.owners === b.owners && a.finalizers === b.finalizers && a.deleting === b.deleting
}
