// The limits of what the workloads of logical clusters and all below them request in members: cpu, memory, pods. The
// scheduler is one process, so it counts for all of them. What limits below set aside counts as used.
import { quantityText, tryQuantity, type Amounts, type Quantity } from '#apimachinery/quantity/index.ts'
import type { DeepReadonly, Informer } from '#client/index.ts'
import { maxLevelsBelow, placedLimits, type LogicalCluster, type PlacedLimit } from '#crds/index.ts'
import type { PlacedRoom } from '#placement/index.ts'

type Cluster = DeepReadonly<LogicalCluster>
type Clusters = Informer<LogicalCluster>['store']

const nano = 1_000_000_000n

export class PlacedLimits {
  readonly #clusters: Clusters
  readonly #sumsOf: (cluster: string) => Amounts
  /** How many logical clusters have such a limit. While there is none, a decision costs nothing more. */
  readonly #limited = new Set<string>()
  /** Children by parent, while there is a limit; made anew after a change of the tree. */
  #children: Map<string, string[]> | undefined
  /** What the workloads that share a limit request, in nanos. */
  readonly #used = new Map<string, bigint>()
  /** Keys of the workloads that wait, by the logical cluster with the limit. */
  readonly #waiting = new Map<string, Set<string>>()
  readonly #waitsFor = new Map<string, readonly string[]>()

  /** `sumsOf`: what the workloads of one logical cluster request. */
  constructor(clusters: Clusters, sumsOf: (cluster: string) => Amounts) {
    this.#clusters = clusters
    this.#sumsOf = sumsOf
  }

  /** A LogicalCluster has changed. */
  clusterChanged(before: Cluster | undefined, after: Cluster | undefined): void {
    const name = (after ?? before)?.metadata.name ?? ''
    if (placedLimitsOf(after) !== '') this.#limited.add(name)
    else this.#limited.delete(name)
    const isMoved = before?.spec?.parentRef?.name !== after?.spec?.parentRef?.name
    const isSame = placedLimitsOf(before) === placedLimitsOf(after)
    if (before !== undefined && after !== undefined && !isMoved && isSame) return
    this.#children = undefined
    this.#used.clear()
  }

  /** The requests of workloads of a logical cluster have changed. */
  requestsChanged(cluster: string, requests: Amounts, sign: 1 | -1): void {
    if (this.#limited.size === 0) return
    for (const limit of placedLimits) {
      const change = requests.get(limit)?.nanos ?? 0n
      const owner = change === 0n ? undefined : this.#ownerOf(cluster, limit)
      if (owner === undefined) continue
      const key = `${limit} ${owner}`
      const used = this.#used.get(key)
      if (used !== undefined) this.#used.set(key, used + (sign === 1 ? change : -change))
    }
  }

  /** What is left for a workload of the logical cluster that requests `own` now; undefined where there is no limit. */
  roomFor(cluster: string, own: Amounts): PlacedRoom | undefined {
    if (this.#limited.size === 0) return undefined
    const free = new Map<string, Quantity>()
    const texts: string[] = []
    for (const limit of placedLimits) {
      const owner = this.#ownerOf(cluster, limit)
      if (owner === undefined) continue
      const declared = quantityOfLimit(this.#clusters.get(owner), limit)
      if (declared === undefined) continue
      const left = declared.nanos - this.#slicesBelow(owner, limit) - this.#usedOf(owner, limit)
      const rest = left + (own.get(limit)?.nanos ?? 0n)
      free.set(limit, { nanos: rest > 0n ? rest : 0n, format: declared.format })
      texts.push(`${limit} of logical cluster "${owner}" and all below it, limited: ${quantityText(declared)}`)
    }
    return texts.length === 0 ? undefined : { free, limits: texts.join('; ') }
  }

  /** The logical clusters with such a limit. */
  get limited(): Iterable<string> {
    return this.#limited
  }

  /** What is used of a limit that this logical cluster has, with what limits below set aside; a quantity. */
  usedOf(cluster: string, limit: PlacedLimit): string {
    const nanos = this.#usedOf(cluster, limit) + this.#slicesBelow(cluster, limit)
    return quantityText({ nanos, format: limit === 'memory' ? 'BinarySI' : 'DecimalSI' })
  }

  /** Notes whether the workload waits for room. */
  noteWaiting(key: string, cluster: string, isWaiting: boolean): void {
    for (const owner of this.#waitsFor.get(key) ?? []) {
      const keys = this.#waiting.get(owner)
      keys?.delete(key)
      if (keys?.size === 0) this.#waiting.delete(owner)
    }
    this.#waitsFor.delete(key)
    if (!isWaiting) return
    const owners = [...new Set(placedLimits.map((limit) => this.#ownerOf(cluster, limit)))].filter(
      (owner) => owner !== undefined,
    )
    for (const owner of owners) this.#waiting.set(owner, (this.#waiting.get(owner) ?? new Set()).add(key))
    this.#waitsFor.set(key, owners)
  }

  /** The workloads that wait longest for room that this logical cluster may have left; at most `most`. */
  *waitingFor(cluster: string, most: number): Generator<string> {
    if (this.#waiting.size === 0) return
    for (const owner of new Set(placedLimits.map((limit) => this.#ownerOf(cluster, limit)))) {
      let count = 0
      for (const key of this.#waiting.get(owner ?? '') ?? []) {
        if (count++ >= most) break
        yield key
      }
    }
  }

  /** The nearest logical cluster, from this one upwards, that has the limit. */
  #ownerOf(cluster: string, limit: PlacedLimit): string | undefined {
    let next: string | undefined = cluster
    for (let level = 0; next !== undefined && level <= maxLevelsBelow; level++) {
      const found: Cluster | undefined = this.#clusters.get(next)
      if (found?.spec?.limits?.[limit] !== undefined) return next
      next = found?.spec?.parentRef?.name
    }
    return undefined
  }

  #usedOf(owner: string, limit: PlacedLimit): bigint {
    const key = `${limit} ${owner}`
    let used = this.#used.get(key)
    if (used === undefined) {
      used = 0n
      for (const name of this.#sharing(owner, limit)) used += this.#sumsOf(name).get(limit)?.nanos ?? 0n
      this.#used.set(key, used)
    }
    return used
  }

  #slicesBelow(owner: string, limit: PlacedLimit): bigint {
    let slices = 0n
    for (const name of this.#sharing(owner, limit))
      for (const child of this.#childrenOf(name))
        slices += quantityOfLimit(this.#clusters.get(child), limit)?.nanos ?? 0n
    return slices
  }

  /** The logical cluster and all below it that share its limit. */
  *#sharing(owner: string, limit: PlacedLimit, seen = new Set<string>()): Generator<string> {
    if (seen.has(owner)) return
    seen.add(owner)
    yield owner
    for (const child of this.#childrenOf(owner))
      if (this.#clusters.get(child)?.spec?.limits?.[limit] === undefined) yield* this.#sharing(child, limit, seen)
  }

  #childrenOf(name: string): readonly string[] {
    if (this.#children === undefined) {
      this.#children = new Map()
      for (const { metadata, spec } of this.#clusters.list()) {
        const parent = spec?.parentRef?.name
        if (parent === undefined) continue
        const children = this.#children.get(parent)
        if (children === undefined) this.#children.set(parent, [metadata.name])
        else children.push(metadata.name)
      }
    }
    return this.#children.get(name) ?? []
  }
}

/** The limits of what is placed, as text; empty if there are none. */
export function placedLimitsOf(cluster: Cluster | undefined): string {
  return placedLimits
    .flatMap((limit) => {
      const value = cluster?.spec?.limits?.[limit]
      return value === undefined ? [] : [`${limit}=${value}`]
    })
    .join()
}

function quantityOfLimit(cluster: Cluster | undefined, limit: PlacedLimit): Quantity | undefined {
  const value = cluster?.spec?.limits?.[limit]
  if (value === undefined) return undefined
  return typeof value === 'number' ? { nanos: BigInt(value) * nano, format: 'DecimalSI' } : tryQuantity(value)
}
