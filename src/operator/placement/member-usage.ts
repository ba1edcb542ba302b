// Copies and requests of workloads by member. Decisions that are not written yet count, so that two workers never give
// away the same room.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { addAmounts, type Amounts, type Quantity } from '#apimachinery/quantity/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  arrivingStates,
  hasEnded,
  heldAnnotation,
  isPlaceable,
  placedOn,
  type PlacedOn,
  requestsOf,
} from '#crds/index.ts'
import type { Gate } from '#placement/index.ts'
import { clusterOfWorkloadKey } from './workload-key.ts'

/** By member: the requests of the part of a workload that the member is to run. */
type Shares = ReadonlyMap<string, Amounts>

const none: Shares = new Map()

/** Told of requests that a logical cluster has more (1) or less (-1). */
type RequestsChanged = (cluster: string, requests: Amounts, sign: 1 | -1) => void

export class MemberUsage {
  /** By member, the sum of all shares. */
  readonly #sums = new Map<string, Map<string, Quantity>>()
  /** By logical cluster, the sum of all shares. */
  readonly #byCluster = new Map<string, Map<string, Quantity>>()
  readonly #changed: RequestsChanged | undefined
  /** By key of the workload: its shares by the decision on its object, and by later decisions. */
  readonly #shares = new Map<string, Shares>()
  /** By key of the workload: the replicas that members were given (undefined: all), until its object says so. */
  readonly #assumed = new Map<string, Given>()
  /** By key of the workload: the version of the workload that the assumed decision was made about. */
  readonly #assumedOf = new Map<string, DeepReadonly<KubeObject>>()

  /** `changed` is called after each change of what a logical cluster requests. */
  constructor(changed?: RequestsChanged) {
    this.#changed = changed
  }

  /** Requests of all workloads of a logical cluster in members. */
  requestedBy(cluster: string): Amounts {
    return this.#byCluster.get(cluster) ?? new Map<string, Quantity>()
  }

  /** The logical clusters with requests in members. */
  get clusters(): Iterable<string> {
    return this.#byCluster.keys()
  }

  /** Requests of one workload in all members. */
  requestsOfWorkload(key: string): Amounts {
    const sum = new Map<string, Quantity>()
    for (const requests of this.#shares.get(key)?.values() ?? []) addAmounts(sum, requests)
    return sum
  }

  /** The object of a workload has changed; undefined: it is gone. */
  observe(key: string, workload: DeepReadonly<KubeObject> | undefined): void {
    if (workload === undefined) {
      this.#drop(key)
      this.#replace(key, none)
      return
    }
    const there = givenBy(placedOn(workload as KubeObject))
    const assumed = [...(this.#assumed.get(key) ?? [])].filter(
      ([member, replicas]) => !there.has(member) || there.get(member) !== replicas,
    )
    if (assumed.length === 0) this.#drop(key)
    const shares = new Map<string, Amounts>()
    for (const [member, replicas] of there) shares.set(member, requestsOf(workload, replicas))
    // Until the object has the decision, the larger of the two shares counts.
    for (const [member, replicas] of assumed)
      if (isMore(replicas, there.has(member) ? there.get(member) : 0))
        shares.set(member, requestsOf(workload, replicas))
    this.#replace(key, shares)
  }

  /** The workload was given these members: they count from now on, instead of those of an earlier decision. */
  assume(key: string, given: PlacedOn, workload: DeepReadonly<KubeObject>): void {
    const [now, before] = [givenBy(given), this.#assumed.get(key)]
    // The earlier decision about the same version may be written, and our cache behind: both count until a newer
    // version is seen.
    if (before !== undefined && this.#assumedOf.get(key) === workload)
      for (const [member, replicas] of before)
        if (isMore(replicas, now.has(member) ? now.get(member) : 0)) now.set(member, replicas)
    this.#assumed.set(key, now)
    this.#assumedOf.set(key, workload)
    this.observe(key, workload)
  }

  /** The decision could not be written: only what the object says counts. */
  forget(key: string, workload: DeepReadonly<KubeObject> | undefined): void {
    if (this.#drop(key)) this.observe(key, workload)
  }

  /** Requests of all workloads but one in a member. */
  requestedIn(member: string, { without }: { readonly without: string }): Amounts {
    const sum = this.#sums.get(member) ?? new Map<string, Quantity>()
    const own = this.#shares.get(without)?.get(member)
    if (own === undefined) return sum
    const rest = new Map(sum)
    addAmounts(rest, own, -1)
    return rest
  }

  #drop(key: string): boolean {
    this.#assumedOf.delete(key)
    return this.#assumed.delete(key)
  }

  #replace(key: string, after: Shares): void {
    const before = this.#shares.get(key) ?? none
    const cluster = clusterOfWorkloadKey(key)
    this.#add(cluster, before, -1)
    this.#add(cluster, after, 1)
    if (after.size === 0) this.#shares.delete(key)
    else this.#shares.set(key, after)
  }

  #add(cluster: string, shares: Shares, sign: 1 | -1): void {
    for (const [member, requests] of shares) {
      this.#addOf(cluster, requests, sign)
      const sum = this.#sums.get(member) ?? new Map<string, Quantity>()
      addAmounts(sum, requests, sign)
      if ([...sum.values()].every(({ nanos }) => nanos === 0n)) this.#sums.delete(member)
      else this.#sums.set(member, sum)
    }
  }

  #addOf(cluster: string, requests: Amounts, sign: 1 | -1): void {
    const sum = this.#byCluster.get(cluster) ?? new Map<string, Quantity>()
    addAmounts(sum, requests, sign)
    if ([...sum.values()].every(({ nanos }) => nanos === 0n)) this.#byCluster.delete(cluster)
    else this.#byCluster.set(cluster, sum)
    this.#changed?.(cluster, requests, sign)
  }
}

/** By member: the replicas there; undefined: all. */
type Given = ReadonlyMap<string, number | undefined>

/** Members that the workload has, will have next or has not left yet. */
function givenBy(placed: PlacedOn): Map<string, number | undefined> {
  const copies = Object.entries(placed).filter(([, { state }]) => state !== 'Held' && state !== 'Fenced')
  return new Map(copies.map(([member, { replicas, start }]) => [member, start === undefined ? replicas : undefined]))
}

function isMore(one: number | undefined, other: number | undefined): boolean {
  return other !== undefined && (one === undefined || one > other)
}

export class CopyCount {
  readonly #members = new Map<string, number>()

  get isEmpty(): boolean {
    return this.#members.size === 0
  }

  of(member: string): number {
    return this.#members.get(member) ?? 0
  }

  /** The copies of one workload are on the members `after` instead of `before`. */
  replace(before: readonly string[], after: readonly string[]): void {
    for (const member of after) this.#members.set(member, this.of(member) + 1)
    for (const member of before) {
      const left = this.of(member) - 1
      if (left > 0) this.#members.set(member, left)
      else this.#members.delete(member)
    }
  }

  /** Members that have copies besides one copy on each of `own`. */
  without(own: readonly string[]): string[] {
    const ours = new Set(own)
    return [...this.#members].filter(([member, count]) => count > (ours.has(member) ? 1 : 0)).map(([member]) => member)
  }
}

/** The group of workloads that move, are held, divided or nowhere: any member may take them. */
export const unsettledGroup = 'unsettled'

/** The group of workloads with a decision about this member. */
export function memberGroup(member: string): string {
  return `member ${member}`
}

/**
 * The groups of a workload. It is settled if nothing is held and each copy that it should have serves, or its only copy
 * is on the way to serve: that copy stays in its member. A workload that has ended, or that kcp does not place, waits
 * for nothing.
 */
export function memberGroupsOf(workload: DeepReadonly<KubeObject>): string[] {
  const copies = Object.entries(placedOn(workload as KubeObject))
  const isSettled =
    copies.length > 0 &&
    // A divided workload may have a part on any member.
    copies.every(([, { replicas }]) => replicas === undefined) &&
    copies.every(([, { state }]) => state === 'Serving' || (copies.length === 1 && arrivingStates.includes(state))) &&
    workload.metadata.annotations?.[heldAnnotation] === undefined
  const members = copies.map(([member]) => memberGroup(member))
  return isSettled || hasEnded(workload) || !isPlaceable(workload) ? members : [...members, unsettledGroup]
}

/** Whether a workload stays in a member until other workloads of its namespace serve elsewhere. */
export function waitsForSiblings(workload: DeepReadonly<KubeObject>): boolean {
  return Object.values(placedOn(workload as KubeObject)).some(({ wait }) => wait?.gate === siblingsGate)
}

const siblingsGate: Gate = 'NamespaceMayLeave'
