// Decides which logical clusters stay in memory. An evicted cluster is not destroyed: it stays up to date while a
// request holds it and until its memory is collected. A use before that puts it back at once.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { ClusterState } from './cluster-state.ts'

/** Memory of a logical cluster and of an object besides the object's bytes (measured, Node 24). */
const clusterOverhead = 1500
const objectOverhead = 450
/** Number of checks for idle clusters within one idle time. */
export const looksPerIdle = 4
/** Over the limit, this fraction more than needed is evicted, so that not every load pays for an eviction. */
const slack = 1 / 8

export interface ClusterCacheOptions {
  /** A cluster that was not used for this long is evicted, milliseconds. */
  readonly idleMs: number
  /** Memory limit of all clusters together; beyond it the least recently used are evicted. */
  readonly memoryBytes: number
  /** Called at every check, `looksPerIdle` times in an idle time. */
  readonly onLook: () => void
}

export class ClusterCache {
  readonly #options: ClusterCacheOptions
  readonly #loaded = new Map<ClusterId, ClusterState>()
  /** Evicted clusters that a request may still hold. */
  readonly #leaving = new Map<ClusterId, WeakRef<ClusterState>>()
  readonly #timer: NodeJS.Timeout | undefined
  /** Counter of uses: the last used cluster has the highest number. */
  #uses = 0
  /** `#uses` at each of the last checks, oldest first. */
  readonly #usesAtLooks: number[] = []
  #objects = 0
  #bytes = 0
  /** Memory in use when the last eviction found only watched clusters. */
  #vainAt = 0

  constructor(options: ClusterCacheOptions) {
    this.#options = options
    const { idleMs } = options
    if (Number.isFinite(idleMs)) this.#timer = setInterval(() => this.#look(), idleMs / looksPerIdle).unref()
  }

  get size(): number {
    return this.#loaded.size
  }
  get objects(): number {
    return this.#objects
  }
  get bytes(): number {
    return this.#bytes
  }

  ids(): ClusterId[] {
    return [...this.#loaded.keys()]
  }

  /** The cluster if it is in memory, evicted or not; does not count as a use. */
  peek(id: ClusterId): ClusterState | undefined {
    const loaded = this.#loaded.get(id)
    if (loaded !== undefined || this.#leaving.size === 0) return loaded
    return this.#leaving.get(id)?.deref()
  }

  /** The cluster as `peek` returns it, now marked as the most recently used. */
  use(id: ClusterId): ClusterState | undefined {
    const state = this.peek(id)
    if (state !== undefined) this.keep(state)
    return state
  }

  /** Adds a cluster, or puts an evicted one back, as the most recently used. */
  keep(state: ClusterState): void {
    state.lastUse = ++this.#uses
    if (state.isCounted) return
    state.isCounted = true
    this.#loaded.set(state.cluster, state)
    this.#leaving.delete(state.cluster)
    this.count(state.size, state.bytes)
    this.fit()
  }

  /** Counts objects added to or removed from a counted cluster. */
  count(objects: number, bytes: number): void {
    this.#objects += objects
    this.#bytes += bytes
  }

  /** Removes a cluster, evicted or not. */
  drop(id: ClusterId): void {
    const state = this.#loaded.get(id)
    if (state !== undefined) this.#forget(state)
    this.#leaving.delete(id)
  }

  /** Evicts a cluster unless it is watched. Returns whether it was evicted. */
  release(id: ClusterId): boolean {
    const state = this.#loaded.get(id)
    if (state === undefined || state.isWatched) return false
    this.#forget(state)
    this.#leaving.set(id, new WeakRef(state))
    return true
  }

  /**
   * Evicts the least recently used clusters until the rest fits, but never the most recently used one or a watched one.
   */
  fit(): void {
    const { memoryBytes } = this.#options
    const taken = this.#taken()
    if (taken <= memoryBytes || taken <= this.#vainAt) return
    const wanted = memoryBytes * (1 - slack)
    const states = [...this.#loaded.values()].sort((a, b) => a.lastUse - b.lastUse)
    states.pop()
    for (const { cluster } of states) {
      if (this.#taken() <= wanted) break
      this.release(cluster)
    }
    const left = this.#taken()
    this.#vainAt = left > wanted ? left * (1 + slack) : 0
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    this.#options.onLook()
    this.#vainAt = 0
    this.fit()
    const idleSince = this.#usesAtLooks.length >= looksPerIdle ? (this.#usesAtLooks.shift() ?? 0) : 0
    this.#usesAtLooks.push(this.#uses)
    for (const { cluster, lastUse } of this.#loaded.values()) if (lastUse <= idleSince) this.release(cluster)
    for (const [id, state] of this.#leaving) if (state.deref() === undefined) this.#leaving.delete(id)
  }

  #taken(): number {
    return this.#bytes + this.#objects * objectOverhead + this.#loaded.size * clusterOverhead
  }

  #forget(state: ClusterState): void {
    if (!state.isCounted) return
    state.isCounted = false
    this.#loaded.delete(state.cluster)
    this.count(-state.size, -state.bytes)
  }
}
