// Sheds the load of the largest logical clusters when memory runs out, so that the process survives and the other
// logical clusters are answered.
import { getHeapSpaceStatistics } from 'node:v8'
import { LRUCache } from 'lru-cache'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { tooManyRequests, type StatusError } from '#apimachinery/status/index.ts'
import type { ClusterLoad, WatchCache } from '#store/watch-cache/index.ts'
import { watchBytes } from '#virtualapi/flowcontrol/selector-units.ts'
import { containerMemory, oldGenerationLimit, type Logger, type Metrics } from '#telemetry/index.ts'

/** Shares of the memory that the process may have. */
const thresholds = {
  /** Below this share, no logical cluster is refused any more. */
  relaxed: 0.7,
  /**
   * From this share on, idle logical clusters are unloaded, the largest one is refused lists, watches and large bodies,
   * and only logical clusters with few watches may open new ones.
   */
  refuse: 0.8,
  /**
   * From this share on, no logical cluster may open watches, and the largest one is unloaded, which ends its watches.
   */
  unload: 0.87,
}
const lookMs = 200
/** How many watches may be opened between two looks at the memory. */
const lookWatches = 200
/** A logical cluster with fewer watches may open some more while memory is short: its controllers need them. */
const fewWatches = 100
/**
 * How long new watches may stay among the young objects of the heap, milliseconds. The size of the young objects alone
 * says nothing, because most of them are garbage.
 */
const youngMs = 2000
/** Time for a step to have an effect before the next one, milliseconds. */
const stepMs = 1000
const retryAfterSeconds = 10
/** Memory that an object takes besides its encoded form, bytes. */
const objectBytes = 450
/** A logical cluster that takes fewer bytes is never shed, because that would not help. */
const minLoad = 4 * 1024 * 1024
/**
 * How many unloaded logical clusters are remembered. The number is bounded, because a deleted logical cluster is never
 * asked for again and so never forgotten.
 */
const maxUnloaded = 1000

export interface MemoryGuardOptions {
  readonly watchCache: Pick<WatchCache, 'loaded' | 'loads' | 'release' | 'unload'>
  /** The logical cluster of the installation, which is never shed. */
  readonly exempt: ClusterId | undefined
  readonly log: Logger
  readonly metrics: Metrics
  /**
   * The open watches of a logical cluster in units of a plain watch: a watch with a long selector takes more memory and
   * counts for more. Default: the number of watches.
   */
  readonly watchUnits?: (cluster: ClusterId) => number
  /** Memory of a logical cluster besides its objects and watches, bytes. Default: none. */
  readonly otherBytes?: (cluster: ClusterId) => number
  /**
   * The share of its memory that the process uses, from 0 to 1. `youngBytes`: how many bytes of young objects are known
   * to be in use. Default: the used share of the heap or of the container, whichever is larger.
   */
  readonly usedShare?: (youngBytes: number) => number
  /**
   * Ends the outbound calls of the logical cluster whose unfinished responses hold the most memory, and returns this
   * logical cluster and the bytes; undefined if nothing was ended, because that would free little.
   */
  readonly endCalls?: () => { readonly cluster: string; readonly bytes: number } | undefined
  /**
   * The memory of the process, bytes; decides whether an unloaded logical cluster fits again. Default: the memory of
   * the container. Infinity: the size of the logical cluster does not count.
   */
  readonly limitBytes?: number
}

export class MemoryGuard implements Disposable {
  readonly #options: Required<MemoryGuardOptions>
  readonly #refused = new Set<ClusterId>()
  /** Logical clusters that were unloaded because they took the most memory, and the bytes of their objects. */
  readonly #unloaded = new LRUCache<ClusterId, number>({ max: maxUnloaded })
  readonly #timer: NodeJS.Timeout
  #share = 0
  #lookedAt = -Infinity
  #steppedAt = -Infinity
  #isShort = false
  #isCritical = false
  #watchesSinceLook = 0
  /** When the current period of `youngMs` began, and the units of watches opened in it and in the period before. */
  #opened: readonly [began: number, now: number, before: number] = [-Infinity, 0, 0]

  constructor({
    usedShare = usedMemoryShare,
    limitBytes = containerMemory(),
    endCalls = () => undefined,
    watchUnits = () => 0,
    otherBytes = () => 0,
    ...options
  }: MemoryGuardOptions) {
    this.#options = { ...options, usedShare, limitBytes, endCalls, watchUnits, otherBytes }
    const help = 'Logical clusters that are refused lists, watches and large bodies, because memory is short'
    options.metrics.gauge({ name: 'kcp_memory_refused_clusters', help, read: () => this.#refused.size })
    this.#timer = setInterval(() => this.#look(performance.now()), lookMs).unref()
  }

  /** Throws 429 with Retry-After if memory is short and this logical cluster takes the most of it. */
  requireMemory(cluster: ClusterId): void {
    const now = performance.now()
    if (now - this.#lookedAt >= lookMs) this.#look(now)
    if (!this.#refused.has(cluster)) return
    throw takesTheMost()
  }

  /**
   * Whether a logical cluster that was unloaded must stay unloaded: its next request would load it and fill the memory
   * again, or end the process if it needs more memory than is left.
   */
  mustStayUnloaded(cluster: ClusterId): boolean {
    const bytes = this.#unloaded.peek(cluster)
    if (bytes === undefined) return false
    const { watchCache, limitBytes } = this.#options
    const now = performance.now()
    if (now - this.#lookedAt >= lookMs) this.#look(now)
    const withIt = this.#share + bytes / limitBytes
    const fits = this.#share < thresholds.relaxed && withIt < thresholds.unload
    if (!fits && watchCache.loaded(cluster) === undefined) return true
    this.#unloaded.delete(cluster)
    // The caller loads the logical cluster next, so its share counts when the next one is checked.
    if (fits) this.#share = withIt
    return false
  }

  /** Throws 429 with Retry-After if the logical cluster must stay unloaded. */
  requireRoom(cluster: ClusterId): void {
    if (this.mustStayUnloaded(cluster)) throw takesTheMost()
  }

  /**
   * Throws 429 with Retry-After if the logical cluster, which has `open` watches, may not open one more that counts for
   * `units` watches. While memory is short, open watches stay, and a logical cluster with many watches may not open
   * more: otherwise only the largest one would be refused while another one fills the memory.
   */
  requireMemoryForWatch(cluster: ClusterId, open: number, units = 1): void {
    if (cluster === this.#options.exempt) return
    this.#watchesSinceLook += units
    if (this.#watchesSinceLook >= lookWatches) this.#look(performance.now())
    this.requireMemory(cluster)
    if (this.#isCritical || (this.#isShort && open >= fewWatches))
      throw tooManyRequests('the server is short of memory for more watches, please try again later', retryAfterSeconds)
    this.#opened = [this.#opened[0], this.#opened[1] + units, this.#opened[2]]
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  #look(now: number): void {
    this.#lookedAt = now
    this.#watchesSinceLook = 0
    const [began, opened, before] = this.#opened
    if (now - began >= youngMs) this.#opened = [now, 0, now - began < 2 * youngMs ? opened : 0]
    const share = this.#options.usedShare((opened + before) * watchBytes)
    this.#share = share
    if (share < thresholds.relaxed) this.#refused.clear()
    this.#isShort = share >= (this.#isShort ? thresholds.relaxed : thresholds.refuse)
    this.#isCritical = share >= thresholds.unload
    if (share < thresholds.refuse || now - this.#steppedAt < stepMs) return
    this.#steppedAt = now
    // Outbound calls are ended first: that costs their clients one request each, but neither loaded objects nor
    // watches.
    const ended = this.#options.endCalls()
    if (ended !== undefined) {
      const keys = { usedPercent: Math.round(share * 100), cluster: ended.cluster, bytes: ended.bytes }
      this.#options.log.warn('memory is short: ended the outbound calls that hold the most', keys)
      if (share < thresholds.unload) return
    }
    this.#shed(share)
  }

  /**
   * Unloads idle logical clusters and refuses the largest one that is not refused yet; close to the limit, also unloads
   * the largest one.
   */
  #shed(share: number): void {
    const { watchCache, exempt, log, watchUnits, otherBytes } = this.#options
    const loads = [...watchCache.loads()].filter(({ cluster }) => cluster !== exempt)
    for (const { cluster, watches } of loads) if (watches === 0) watchCache.release(cluster)
    const ofWatches = ({ cluster, watches }: ClusterLoad): number => Math.max(watches, watchUnits(cluster)) * watchBytes
    const heavy = loads
      .map((load) => ({ ...load, ofObjects: load.bytes + load.objects * objectBytes, other: otherBytes(load.cluster) }))
      .map((load) => ({ ...load, total: load.ofObjects + ofWatches(load) + load.other }))
      .filter(({ total }) => total >= minLoad)
      .sort((a, b) => b.total - a.total)
    const refused = heavy.find(({ cluster }) => !this.#refused.has(cluster))
    if (refused !== undefined) this.#refused.add(refused.cluster)
    const unloaded = share >= thresholds.unload ? heavy[0] : undefined
    if (unloaded !== undefined) {
      this.#refused.add(unloaded.cluster)
      this.#unloaded.set(unloaded.cluster, unloaded.bytes + unloaded.objects * objectBytes)
      watchCache.unload(unloaded.cluster)
    }
    const keys = { usedPercent: Math.round(share * 100), refused: refused?.cluster, unloaded: unloaded?.cluster }
    log.warn('memory is short', { ...keys, watches: unloaded?.watches, bytes: (unloaded ?? refused)?.total })
  }
}

function takesTheMost(): StatusError {
  const why = 'the server is short of memory, and this logical cluster takes the most of it, please try again later'
  return tooManyRequests(why, retryAfterSeconds)
}

const youngSpaces = new Set(['new_space', 'new_large_object_space'])

/**
 * The used share of the heap for old objects, or of the container's memory, whichever is larger. `inUse`: the bytes of
 * young objects that will become old; the young generation may hold more of them than the old one has room for.
 */
function usedMemoryShare(inUse: number): number {
  let used = 0
  let young = 0
  for (const { space_name: name, space_used_size: size } of getHeapSpaceStatistics())
    if (youngSpaces.has(name)) young += size
    else used += size
  used += Math.min(young, inUse)
  return Math.max(used / oldGenerationLimit(), residentBytes() / containerMemory())
}

let lastResidentBytes = 0

/** The resident memory, or what it was last: it comes from a file, and clients may hold every descriptor. */
function residentBytes(): number {
  try {
    lastResidentBytes = process.memoryUsage.rss()
  } catch {
    // The value from before is close: a process without descriptors takes no more connections.
  }
  return lastResidentBytes
}
