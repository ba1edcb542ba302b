// Limits of what subtrees store. A limit bounds the logical cluster that declares it and all below it; one below with a
// limit of its own takes it out as a slice, used or not, and the others share the rest. A write is checked against the
// nearest limit above it: what it takes of that is a part of the slice that the limits further up have set aside.
import type { ClusterId, ClusterName } from '#apimachinery/meta/index.ts'
import { placedLimits } from '#crds/index.ts'
import { objectCharge, storageUsed, StoreError, type QuotaAccount } from '#store/index.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { ancestryOf } from '#virtualapi/request/hierarchy.ts'
import type { Place } from './announced-tree.ts'

export const budgetDimensions = ['storage', 'objects', 'crds'] as const
export type BudgetDimension = (typeof budgetDimensions)[number]
/** The limits out of which a logical cluster below takes its own. */
export const carvedLimits = [...budgetDimensions, 'watches', 'requestsPerSecond', ...placedLimits] as const
export type CarvedLimit = (typeof carvedLimits)[number]

/** Number and bytes of the stored objects of a logical cluster, and how many of them define or bind kinds. */
export interface Kept {
  readonly size: number
  readonly bytes: number
  readonly crds: number
}
type StoredHere = Parameters<QuotaAccount['admit']>[0]
type Growth = Parameters<QuotaAccount['admit']>[1]

const definingResources = ['customresourcedefinitions.apiextensions.k8s.io', 'apibindings.apis.kcp.io'] as const

/** Counts the objects that define or bind kinds. */
export function countDefinitions(countOf: (resource: string) => number): number {
  return definingResources.reduce((sum, resource) => sum + countOf(resource), 0)
}

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
}

/** Writes that are under way, of all that share one limit. */
interface UnderWay {
  amount: number
  writes: number
  /** Writes that fit only if others fail, in order. */
  readonly waiting: (() => void)[]
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
  /** By key of the pool. It outlives the pool: a change of the tree makes the sums anew while writes are under way. */
  readonly #underWay = new Map<string, UnderWay>()
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
      admit: (stored, growth, write) =>
        own.admit(stored, growth, () => (this.#limited.size === 0 ? write() : this.#admit(id, stored, growth, write))),
      changed: (stored) => {
        if (this.#kept.size > 0 && this.#kept.has(id)) this.#record(id, stored)
      },
    }
  }

  /** Tells that an object of this logical cluster has changed, whichever replica has written it. */
  touched(id: ClusterId): void {
    if (this.#kept.size > 0 && this.#kept.has(id) && this.#objects.inMemory(id) === undefined) this.#stale.add(id)
  }

  /** What is used of the limits of `name` and of what shares them, and the slices of limits below. */
  async used(name: ClusterName, dimension: BudgetDimension, tree: Tree = this.#directory): Promise<number> {
    if (this.#stale.size > 0) await this.#refresh()
    const sharing = [...sharingWith(name, dimension, tree)]
    await this.#learn(sharing)
    return this.usedNow(name, dimension, tree)
  }

  /** The same, of what is known already: call `used` before. */
  usedNow(name: ClusterName, dimension: CarvedLimit, tree: Tree): number {
    let used = slicesBelow(name, dimension, tree)
    for (const { id } of sharingWith(name, dimension, tree)) used += amountOf(this.#kept.get(id), dimension)
    return used
  }

  async #admit<T>(id: ClusterId, stored: StoredHere, growth: Growth, write: () => Promise<T>): Promise<T> {
    if (this.#stale.size > 0) await this.#refresh()
    const taken = await this.#take(id, stored, growth)
    try {
      return await write()
    } finally {
      this.#record(id, stored)
      for (const { key, needed } of taken) this.#leave(key, needed)
    }
  }

  /** Counts the write as under way. Rejects OverBudget if there is no room, whatever becomes of other writes. */
  async #take(id: ClusterId, stored: StoredHere, growth: Growth): Promise<{ key: string; needed: number }[]> {
    for (let waited: UnderWay | undefined; ;) {
      let pools = this.#poolsOf(id)
      // A change of the tree while a sum is made drops the sums again.
      for (; pools === undefined; pools = this.#poolsOf(id)) await this.#openAll(id)
      this.#record(id, stored)
      let full: UnderWay | undefined
      try {
        for (const pool of pools) {
          const needed = neededOf(growth, pool.dimension)
          const underWay = this.#underWay.get(keyOf(pool.owner, pool.dimension))
          requireRoom({ pool, needed }, growth)
          if (underWay !== undefined && !fits({ pool, needed: needed + underWay.amount }, growth)) full ??= underWay
        }
      } catch (error) {
        waited?.waiting.shift()?.()
        throw error
      }
      if (full === undefined) {
        const taken = pools.map((pool) => ({
          key: keyOf(pool.owner, pool.dimension),
          needed: neededOf(growth, pool.dimension),
        }))
        for (const { key, needed } of taken) this.#enter(key, needed)
        waited?.waiting.shift()?.()
        return taken
      }
      // Some of the writes under way may fail, and one that has succeeded counts twice until it has ended.
      const { waiting } = full
      const isFirst = waited === full
      await new Promise<void>((resolve) => {
        if (isFirst) waiting.unshift(resolve)
        else waiting.push(resolve)
      })
      waited = full
    }
  }

  #enter(key: string, needed: number): void {
    const underWay = this.#underWay.get(key) ?? { amount: 0, writes: 0, waiting: [] }
    underWay.amount += needed
    underWay.writes++
    this.#underWay.set(key, underWay)
  }

  #leave(key: string, needed: number): void {
    const underWay = this.#underWay.get(key)
    if (underWay === undefined) return
    underWay.amount -= needed
    // The first decides, and then wakes the next.
    underWay.waiting.shift()?.()
    if (--underWay.writes === 0 && underWay.waiting.length === 0) this.#underWay.delete(key)
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
        if (this.#kept.has(one)) this.#keep(one, kept)
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
    if (!this.#pools.has(key)) this.#pools.set(key, { owner: owner.name, dimension, limit, used, slices })
  }

  async #learn(clusters: readonly LogicalCluster[]): Promise<void> {
    const missing = clusters.filter(({ id }) => (id as string) !== '' && !this.#kept.has(id))
    const next = async (): Promise<void> => {
      for (let one = missing.pop(); one !== undefined; one = missing.pop()) {
        const kept = this.#objects.inMemory(one.id) ?? (await this.#objects.read(one.id))
        if (!this.#kept.has(one.id)) this.#kept.set(one.id, kept)
      }
    }
    await Promise.all(Array.from({ length: Math.min(parallelReads, missing.length) }, next))
  }

  #record(id: ClusterId, stored: StoredHere): void {
    const { size, bytes } = stored
    this.#keep(id, { size, bytes, crds: countDefinitions((resource) => stored.countOf(resource)) })
  }

  #keep(id: ClusterId, now: Kept): void {
    const before = this.#kept.get(id)
    if (before?.size === now.size && before.bytes === now.bytes && before.crds === now.crds) return
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
    const isLimited = budgetDimensions.some((dimension) => after?.limits?.[dimension] !== undefined)
    if (isLimited && after !== undefined) this.#limited.add(after.id)
    else if (after !== undefined) this.#limited.delete(after.id)
    if (before !== undefined && before.id !== after?.id) this.#limited.delete(before.id)
    if (this.#pools.size === 0 || isSamePlace(before, after)) return
    // A new logical cluster without limits uses nothing yet.
    if (before === undefined && after !== undefined && !isLimited && !hasAny(this.#directory.childrenOf(after.name))) {
      this.#kept.set(after.id, this.#objects.inMemory(after.id) ?? nothing)
      return
    }
    this.#pools.clear()
  }
}

const nothing: Kept = { size: 0, bytes: 0, crds: 0 }

function hasAny(some: Iterable<unknown>): boolean {
  for (const _ of some) return true
  return false
}

function isSamePlace(before: Place | undefined, after: Place | undefined): boolean {
  return (
    before?.parent === after?.parent &&
    budgetDimensions.every((dimension) => before?.limits?.[dimension] === after?.limits?.[dimension]) &&
    (before === undefined) === (after === undefined)
  )
}

/** The logical cluster and all below it that share its limit: those with a limit of their own do not. */
export function* sharingWith(
  name: ClusterName,
  dimension: CarvedLimit,
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
export function slicesBelow(name: ClusterName, dimension: CarvedLimit, tree: Tree): number {
  let slices = 0
  for (const { name: sharing } of sharingWith(name, dimension, tree))
    for (const { limits } of tree.childrenOf(sharing)) slices += limits?.[dimension] ?? 0
  return slices
}

function amountOf(kept: Kept | undefined, dimension: CarvedLimit): number {
  if (kept === undefined) return 0
  switch (dimension) {
    case 'storage':
      return storageUsed(kept)
    case 'objects':
      return kept.size
    case 'crds':
      return kept.crds
    default:
      // What does not depend on stored objects: only what limits below set aside is known here.
      return 0
  }
}

function neededOf({ bytes, creates, resource }: Growth, dimension: BudgetDimension): number {
  if (dimension === 'crds') return creates ? countDefinitions((one) => Number(one === resource)) : 0
  if (dimension === 'objects') return creates ? 1 : 0
  return Math.max(0, bytes + (creates ? objectCharge : 0))
}

/** Fraction by which updates may exceed the limit, so that conditions and deletions still fit when creates do not. */
const updateRoom = 1 / 16

interface Need {
  readonly pool: Pool
  readonly needed: number
}

function fits({ pool: { limit, used, slices }, needed }: Need, { creates }: Growth): boolean {
  return needed === 0 || used + slices + needed <= limit * (creates ? 1 : 1 + updateRoom)
}

function requireRoom(need: Need, growth: Growth): void {
  if (fits(need, growth)) return
  const { owner, dimension, limit, used, slices } = need.pool
  const unit = dimension === 'storage' ? 'bytes' : dimension
  const numbers = [
    `requested: ${unit}=${String(need.needed)}`,
    `used: ${unit}=${String(used)}`,
    ...(slices > 0 ? [`set aside for limits below: ${unit}=${String(slices)}`] : []),
    `limited: ${unit}=${String(limit)}`,
  ]
  const message = `exceeded quota: ${dimension} of logical cluster "${owner}" and all below it, ${numbers.join(', ')}`
  throw new StoreError('OverBudget', message)
}

function keyOf(owner: ClusterName, dimension: BudgetDimension): string {
  return `${dimension} ${owner}`
}
