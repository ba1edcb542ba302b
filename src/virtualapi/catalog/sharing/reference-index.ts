// The objects that objects of an exported resource name, such as the Secrets in `spec.secretRef.name` of Widgets. Each
// reference of a permission claim has an index; without such claims there is none.
import {
  groupResourceText,
  isJsonObject,
  tryClusterId,
  type ClusterId,
  type JsonObject,
  type JsonValue,
} from '#apimachinery/meta/index.ts'
import type { ClaimReference } from '#crds/index.ts'
import type { SharingIndex } from './sharing-index.ts'
import type { CacheEvent, Entry, WatchCache } from '#store/watch-cache/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'

/** Called with the objects, as `NAMESPACE/NAME`, that are named from now on or no longer. Must be quick. */
export type ReferenceListener = (cluster: ClusterId, objects: readonly string[]) => void

export interface ReferenceDependencies {
  readonly watchCache: Pick<WatchCache, 'observe' | 'listAll'>
  readonly index: Pick<SharingIndex, 'bindingsIn' | 'bindingsOf' | 'follow'>
  readonly signal: AbortSignal
}

interface Named {
  readonly revision: number
  readonly objects: readonly string[]
}

/** Names beyond this number in one object are left out. */
const maxNames = 100

export class ReferenceIndex {
  readonly #exportUid: string
  readonly #reference: ClaimReference
  readonly #resource: string
  readonly #byObject = new Map<string, Named>()
  /** How many objects name an object, by logical cluster and `NAMESPACE/NAME`. */
  readonly #counts = new Map<string, number>()
  readonly #consumers = new Set<ClusterId>()
  readonly #listeners = new Set<ReferenceListener>()
  #filled: Promise<void> | undefined

  constructor(exportUid: string, reference: ClaimReference) {
    this.#exportUid = exportUid
    this.#reference = reference
    const { group = '', resource } = reference
    this.#resource = groupResourceText({ group, resource })
  }

  /** Whether an object of the logical cluster names this one. */
  names(cluster: ClusterId, { namespace, name }: { readonly namespace: string; readonly name: string }): boolean {
    return this.#counts.has(`${cluster}/${namespace}/${name}`)
  }

  follow(listener: ReferenceListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Resolves once all existing objects are known. */
  ready(dependencies: ReferenceDependencies): Promise<void> {
    this.#filled ??= this.#fill(dependencies).catch((error: unknown) => {
      this.#filled = undefined
      throw error
    })
    return this.#filled
  }

  async #fill(dependencies: ReferenceDependencies): Promise<void> {
    const { watchCache, index, signal } = dependencies
    const stops = [
      watchCache.observe({ changed: (event) => this.#changed(event, index), loaded: () => undefined }),
      index.follow({
        onExport: () => undefined,
        onBinding: ({ cluster, exportUid }, exists) => {
          const id = tryClusterId(cluster)
          if (exportUid !== this.#exportUid || id === undefined) return
          if (!exists) this.#forget(id)
          else if (!this.#consumers.has(id)) void this.#read([id], dependencies).catch(() => undefined)
        },
      }),
    ]
    signal.addEventListener('abort', () => stops.forEach((stop) => stop()), { once: true })
    const ids = Array.from(index.bindingsOf(this.#exportUid), ({ cluster }) => tryClusterId(cluster))
    await this.#read(
      ids.filter((id) => id !== undefined),
      dependencies,
    )
  }

  /** Reads the objects of consumers, which may have some from an earlier binding. */
  async #read(ids: readonly ClusterId[], { watchCache, signal }: ReferenceDependencies): Promise<void> {
    for (const id of ids) this.#consumers.add(id)
    const { entries } = await watchCache.listAll({ resource: this.#resource }, [...ids].sort(), { signal })
    for (const entry of entries) this.#take(entry, true)
  }

  #changed({ type, entry }: CacheEvent, index: ReferenceDependencies['index']): void {
    const { resource, cluster } = entry.key
    if (resource !== this.#resource || index.bindingsIn(cluster, this.#exportUid).length === 0) return
    this.#take(entry, type !== 'DELETED')
  }

  #forget(id: ClusterId): void {
    this.#consumers.delete(id)
    for (const map of [this.#byObject, this.#counts])
      for (const key of map.keys()) if (key.startsWith(`${id}/`)) map.delete(key)
  }

  #take(entry: Entry, exists: boolean): void {
    const { cluster, namespace, name } = entry.key
    const key = `${cluster}/${namespace}/${name}`
    const before = this.#byObject.get(key)
    // The list may be older than a change that was seen while it was read.
    if (before !== undefined && before.revision >= entry.revision) return
    const objects = exists ? namedBy(entry, this.#reference) : []
    if (objects.length === 0) this.#byObject.delete(key)
    else this.#byObject.set(key, { revision: entry.revision, objects })
    const was = new Set(before?.objects)
    const is = new Set(objects)
    const changed: string[] = []
    for (const object of is) if (!was.has(object) && this.#count(cluster, object, 1) === 1) changed.push(object)
    for (const object of was) if (!is.has(object) && this.#count(cluster, object, -1) === 0) changed.push(object)
    if (changed.length > 0) for (const listener of this.#listeners) listener(cluster, changed)
  }

  #count(cluster: ClusterId, object: string, by: number): number {
    const key = `${cluster}/${object}`
    const count = (this.#counts.get(key) ?? 0) + by
    if (count > 0) this.#counts.set(key, count)
    else this.#counts.delete(key)
    return count
  }
}

/** The objects that an entry names, as `NAMESPACE/NAME`. */
function namedBy(entry: Entry, { namePath, namespacePath }: ClaimReference): string[] {
  const object = decodeObject(entry.bytes) as unknown as JsonObject
  const [given] = namespacePath === undefined ? [] : textsAt(object, namespacePath)
  const namespace = given ?? entry.key.namespace
  return textsAt(object, namePath).map((name) => `${namespace}/${name}`)
}

/** The texts at a path such as `spec.secrets[*].name`; none where the path leads nowhere. */
export function textsAt(object: JsonObject, path: string): string[] {
  let values: JsonValue[] = [object]
  for (const step of path.replace(/^\./, '').split('.')) {
    const field = step.replace(/\[\*\]$/, '')
    const found = values
      .flatMap((value) => (isJsonObject(value) ? [value[field]] : []))
      .filter((one) => one !== undefined)
    values = (field === step ? found : found.flatMap((one) => (Array.isArray(one) ? one : []))).slice(0, maxNames)
  }
  return values.filter((value) => typeof value === 'string' && value !== '') as string[]
}
