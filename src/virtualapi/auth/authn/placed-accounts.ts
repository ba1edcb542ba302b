// The members in which a ServiceAccount runs, by the scheduler's decision alone: a member is not asked.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { placedOn, serviceAccountsOf, workloadKinds } from '#crds/index.ts'
import type { ClusterObjects, Entry, WatchCache } from '#store/watch-cache/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import { storageKeyOf } from '#virtualapi/kinds/resources/resource-definition.ts'

export interface PlacedAccount {
  readonly cluster: ClusterId
  readonly member: string
  readonly namespace: string
  readonly serviceAccount: string
}

/** The upstream ServiceAccount if a workload that is placed on the member runs as it; undefined otherwise. */
export type FindPlacedAccount = (
  account: PlacedAccount,
  now: number,
  signal: AbortSignal,
) => Promise<{ readonly uid: string } | undefined>

/**
 * Returns a function that keeps an index of each logical cluster that it was called for, as long as the logical cluster
 * is in memory.
 */
export function findPlacedAccount(watchCache: WatchCache): FindPlacedAccount {
  const indexes = new WeakMap<ClusterObjects, PlacedAccounts>()
  return async ({ cluster, member, namespace, serviceAccount }, now, signal) => {
    const objects = await watchCache.cluster(cluster, { signal })
    let index = indexes.get(objects)
    if (index === undefined) indexes.set(objects, (index = new PlacedAccounts(objects)))
    if (!index.has({ member, namespace, serviceAccount }, now)) return undefined
    // A deleted ServiceAccount ends the tokens of its pods, as in every cluster.
    return objects.get('serviceaccounts', namespace, serviceAccount)?.facts
  }
}

interface WorkloadAccounts {
  readonly members: readonly string[]
  /**
   * By ServiceAccount: the wall clock, in milliseconds, until which pods may run as it; Infinity for the ServiceAccount
   * of the template.
   */
  readonly accounts: ReadonlyMap<string, number>
}

/** The workloads of one logical cluster that are placed. A change of one workload costs only that workload. */
class PlacedAccounts {
  readonly #objects: ClusterObjects
  /**
   * By `MEMBER NAMESPACE ACCOUNT`: the workloads whose pods run there as this ServiceAccount, with the time until which
   * they may.
   */
  readonly #untils = new Map<string, Map<string, number>>()
  /** By workload: its keys in #untils. */
  readonly #keys = new Map<string, readonly string[]>()
  readonly #seen = new Map<string, number>()

  constructor(objects: ClusterObjects) {
    this.#objects = objects
  }

  has({ member, namespace, serviceAccount }: Omit<PlacedAccount, 'cluster'>, now: number): boolean {
    for (const { gvr } of workloadKinds) this.#refresh(storageKeyOf(gvr))
    for (const until of this.#untils.get(`${member} ${namespace} ${serviceAccount}`)?.values() ?? [])
      if (now < until) return true
    return false
  }

  #refresh(resource: string): void {
    const changes = this.#objects.changes(resource)
    const seen = this.#seen.get(resource)
    if (seen === changes) return
    this.#seen.set(resource, changes)
    const changed = seen === undefined ? undefined : this.#objects.changedNames(resource, seen)
    if (changed === undefined) {
      for (const workload of [...this.#keys.keys()]) if (workload.startsWith(`${resource} `)) this.#remove(workload)
      for (const entry of this.#objects.list({ resource })) this.#add(resource, entry)
      return
    }
    for (const { namespace, name } of changed) {
      this.#remove(`${resource} ${namespace} ${name}`)
      const entry = this.#objects.get(resource, namespace, name)
      if (entry !== undefined) this.#add(resource, entry)
    }
  }

  #add(resource: string, entry: Entry): void {
    const { namespace, name } = entry.key
    const { members, accounts } = accountsOf(entry)
    const workload = `${resource} ${namespace} ${name}`
    const keys: string[] = []
    for (const member of members)
      for (const [account, until] of accounts) {
        const key = `${member} ${namespace} ${account}`
        const untils = this.#untils.get(key) ?? new Map<string, number>()
        this.#untils.set(key, untils.set(workload, until))
        keys.push(key)
      }
    if (keys.length > 0) this.#keys.set(workload, keys)
  }

  #remove(workload: string): void {
    for (const key of this.#keys.get(workload) ?? []) {
      const untils = this.#untils.get(key)
      untils?.delete(workload)
      if (untils?.size === 0) this.#untils.delete(key)
    }
    this.#keys.delete(workload)
  }
}

/**
 * The states of a copy without pods. A copy that is leaving still has pods, which need their token for their last
 * requests, such as giving up a Lease.
 */
const withoutPods = ['Assumed', 'Held']

function accountsOf({ bytes }: Entry): WorkloadAccounts {
  const object = decodeObject(bytes)
  const members = Object.entries(placedOn(object))
    .filter(([, { state }]) => !withoutPods.includes(state))
    .map(([member]) => member)
  return { members, accounts: members.length === 0 ? new Map() : serviceAccountsOf(object) }
}
