// The Lease of this process, and the deletion of Leases of processes that have ended. Each write requires the
// resourceVersion of the write before, so it fails if another replica has taken our buckets in between.
import type { Clock } from '#async/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { leaseOf, leases, replicaOf, replicaSelector, type Replica, type ReplicaLease } from './replica-lease.ts'
import type { SeenReplica } from './seen-replicas.ts'

export interface OwnLeaseOptions {
  readonly client: KubeClient
  readonly namespace: string
  readonly clock: Clock
}

export class OwnLease {
  readonly #options: OwnLeaseOptions
  #lease: ReplicaLease | undefined

  constructor(options: OwnLeaseOptions) {
    this.#options = options
  }

  /**
   * Writes our Lease. `raced`: it is ours but has changed; write again. `deposed`: another replica deleted it. Rejects
   * if the outcome is unknown; the next write finds out.
   */
  async write(replica: Replica, signal: AbortSignal): Promise<'written' | 'raced' | 'deposed'> {
    const { client, namespace, clock } = this.#options
    const existing = this.#lease
    const object = leaseOf(replica, { namespace, now: clock.now(), ...(existing && { existing }) })
    try {
      this.#lease = await (existing === undefined
        ? client.create(leases, object, { signal })
        : client.update(leases, object, { signal }))
      return 'written'
    } catch (error) {
      const isRaced = ['Conflict', 'AlreadyExists', 'NotFound'].some((reason) => isStatusError(error, reason))
      // A create that is refused with NotFound means that the namespace is missing.
      if (!isRaced || (existing === undefined && isStatusError(error, 'NotFound'))) throw error
    }
    // An earlier write may have succeeded although its response was lost.
    const current = await client.tryGet<ReplicaLease>(leases, { namespace, name: replica.name }, { signal })
    const isOurs = existing === undefined || current?.metadata.uid === existing.metadata.uid
    this.#lease = isOurs ? current : undefined
    return this.#lease === undefined ? 'deposed' : 'raced'
  }

  /** Deletes our Lease, so that the other replicas take its buckets at once. */
  async release(signal: AbortSignal): Promise<void> {
    const { client, namespace } = this.#options
    const { name = '', uid } = this.#lease?.metadata ?? {}
    this.#lease = undefined
    if (uid === undefined) return
    await client.delete(leases, { namespace, name }, { uid, signal }).catch(tolerate('NotFound', 'Conflict'))
  }

  /** Deletes the Lease of another replica unless it has changed since we saw it. Resolves with whether it is gone. */
  async depose({ name, uid, resourceVersion }: SeenReplica, signal: AbortSignal): Promise<boolean> {
    const { client, namespace } = this.#options
    try {
      await client.delete(leases, { namespace, name }, { uid, resourceVersion, signal })
      return true
    } catch (error) {
      if (isStatusError(error, 'NotFound')) return true
      // The Lease was renewed: the replica is alive.
      if (isStatusError(error, 'Conflict')) return false
      throw error
    }
  }

  /** The Leases of the other replicas as the host has them now. */
  async others(name: string, signal: AbortSignal): Promise<readonly Replica[]> {
    const { client, namespace } = this.#options
    const list = await client.list<ReplicaLease>(leases, { namespace, labelSelector: replicaSelector, signal })
    return list.items.map(replicaOf).filter((replica) => replica.name !== name)
  }
}
