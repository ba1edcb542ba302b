// Limits on watches and requests per second of subtrees. As with limits on storage (subtree-budgets.ts), all logical
// clusters of a subtree share a limit, and a limit further below takes its part out of it as a slice. A process counts
// only the logical clusters that it owns. If several processes own logical clusters under the same limit, each process
// gets a part of the limit in proportion to how many of them it owns, so that together they never exceed the limit.
import type { ClusterId, ClusterName } from '#apimachinery/meta/index.ts'
import { tooManyRequests, type StatusError } from '#apimachinery/status/index.ts'
import { ancestryOf } from '#virtualapi/request/hierarchy.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { ClusterOwnership } from '#virtualapi/request/ownership.ts'
import { sharingWith, slicesBelow } from './subtree-budgets.ts'

type FlowLimit = 'watches' | 'requestsPerSecond'
const flowLimits: readonly FlowLimit[] = ['watches', 'requestsPerSecond']

interface WatchPool {
  readonly limit: number
  readonly message: string
  open: number
}

interface RatePool {
  readonly perSecond: number
  readonly message: string
  readonly bucket: Bucket
}

/** A token bucket. */
interface Bucket {
  tokens: number
  /** Monotonic milliseconds at which `tokens` was right. */
  at: number
}

/** A burst may have as many requests as the rate allows in `burstSeconds`, but always `leastBurst`. */
const burstSeconds = 0.5
const leastBurst = 5

export interface SubtreeFlowOptions {
  readonly directory: ClusterDirectory
  /** Absent: this process answers for all logical clusters. */
  readonly ownership?: Pick<ClusterOwnership, 'owns' | 'follow'> | undefined
  /** Monotonic milliseconds. */
  readonly now: () => number
}

export class SubtreeFlow {
  readonly #directory: ClusterDirectory
  readonly #owns: (id: ClusterId) => boolean
  readonly #now: () => number
  /** The logical clusters that declare each limit. While there are none, a request costs nothing more. */
  readonly #limited: Record<FlowLimit, Set<ClusterName>> = { watches: new Set(), requestsPerSecond: new Set() }
  /** Open watches by logical cluster, limited or not: a new limit also counts watches that were opened before it. */
  readonly #open = new Map<ClusterId, number>()
  /** By the name of the logical cluster with the limit; made anew after a change of the tree. */
  readonly #watchPools = new Map<ClusterName, WatchPool>()
  readonly #ratePools = new Map<ClusterName, RatePool>()
  /** Buckets outlive the pools, because a change of the tree must not refill them. */
  readonly #buckets = new Map<ClusterName, Bucket>()

  constructor({ directory, ownership, now }: SubtreeFlowOptions) {
    this.#directory = directory
    this.#owns = (id) => ownership?.owns(id) ?? true
    this.#now = now
    directory.onChange(({ before, after }) => this.#follow(before, after))
    const moved = (): void => this.#forgetPools()
    ownership?.follow({ gained: moved, lost: moved })
  }

  /** Counts a request. Throws 429 with Retry-After if the limit is reached. */
  request(id: ClusterId): void {
    if (this.#limited.requestsPerSecond.size === 0) return
    const pool = this.#ratePoolOf(id)
    if (pool === undefined) return
    const { perSecond, bucket, message } = pool
    const now = this.#now()
    bucket.tokens = Math.min(burstOf(perSecond), bucket.tokens + ((now - bucket.at) / 1000) * perSecond)
    bucket.at = now
    if (bucket.tokens < 1) throw tooManyRequests(message, Math.max(1, Math.ceil((1 - bucket.tokens) / perSecond)))
    bucket.tokens--
  }

  /** Counts a watch until the returned function is called. Throws 429 with Retry-After if the limit is reached. */
  watch(id: ClusterId): () => void {
    const pool = this.#watchPoolOf(id)
    if (pool !== undefined && pool.open >= pool.limit) throw tooManyWatches(pool)
    this.#open.set(id, this.watchesOf(id) + 1)
    if (pool !== undefined) pool.open++
    let isOpen = true
    return () => {
      if (!isOpen) return
      isOpen = false
      const after = this.#watchPoolOf(id)
      if (after !== undefined) after.open--
      const left = this.watchesOf(id) - 1
      if (left > 0) this.#open.set(id, left)
      else this.#open.delete(id)
    }
  }

  /** Open watches of users of a logical cluster. */
  watchesOf(id: ClusterId): number {
    return this.#open.get(id) ?? 0
  }

  /** Open watches of the logical cluster and those that share its limit, and what limits below set aside. */
  watchesUsed(name: ClusterName): number {
    let used = slicesBelow(name, 'watches', this.#directory)
    for (const { id } of sharingWith(name, 'watches', this.#directory)) used += this.watchesOf(id)
    return used
  }

  #watchPoolOf(id: ClusterId): WatchPool | undefined {
    if (this.#limited.watches.size === 0) return undefined
    const owner = this.#ownerOf(id, 'watches')
    if (owner === undefined) return undefined
    let pool = this.#watchPools.get(owner.name)
    if (pool === undefined) {
      const { limit, share, text, ids } = this.#limitOf(owner, 'watches')
      const open = ids.reduce((sum, one) => sum + this.watchesOf(one), 0)
      pool = { limit: Math.floor(limit * share), message: `exceeded quota: ${text}, please try again later`, open }
      this.#watchPools.set(owner.name, pool)
    }
    return pool
  }

  #ratePoolOf(id: ClusterId): RatePool | undefined {
    const owner = this.#ownerOf(id, 'requestsPerSecond')
    if (owner === undefined) return undefined
    let pool = this.#ratePools.get(owner.name)
    if (pool === undefined) {
      const { limit, share, text } = this.#limitOf(owner, 'requestsPerSecond')
      // tree-check.ts keeps at least 1 for the logical cluster itself.
      const perSecond = Math.max(1, limit) * share
      const bucket = this.#buckets.get(owner.name) ?? { tokens: burstOf(perSecond), at: this.#now() }
      this.#buckets.set(owner.name, bucket)
      pool = { perSecond, bucket, message: `exceeded quota: ${text}, please try again later` }
      this.#ratePools.set(owner.name, pool)
    }
    return pool
  }

  /** The nearest logical cluster, from this one upwards, that has the limit. */
  #ownerOf(id: ClusterId, limit: FlowLimit): LogicalCluster | undefined {
    const cluster = this.#directory.byId(id)
    if (cluster === undefined) return undefined
    if (cluster.limits?.[limit] !== undefined) return cluster
    return ancestryOf(cluster, this.#directory).ancestors.find(({ limits }) => limits?.[limit] !== undefined)
  }

  /** The limit of all logical clusters that share it, and the share of those that this process owns, from 0 to 1. */
  #limitOf(owner: LogicalCluster, dimension: FlowLimit) {
    const sharing = [...sharingWith(owner.name, dimension, this.#directory)]
    const ids = sharing.map(({ id }) => id).filter(this.#owns)
    const slices = slicesBelow(owner.name, dimension, this.#directory)
    // Limits further up also apply, because admins of the host can declare more here than those limits leave.
    const above = ancestryOf(owner, this.#directory).ancestors.map(({ limits }) => limits?.[dimension] ?? Infinity)
    const declared = Math.min(owner.limits?.[dimension] ?? Infinity, ...above)
    const limit = Math.max(0, declared - slices)
    const aside = slices > 0 ? `, set aside for limits below: ${dimension}=${slices}` : ''
    const text = `${dimension} of logical cluster "${owner.name}" and all below it, limited: ${dimension}=${declared}${aside}`
    return { limit, share: ids.length / Math.max(1, sharing.length), text, ids }
  }

  #follow(before: LogicalCluster | undefined, after: LogicalCluster | undefined): void {
    for (const dimension of flowLimits) {
      const [was, is] = [before?.limits?.[dimension], after?.limits?.[dimension]]
      if (before !== undefined && is === undefined) this.#limited[dimension].delete(before.name)
      if (after !== undefined && is !== undefined) this.#limited[dimension].add(after.name)
      if (was !== is || before?.parent !== after?.parent || before?.id !== after?.id) this.#forgetPools()
    }
    if (before !== undefined && after?.limits?.requestsPerSecond === undefined) this.#buckets.delete(before.name)
  }

  #forgetPools(): void {
    this.#watchPools.clear()
    this.#ratePools.clear()
  }
}

function burstOf(perSecond: number): number {
  return Math.max(leastBurst, perSecond * burstSeconds)
}

function tooManyWatches({ message }: WatchPool): StatusError {
  return tooManyRequests(message)
}
