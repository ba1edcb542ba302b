// Which logical clusters are in memory, and which of them go when nobody needs them. What goes is let go of, not torn
// down: who holds it in the middle of a request keeps it, and keeps it true, until the request ends and its memory is
// collected; asked for again before that, it is back at once.
import type { ClusterId } from '../../apimachinery/meta/index.ts'
import type { ClusterState } from './cluster-state.ts'

/** What a logical cluster and an object in it take besides bytes of objects (measured, Node 24). */
const clusterOverhead = 1500
const objectOverhead = 450
/** Looks at what is idle in one idle time. */
export const looksPerIdle = 4
/** Over the budget, so much more than needed goes at once, so that not every load pays for a look at all. */
const slack = 1 / 8

export interface ClusterCacheOptions {
  /** One that was not asked for in so long goes. */
  readonly idleMs: number
  /** What all together may take; beyond it the least recently used go. */
  readonly memoryBytes: number
  /** Called with every look, `looksPerIdle` times in an idle time. */
  readonly onLook: () => void
}

export class ClusterCache {
  readonly #options: ClusterCacheOptions
  readonly #loaded = new Map<ClusterId, ClusterState>()
  /** Let go of; here for as long as somebody still holds them. */
  readonly #leaving = new Map<ClusterId, WeakRef<ClusterState>>()
  readonly #timer: NodeJS.Timeout | undefined
  /** Counts uses: what was used last has the highest number. */
  #uses = 0
  /** `#uses` at each of the last looks, oldest first. */
  readonly #usesAtLooks: number[] = []
  #objects = 0
  #bytes = 0
  /** Looked for something to let go of in vain while this much was here: all of it is watched. */
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

  /** In memory, whether or not it was let go of; without using it. */
  peek(id: ClusterId): ClusterState | undefined {
    const loaded = this.#loaded.get(id)
    if (loaded !== undefined || this.#leaving.size === 0) return loaded
    return this.#leaving.get(id)?.deref()
  }

  /** The same, and from now on the most recently used. */
  use(id: ClusterId): ClusterState | undefined {
    const state = this.peek(id)
    if (state !== undefined) this.keep(state)
    return state
  }

  /** Takes it in, or back in. The most recently used from now on. */
  keep(state: ClusterState): void {
    state.lastUse = ++this.#uses
    if (state.isCounted) return
    state.isCounted = true
    this.#loaded.set(state.cluster, state)
    this.#leaving.delete(state.cluster)
    this.count(state.size, state.bytes)
    this.fit()
  }

  /** Objects that came or went in one that is counted. */
  count(objects: number, bytes: number): void {
    this.#objects += objects
    this.#bytes += bytes
  }

  /** For good: nothing of it is here afterwards. */
  drop(id: ClusterId): void {
    const state = this.#loaded.get(id)
    if (state !== undefined) this.#forget(state)
    this.#leaving.delete(id)
  }

  /** Lets go of it, unless it is watched: then it stays. Returns whether it was let go of. */
  release(id: ClusterId): boolean {
    const state = this.#loaded.get(id)
    if (state === undefined || state.isWatched) return false
    this.#forget(state)
    this.#leaving.set(id, new WeakRef(state))
    return true
  }

  /** Lets the least recently used go until all that is left fits; not the last one used, and none that is watched. */
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
