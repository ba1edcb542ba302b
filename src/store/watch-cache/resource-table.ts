// The objects of one resource in one logical cluster, sorted, with its newest events.
import type { Revision } from '#apimachinery/meta/index.ts'
import { EventWindow } from './event-window.ts'
import type { Entry, CacheEvent } from './watch-cache.ts'
import type { StoredEntry } from './stored-entry.ts'
import type { CacheWatcher } from './watcher.ts'

/** Marks a base object as deleted in this logical cluster: the store keeps a marker at `revision`. */
export interface Tombstone {
  readonly revision: Revision
}

/** The objects written in this logical cluster, without the base layer below them. */
export class ResourceTable {
  readonly resource: string
  readonly window: EventWindow<CacheEvent>
  #watchers: Set<CacheWatcher> | undefined
  /** Sorted by namespace, then name. An array allows binary search and slices, and costs 8 bytes per object. */
  #entries: StoredEntry[] = []
  #tombstones: Map<string, Tombstone> | undefined

  constructor(resource: string, floor: Revision) {
    this.resource = resource
    this.window = new EventWindow(floor)
  }

  get size(): number {
    return this.#entries.length
  }

  get entries(): readonly StoredEntry[] {
    return this.#entries
  }

  get watchers(): Iterable<CacheWatcher> {
    return this.#watchers ?? []
  }

  get tombstoneCount(): number {
    return this.#tombstones?.size ?? 0
  }

  /** True if dropping this table loses nothing. */
  get isIdle(): boolean {
    return this.#entries.length === 0 && !this.#watchers?.size && this.tombstoneCount === 0 && this.window.size === 0
  }

  addWatcher(watcher: CacheWatcher): void {
    this.#watchers ??= new Set()
    this.#watchers.add(watcher)
  }

  /** Returns whether the watcher was registered here. */
  removeWatcher(watcher: CacheWatcher): boolean {
    const was = this.#watchers?.delete(watcher) ?? false
    if (this.#watchers?.size === 0) this.#watchers = undefined
    return was
  }

  get(namespace: string, name: string): Entry | undefined {
    const entry = this.#entries[this.#indexOf(namespace, name)]
    return entry && entry.key.namespace === namespace && entry.key.name === name ? entry : undefined
  }

  /** A copy in key order. */
  list(namespace?: string): Entry[] {
    if (namespace === undefined) return this.#entries.slice()
    return this.#entries.slice(...this.#range(namespace))
  }

  count(namespace?: string): number {
    if (namespace === undefined) return this.#entries.length
    const [from, to] = this.#range(namespace)
    return to - from
  }

  /** Returns the previous entry. */
  set(entry: StoredEntry): StoredEntry | undefined {
    const { namespace, name } = entry.key
    const last = this.#entries.at(-1)
    if (!last || compare(last, namespace, name) < 0) {
      this.#entries.push(entry)
      return undefined
    }
    const at = this.#indexOf(namespace, name)
    const found = this.#entries[at]
    if (found && found.key.namespace === namespace && found.key.name === name) {
      this.#entries[at] = entry
      return found
    }
    this.#entries.splice(at, 0, entry)
    return undefined
  }

  remove(namespace: string, name: string): StoredEntry | undefined {
    const at = this.#indexOf(namespace, name)
    const found = this.#entries[at]
    if (!found || found.key.namespace !== namespace || found.key.name !== name) return undefined
    this.#entries.splice(at, 1)
    return found
  }

  tombstone(namespace: string, name: string): Tombstone | undefined {
    return this.#tombstones?.get(`${namespace}/${name}`)
  }

  /** The keys with a tombstone. */
  hidden(): { namespace: string; name: string }[] {
    return [...(this.#tombstones?.keys() ?? [])].map((place) => {
      const slash = place.indexOf('/')
      return { namespace: place.slice(0, slash), name: place.slice(slash + 1) }
    })
  }

  setTombstone(namespace: string, name: string, revision: Revision): void {
    this.#tombstones ??= new Map()
    this.#tombstones.set(`${namespace}/${name}`, { revision })
  }

  /** Returns whether there was a tombstone. */
  removeTombstone(namespace: string, name: string): boolean {
    return this.#tombstones?.delete(`${namespace}/${name}`) ?? false
  }

  #range(namespace: string): [number, number] {
    const from = this.#indexOf(namespace, '')
    let low = from
    let high = this.#entries.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#entries[middle] as Entry).key.namespace > namespace) high = middle
      else low = middle + 1
    }
    return [from, low]
  }

  /** Index of the first entry at or after the name. */
  #indexOf(namespace: string, name: string): number {
    let low = 0
    let high = this.#entries.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compare(this.#entries[middle] as Entry, namespace, name) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

function compare({ key }: Entry, namespace: string, name: string): number {
  if (key.namespace !== namespace) return key.namespace < namespace ? -1 : 1
  return key.name === name ? 0 : key.name < name ? -1 : 1
}
