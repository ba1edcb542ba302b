// This process as one of several that share the logical clusters of a host: the logical clusters that it owns, and its
// connections to the other replicas.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { remember } from '#apimachinery/memo/index.ts'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import { bucketCount, BucketOwnership } from '#store/ownership/index.ts'
import { bucketNumberOf } from '#store/host/index.ts'
import type { Logger, Metrics } from '#telemetry/index.ts'
import { PeerConnections, type ClusterOwnership, type VirtualApi } from '#virtualapi/index.ts'
import { installationNamespace } from './host-installation.ts'
import type { Renewal } from './keep-renewed.ts'
import { replicaCredentials, type RenewedReplicaCredentials } from './replica-authority.ts'

/** The other workers of the same `kcp apiserver`, each a replica too. */
export interface Siblings {
  /** Directory of the Unix sockets by which workers reach each other; only our user can enter it. */
  readonly sockets: string
  /** Why another worker is not ready; undefined if all are. */
  readonly notReady: string | undefined
  /** Whether all workers stop together. */
  readonly areStopping: boolean
  /** Calls back whenever another worker has ended. */
  onEnded(callback: () => void): void
}

export interface ReplicaOptions {
  readonly client: KubeClient
  /** Absent: this process is the only worker. */
  readonly siblings?: Siblings
  readonly log: Logger
  readonly metrics: Metrics
  readonly signal: AbortSignal
}

type ClusterFilter = (id: ClusterId) => boolean

export interface ReplicaListener {
  /** Address and port on which this process listens for the other replicas. Port 0: any free port. */
  readonly bindAddress: string
  readonly port: number
  /** Host at which the other replicas reach it. */
  readonly address: string
}

/**
 * Milliseconds between two checks for connections to replicas that have ended. Such connections are cut, which ends the
 * requests that wait for them.
 */
const retainEveryMs = 500

export class Replica implements Disposable {
  readonly peers: PeerConnections
  readonly ownership: ClusterOwnership
  readonly #options: ReplicaOptions
  readonly name: string
  readonly #credentials: RenewedReplicaCredentials
  readonly #listeners = new Set<Parameters<ClusterOwnership['follow']>[0]>()
  #leaving: ((isMoved: ClusterFilter, signal: AbortSignal) => Promise<void>) | undefined
  #buckets: BucketOwnership | undefined

  constructor(options: ReplicaOptions, name: string, credentials: RenewedReplicaCredentials) {
    this.#options = options
    this.name = name
    this.#credentials = credentials
    const { siblings } = options
    this.peers = new PeerConnections(
      () => credentials.current().client,
      siblings && { localSocketOf: (name) => localSocketOf(siblings, name) },
    )
    this.ownership = this.#asOwnership()
  }

  /** Listens for the other replicas, and claims a share. Call it once; the caller disposes of the result. */
  async join(api: VirtualApi, { bindAddress, port, address }: ReplicaListener): Promise<AsyncDisposable & Renewal> {
    const { metrics, siblings, signal } = this.#options
    await using stack = new AsyncDisposableStack()
    if (siblings !== undefined) stack.use(await api.listenLocally(join(siblings.sockets, this.name)))
    const { server } = this.#credentials.current()
    const listener = stack.use(await api.listen({ host: bindAddress, port, ...server }))
    const at = address.includes(':') ? `[${address}]` : address
    const buckets = stack.use(this.#createBuckets(`${at}:${listener.port}`))
    metrics.gauge({
      name: 'kcp_owned_buckets',
      help: `Of the ${bucketCount} buckets of logical clusters, those that this process answers for`,
      read: () => buckets.size,
    })
    await buckets.start(signal)
    siblings?.onEnded(() => buckets.deposeEnded())
    const timer = setInterval(() => this.peers.retain((name) => buckets.isThere(name)), retainEveryMs).unref()
    stack.defer(() => clearInterval(timer))
    const owned = stack.move()
    return {
      what: 'certificates of this replica',
      renew: async () => {
        if (await this.#credentials.renew()) listener.setCertificate(this.#credentials.current().server)
      },
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    }
  }

  /**
   * Sets the function that is called before logical clusters are given up, while they may still be written. It must end
   * when the signal aborts. Call this once.
   */
  beforeLeaving(save: (isMoved: ClusterFilter, signal: AbortSignal) => Promise<void>): void {
    this.#leaving = save
  }

  /** Milliseconds for which this process may still write to a bucket; 0 if it may not. */
  mayWriteForMs(bucket: number): number {
    return this.#buckets?.leftMs(bucket) ?? 0
  }

  /**
   * Gives up all logical clusters. Resolves with whether other replicas take them over: requests can then be forwarded
   * to these.
   */
  async leave(): Promise<boolean> {
    const { siblings } = this.#options
    const staysOn = (name: string): boolean =>
      siblings?.areStopping !== true || localSocketOf(siblings, name) === undefined
    const isShared = this.#buckets?.hasOthers(staysOn) ?? false
    await this.#buckets?.leave()
    return isShared
  }

  [Symbol.dispose](): void {
    this.peers[Symbol.dispose]()
  }

  #createBuckets(address: string): BucketOwnership {
    const { client, log, signal } = this.#options
    const options = { client, namespace: installationNamespace, name: this.name, address, log, signal }
    const buckets = new BucketOwnership(options)
    const tell =
      (what: 'gained' | 'lost') =>
      (moved: ReadonlySet<number>): void => {
        for (const listener of this.#listeners) listener[what]((id) => moved.has(bucketOf(id)))
      }
    const leaving = async (moved: ReadonlySet<number>, signal: AbortSignal): Promise<void> =>
      await this.#leaving?.((id) => moved.has(bucketOf(id)), signal)
    buckets.follow({ gained: tell('gained'), leaving, lost: tell('lost') })
    this.#buckets = buckets
    return buckets
  }

  #asOwnership(): ClusterOwnership {
    const buckets = (): BucketOwnership | undefined => this.#buckets
    return {
      enter: (id) => buckets()?.enter(bucketOf(id)),
      owns: (id) => buckets()?.has(bucketOf(id)) ?? false,
      get isLive() {
        return buckets()?.isLive ?? false
      },
      ownerOf: (id) => buckets()?.ownerOf(bucketOf(id)),
      follow: (listener) => {
        this.#listeners.add(listener)
        return () => void this.#listeners.delete(listener)
      },
    }
  }
}

/** The Unix socket of another worker; undefined for a replica elsewhere. */
function localSocketOf({ sockets }: Siblings, name: string): string | undefined {
  // The name comes from a Lease.
  const path = replicaName.test(name) ? join(sockets, name) : undefined
  return path !== undefined && existsSync(path) ? path : undefined
}

const replicaName = /^kcp-apiserver-[0-9a-f]{10}$/

/** Creates the replica of this process, with a new name and credentials. It owns nothing before it joins. */
export async function createReplica(options: ReplicaOptions): Promise<Replica> {
  const name = `kcp-apiserver-${randomBytes(5).toString('hex')}`
  const { client, signal } = options
  return new Replica(
    options,
    name,
    await replicaCredentials(client, { name, namespace: installationNamespace, signal }),
  )
}

// Bucket numbers by id. Every request needs one, so each id is hashed only once.
const numbers = new Map<ClusterId, number>()
const maxNumbers = 100_000

function bucketOf(id: ClusterId): number {
  return numbers.get(id) ?? remember(numbers, id, bucketNumberOf(id), { max: maxNumbers })
}
