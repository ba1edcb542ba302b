// The Leases of all replicas as this process sees them, and for how long each has not changed. Times in Leases are
// never compared with our clock: a Lease counts as renewed when we see it change.
import type { Clock } from '#async/index.ts'
import { createInformer, type Informer, type KubeClient } from '#client/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { bucketsToText } from './assign-buckets.ts'
import { replicaOf, replicaSelector, leases, type Replica, type ReplicaLease } from './replica-lease.ts'

export interface SeenReplica extends Replica {
  readonly uid: string
  readonly resourceVersion: string
  /** When this process saw the Lease change last, in monotonic milliseconds. */
  readonly changedAt: number
}

export interface SeenReplicasOptions {
  readonly client: KubeClient
  readonly namespace: string
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  /** Called when a Lease appears, disappears, or changes its claims or its address. */
  readonly onChange: () => void
}

export class SeenReplicas implements AsyncDisposable {
  readonly #byName = new Map<string, SeenReplica>()
  readonly #informer: Informer<ReplicaLease>

  constructor({ clock, onChange, ...rest }: SeenReplicasOptions) {
    this.#informer = createInformer<ReplicaLease>({
      ...rest,
      gvr: leases,
      labelSelector: replicaSelector,
      // The backoff is short because a takeover must not wait for the informer.
      backoff: { firstMs: 100, maxMs: 1000 },
    })
    this.#informer.onChange(({ before, after }) => {
      const name = (after ?? before)?.metadata.name ?? ''
      const known = this.#byName.get(name)
      if (after === undefined) this.#byName.delete(name)
      else {
        const { uid = '', resourceVersion = '' } = after.metadata
        this.#byName.set(name, { ...replicaOf(after), uid, resourceVersion, changedAt: clock.monotonic() })
      }
      if (!saysTheSame(known, this.#byName.get(name))) onChange()
    })
  }

  synced(signal: AbortSignal): Promise<void> {
    return this.#informer.synced(signal)
  }

  all(): Iterable<SeenReplica> {
    return this.#byName.values()
  }

  get(name: string): SeenReplica | undefined {
    return this.#byName.get(name)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#informer[Symbol.asyncDispose]()
  }
}

function saysTheSame(a: SeenReplica | undefined, b: SeenReplica | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return a.uid === b.uid && a.address === b.address && bucketsToText(a.claims) === bucketsToText(b.claims)
}
