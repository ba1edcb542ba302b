// Storage limits of subtrees. A limit bounds the logical cluster that declares it and all below it; one below with a
// limit of its own takes it out as a slice, used or not, and the others share the rest. A write is checked against the
// nearest limit above it: what it takes of that is a part of the slice that the limits further up have set aside.
import type { ClusterId, ClusterName } from '#apimachinery/meta/index.ts'
import { objectCharge, storageUsed, StoreError, type QuotaAccount } from '#store/index.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { ancestryOf } from '#virtualapi/request/hierarchy.ts'
import type { Place } from './announced-tree.ts'

export const budgetDimensions = ['storage', 'objects'] as const
export type BudgetDimension = (typeof budgetDimensions)[number]

/** Number and bytes of the stored objects of a logical cluster. */
export type Kept = Parameters<QuotaAccount['admit']>[0]
type Growth = Parameters<QuotaAccount['admit']>[1]

/** Reads how much a logical cluster keeps; undefined if it is not in memory. */
export interface KeptObjects {
  inMemory(id: ClusterId): Kept | undefined
  /** Loads it for the time of this call. */
  read(id: ClusterId): Promise<Kept>
}

/** What shares one limit. */
interface Pool {
  readonly owner: ClusterName
  readonly dimension: BudgetDimension
  readonly limit: number
  /** Used by the logical clusters that share the limit. */
  used: number
  /** Set aside for limits below. */
  readonly slices: number
  underWay: number
}

type Tree = Pick<ClusterDirectory, 'byName' | 'childrenOf'>

const parallelReads = 8
/** How often what other replicas write is read, milliseconds. */
const refreshMs = 1000

export class SubtreeBudgets {
  readonly #directory: ClusterDirectory
  readonly #objects: KeptObjects
  /** Logical clusters with a limit. While there is none, a write costs nothing more. */
  readonly #limited = new Set<ClusterId>()
  /** The last known use of the logical clusters that share a limit. */
  readonly #kept = new Map<ClusterId, Kept>()
  readonly #pools = new Map<string, Pool>()
  /** Logical clusters that have changed while they were not in memory here: other replicas write them. */
  readonly #stale = new Set<ClusterId>()
  #refreshedAt = -Infinity

  constructor(directory: ClusterDirectory, objects: KeptObjects) {
    this.#directory = directory
    this.#objects = objects
    directory.onChange(({ before, after }) => this.#follow(before, after))
  }

  /** The account of a logical cluster: its own limit, and the limits of the subtrees that it is in. */
  accountOf(id: ClusterId, own: QuotaAccount): QuotaAccount {
    return {
      admit: (kept, growth, write) =>
        own.admit(kept, growth, () => (this.#limited.size === 0 ? write() : this.#admit(id, kept, growth, write))),
      changed: (kept) => {
        if (this.#kept.size > 0 && this.#kept.has(id)) this.#record(id, kept)
      },
    }
  }

  /** Tells that an object of this logical cluster has changed, whichever replica has written it. */
  touched(id: ClusterId): void {
    if (this.#kept.size > 0 && this.#kept.has(id) && this.#objects.inMemory(id) === undefined) this.#stale.add(id)
  }

  /** What is used of the limits of `name` and of what shares them, and the slices of limits below. */
  async used(name: ClusterName, dimension: BudgetDimension, tree: Tree = this.#directory): Promise<number> {
    const sharing = [...sharingWith(name, dimension, tree)]
    await this.#learn(sharing)
    return this.usedNow(name, dimension, tree)
  }

  /** The same, of what is known already: call `used` before. */
  usedNow(name: ClusterName, dimension: BudgetDimension, tree: Tree): number {
    let used = slicesBelow(name, dimension, tree)
    for (const { id } of sharingWith(name, dimension, tree)) used += amountOf(this.#kept.get(id), dimension)
    return used
  }

  async #admit<T>(id: ClusterId, kept: Kept, growth: Growth, write: () => Promise<T>): Promise<T> {
    if (this.#stale.size > 0) await this.#refresh()
    let pools = this.#poolsOf(id)
    // A change of the tree while a sum is made drops the sums again.
    for (; pools === undefined; pools = this.#poolsOf(id)) await this.#openAll(id)
    if (pools.length === 0) return write()
    this.#record(id, kept)
    const needs = pools.map((pool) => ({ pool, needed: neededOf(growth, pool.dimension) }))
    for (const need of needs) requireRoom(need, growth)
    for (const { pool, needed } of needs) pool.underWay += needed
    try {
      return await write()
    } finally {
      for (const { pool, needed } of needs) pool.underWay -= needed
      this.#record(id, kept)
    }
  }

  /** The nearest logical cluster, from this one upwards, that has a limit. */
  #ownerOf(id: ClusterId, dimension: BudgetDimension): LogicalCluster | undefined {
    const cluster = this.#directory.byId(id)
    if (cluster === undefined) return undefined
    return [cluster, ...ancestryOf(cluster, this.#directory).ancestors].find(
      ({ limits }) => limits?.[dimension] !== undefined,
    )
  }

  /** Reads what other replicas have changed, at most once a second. */
  async #refresh(): Promise<void> {
    const now = performance.now()
    if (now - this.#refreshedAt < refreshMs) return
    this.#refreshedAt = now
    const stale = [...this.#stale]
    this.#stale.clear()
    const next = async (): Promise<void> => {
      for (let one = stale.pop(); one !== undefined; one = stale.pop()) {
        const kept = this.#objects.inMemory(one) ?? (await this.#objects.read(one))
        if (this.#kept.has(one)) this.#record(one, kept)
      }
    }
    await Promise.all(Array.from({ length: Math.min(parallelReads, stale.length) }, next))
  }

  /** The sums that a write is checked against; undefined if they must be made first. */
  #poolsOf(id: ClusterId): Pool[] | undefined {
    const pools: Pool[] = []
    for (const dimension of budgetDimensions) {
      const owner = this.#ownerOf(id, dimension)
      if (owner === undefined) continue
      const pool = this.#pools.get(keyOf(owner.name, dimension))
      if (pool === undefined) return undefined
      pools.push(pool)
    }
    return pools
  }

  async #openAll(id: ClusterId): Promise<void> {
    for (const dimension of budgetDimensions) {
      const owner = this.#ownerOf(id, dimension)
      if (owner !== undefined) await this.#open(owner, dimension)
    }
  }

  async #open(owner: LogicalCluster, dimension: BudgetDimension): Promise<void> {
    await this.#learn([...sharingWith(owner.name, dimension, this.#directory)])
    const key = keyOf(owner.name, dimension)
    const slices = slicesBelow(owner.name, dimension, this.#directory)
    let used = 0
    for (const { id } of sharingWith(owner.name, dimension, this.#directory))
      used += amountOf(this.#kept.get(id), dimension)
    // The limits above bound this one, too, if the admins of a host have declared more than there is.
    const above = ancestryOf(owner, this.#directory).ancestors.map(({ limits }) => limits?.[dimension] ?? Infinity)
    const limit = Math.min(owner.limits?.[dimension] ?? Infinity, ...above)
    if (!this.#pools.has(key)) this.#pools.set(key, { owner: owner.name, dimension, limit, used, slices, underWay: 0 })
  }

  async #learn(clusters: readonly LogicalCluster[]): Promise<void> {
    const missing = clusters.filter(({ id }) => (id as string) !== '' && !this.#kept.has(id))
    const next = async (): Promise<void> => {
      for (let one = missing.pop(); one !== undefined; one = missing.pop()) {
        const kept = this.#objects.inMemory(one.id) ?? (await this.#objects.read(one.id))
        if (!this.#kept.has(one.id)) this.#kept.set(one.id, { size: kept.size, bytes: kept.bytes })
      }
    }
    await Promise.all(Array.from({ length: Math.min(parallelReads, missing.length) }, next))
  }

  #record(id: ClusterId, { size, bytes }: Kept): void {
    const before = this.#kept.get(id)
    if (before?.size === size && before.bytes === bytes) return
    const now = { size, bytes }
    this.#kept.set(id, now)
    if (this.#pools.size === 0) return
    for (const dimension of budgetDimensions) {
      const owner = this.#ownerOf(id, dimension)
      const pool = owner && this.#pools.get(keyOf(owner.name, dimension))
      if (pool !== undefined) pool.used += amountOf(now, dimension) - amountOf(before, dimension)
    }
  }

  /** Sums are made anew after a change of the tree or of a limit, at the next write. */
  #follow(before: LogicalCluster | undefined, after: LogicalCluster | undefined): void {
    if (before !== undefined && before.id !== after?.id) this.#kept.delete(before.id)
    const isLimited = after?.limits?.storage !== undefined || after?.limits?.objects !== undefined
    if (isLimited) this.#limited.add(after.id)
    else if (after !== undefined) this.#limited.delete(after.id)
    if (before !== undefined && before.id !== after?.id) this.#limited.delete(before.id)
    if (this.#pools.size === 0 || isSamePlace(before, after)) return
    // A new logical cluster without limits uses nothing yet.
    if (before === undefined && after !== undefined && !isLimited && !hasAny(this.#directory.childrenOf(after.name))) {
      this.#kept.set(after.id, this.#objects.inMemory(after.id) ?? { size: 0, bytes: 0 })
      return
    }
    this.#pools.clear()
  }
}

function hasAny(some: Iterable<unknown>): boolean {
  for (const _ of some) return true
  return false
}

function isSamePlace(before: Place | undefined, after: Place | undefined): boolean {
  return (
    before?.parent === after?.parent &&
    before?.limits?.storage === after?.limits?.storage &&
    before?.limits?.objects === after?.limits?.objects &&
    (before === undefined) === (after === undefined)
  )
}

/** The logical cluster and all below it that share its limit: those with a limit of their own do not. */
function* sharingWith(
  name: ClusterName,
  dimension: BudgetDimension,
  tree: Tree,
  seen = new Set<ClusterName>(),
): Generator<LogicalCluster> {
  const cluster = tree.byName(name)
  if (cluster === undefined || seen.has(name)) return
  seen.add(name)
  yield cluster
  for (const child of tree.childrenOf(name))
    if (child.limits?.[dimension] === undefined) yield* sharingWith(child.name, dimension, tree, seen)
}

/** The sum of the nearest limits below. */
function slicesBelow(name: ClusterName, dimension: BudgetDimension, tree: Tree): number {
  let slices = 0
  for (const { name: sharing } of sharingWith(name, dimension, tree))
    for (const { limits } of tree.childrenOf(sharing)) slices += limits?.[dimension] ?? 0
  return slices
}

function amountOf(kept: Kept | undefined, dimension: BudgetDimension): number {
  if (kept === undefined) return 0
  return dimension === 'storage' ? storageUsed(kept) : kept.size
}

function neededOf({ bytes, creates }: Growth, dimension: BudgetDimension): number {
  if (dimension === 'objects') return creates ? 1 : 0
  return Math.max(0, bytes + (creates ? objectCharge : 0))
}

/** Fraction by which updates may exceed the limit, so that conditions and deletions still fit when creates do not. */
const updateRoom = 1 / 16

function requireRoom({ pool, needed }: { readonly pool: Pool; readonly needed: number }, { creates }: Growth): void {
  const { owner, dimension, limit, used, slices, underWay } = pool
  if (needed === 0 || used + slices + underWay + needed <= limit * (creates ? 1 : 1 + updateRoom)) return
  const unit = dimension === 'storage' ? 'bytes' : 'objects'
  const numbers = [
    `requested: ${unit}=${String(needed)}`,
    `used: ${unit}=${String(used + underWay)}`,
    ...(slices > 0 ? [`set aside for limits below: ${unit}=${String(slices)}`] : []),
    `limited: ${unit}=${String(limit)}`,
  ]
  const message = `exceeded quota: ${dimension} of logical cluster "${owner}" and all below it, ${numbers.join(', ')}`
  throw new StoreError('OverBudget', message)
}

function keyOf(owner: ClusterName, dimension: BudgetDimension): string {
  return `${dimension} ${owner}`
}
