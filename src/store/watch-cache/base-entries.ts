// The base layer as entries of one logical cluster. Entries are made on demand and kept in one bounded cache for all
// logical clusters, because thousands of idle ones have the same objects and only their uids differ.
import { LRUCache } from 'lru-cache'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import type { ObjectKey } from '#store/store.ts'
import type { Entry, WatchCacheOptions } from './watch-cache.ts'
import { StoredEntry } from './stored-entry.ts'

const keptBytes = 8 * 1024 * 1024
/** Memory of an entry besides its bytes. */
const entryOverhead = 200

export class BaseEntries {
  readonly revision: Revision
  readonly #options: WatchCacheOptions
  readonly #resources: ReadonlySet<string>
  readonly #kept = new LRUCache<string, Entry>({
    maxSize: keptBytes,
    sizeCalculation: (entry) => entry.size + entryOverhead,
  })

  constructor(options: WatchCacheOptions) {
    this.#options = options
    this.#resources = new Set(options.baseLayer?.resources)
    this.revision = options.baseRevision ?? (1 as Revision)
  }

  get resources(): Iterable<string> {
    return this.#resources
  }

  hasResource(resource: string): boolean {
    return this.#resources.has(resource)
  }

  get(key: ObjectKey): Entry | undefined {
    if (!this.#resources.has(key.resource)) return undefined
    const id = `${key.cluster}/${key.resource}/${key.namespace}/${key.name}`
    const kept = this.#kept.get(id)
    if (kept) return kept
    const value = this.#options.baseLayer?.get(key)
    if (!value) return undefined
    const { revision } = this
    const bytes = this.#options.stamp(value, revision)
    const entry = new StoredEntry(
      { key, revision, createRevision: revision, bytes, base: true },
      this.#options.readFacts,
    )
    this.#kept.set(id, entry)
    return entry
  }

  keys(cluster: ClusterId, resource: string, namespace?: string): readonly ObjectKey[] {
    if (!this.#resources.has(resource)) return []
    return this.#options.baseLayer?.keys(cluster, resource, namespace) ?? []
  }
}

/** The stored value of a tombstone: JSON that is never an object. */
export const tombstoneValue: Uint8Array = Buffer.from('null')

export function isTombstone(value: Uint8Array): boolean {
  return value.length === tombstoneValue.length && tombstoneValue.every((byte, i) => value[i] === byte)
}
