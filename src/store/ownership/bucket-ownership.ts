// The buckets of logical clusters that this process owns among several. Each replica holds a Lease that names the
// buckets it claims. A replica takes a bucket in this order: it writes the claim, then lists the Leases of all, and
// holds the bucket only if no other claims it. A replica gives up a bucket by ending its requests and then removing the
// claim. Two replicas therefore never hold the same bucket, however late one sees the other's Lease;
// docs/design/0012-ownership.md has the argument.
import { systemClock, type Clock } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { assignBuckets, bucketCount } from './assign-buckets.ts'
import { OwnLease } from './own-lease.ts'
import { hasEnded, processMark } from './process-mark.ts'
import { type Replica, routesOf } from './replica-lease.ts'
import { SeenReplicas, type SeenReplica } from './seen-replicas.ts'
import { Tenures, type Tenure } from './tenures.ts'

export interface BucketOwnershipOptions {
  readonly client: KubeClient
  readonly namespace: string
  /** Unique among all replicas that ever were: the name of the Lease. */
  readonly name: string
  /** `HOST:PORT` at which the other replicas reach this one. */
  readonly address: string
  readonly log: Logger
  readonly signal: AbortSignal
  /**
   * Duration of the Lease. Default 10 s. Other replicas take over one margin after its end; this process stops one
   * margin before its end.
   */
  readonly leaseMs?: number
  /**
   * Duration of the Lease of a replica that has been alone for a while, so that it continues to serve during a short
   * outage of the host. Default 75 s.
   */
  readonly aloneLeaseMs?: number
  /** A replica counts as alone after this time without a Lease of another replica. Default 60 s. */
  readonly aloneAfterMs?: number
  /** Time between two renewals of the Lease. Default 2 s. */
  readonly renewMs?: number
  /** Margin for clocks that run at different speeds. Default 1 s. */
  readonly marginMs?: number
  /** How long requests may take to end before their bucket is given up. Default 6 s. */
  readonly drainMs?: number
  readonly clock?: Clock
}

/** Called when buckets change owners. The callbacks must not throw; those without a promise must return at once. */
export interface BucketListener {
  /** Called before the first request for these buckets is admitted. */
  readonly gained: (buckets: ReadonlySet<number>) => void
  /**
   * Called after the last request for these buckets, while they are still held: the last chance to write. Must end when
   * the signal aborts.
   */
  readonly leaving?: (buckets: ReadonlySet<number>, signal: AbortSignal) => Promise<void>
  /** Called after the last request for these buckets, or at once if the Lease was lost. */
  readonly lost: (buckets: ReadonlySet<number>) => void
}

/** Time limit for the last writes before a bucket is given up, in milliseconds. The Lease is not renewed meanwhile. */
const lastWritesMs = 1000
/** Milliseconds between two checks while another replica still claims a bucket that this one waits for. */
const againMs = 250
/** Milliseconds between two attempts while the host does not respond. */
const afterFailureMs = 1000

export class BucketOwnership implements AsyncDisposable {
  readonly #options: Required<BucketOwnershipOptions>
  readonly #tenures: Tenures
  readonly #lease: OwnLease
  readonly #seen: SeenReplicas
  readonly #listeners = new Set<BucketListener>()
  /** The claims in our Lease, as it was written or will be written next. They always include the held buckets. */
  #claims: ReadonlySet<number> = new Set()
  #isWritten = false
  #writtenAt = -Infinity
  /** When another replica last had a Lease, in monotonic milliseconds. */
  #sharedAt: number
  #leaving = false
  /** A process of this machine has ended: the next round looks for its Lease. */
  #someEnded = false
  #failures = 0
  #kicked = true
  #wake: () => void = () => undefined
  #routes: readonly (SeenReplica | undefined)[] = []
  #running: Promise<void> = Promise.resolve()
  /** uids of Leases that were deleted here, and may still be seen for a moment. */
  readonly #deposed = new Set<string>()

  constructor({
    leaseMs = 10_000,
    aloneLeaseMs = 75_000,
    aloneAfterMs = 60_000,
    renewMs = 2000,
    marginMs = 1000,
    drainMs = 6000,
    clock = systemClock,
    ...rest
  }: BucketOwnershipOptions) {
    this.#options = { leaseMs, aloneLeaseMs, aloneAfterMs, renewMs, marginMs, drainMs, clock, ...rest }
    const { client, namespace, log, signal } = rest
    this.#tenures = new Tenures(clock)
    this.#sharedAt = clock.monotonic()
    this.#lease = new OwnLease({ client, namespace, clock })
    const onChange = (): void => this.#kick()
    this.#seen = new SeenReplicas({ client, namespace, clock, log, onChange, signal })
  }

  /** Resolves once this process has claimed its share; it may still wait for others to give up theirs. */
  async start(signal: AbortSignal): Promise<void> {
    await this.#seen.synced(signal)
    for (const replica of this.#others()) if (hasEnded(replica.process)) await this.#depose(replica, signal)
    await this.#round()
    this.#running = this.#run()
  }

  /**
   * Takes over from replicas whose processes have certainly ended, without waiting for their Leases to expire. Call it
   * when a process of this machine has ended.
   */
  deposeEnded(): void {
    this.#someEnded = true
    this.#kick()
  }

  /** Calls the listener from now on. Nothing is held before `start`. */
  follow(listener: BucketListener): void {
    this.#listeners.add(listener)
  }

  /** Admits a request; undefined if this process may not serve the bucket now. */
  enter(bucket: number): Tenure | undefined {
    return this.#tenures.enter(bucket)
  }

  /** Whether this process holds the bucket, as far as it knows: the Lease may have ended. */
  has(bucket: number): boolean {
    return this.#tenures.has(bucket)
  }

  /** Whether the Lease is valid. If it is not, other replicas may have taken over all buckets. */
  get isLive(): boolean {
    return this.#tenures.leftMs > 0
  }

  isHeld(bucket: number): boolean {
    return this.#tenures.isHeld(bucket)
  }

  /** Milliseconds for which this process may still write to the bucket; 0 if it may not. */
  leftMs(bucket: number): number {
    return this.#tenures.has(bucket) ? this.#tenures.leftMs : 0
  }

  /** The replica that serves a bucket instead of this one; undefined while no other owner is known. */
  ownerOf(bucket: number): Replica | undefined {
    return this.#routes[bucket]
  }

  /** Whether this replica has a Lease that, as far as this process knows, has not expired. */
  isThere(name: string): boolean {
    const replica = this.#seen.get(name)
    return replica !== undefined && !this.#isExpired(replica)
  }

  /** Whether there are other live replicas. */
  get isShared(): boolean {
    return this.hasOthers(() => true)
  }

  /** Whether there are other live replicas with such a name. */
  hasOthers(isCounted: (name: string) => boolean): boolean {
    return this.#alive().some(({ name }) => isCounted(name))
  }

  /** Number of buckets that this process holds. */
  get size(): number {
    let size = 0
    for (let bucket = 0; bucket < bucketCount; bucket++) if (this.#tenures.isHeld(bucket)) size++
    return size
  }

  /**
   * Gives up all buckets for good, so that other replicas take over at once. Requests can be forwarded to them
   * afterwards.
   */
  async leave(): Promise<void> {
    this.#leaving = true
    this.#wake()
    await this.#running
    await this.#giveUp([...this.#claims])
    this.#claims = new Set()
    const { log, renewMs } = this.#options
    try {
      await this.#lease.release(AbortSignal.timeout(renewMs))
    } catch (error) {
      log.warn('the Lease of this replica could not be given up: others wait until it expires', { error })
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#leaving) await this.leave()
    await this.#seen[Symbol.asyncDispose]()
  }

  async #run(): Promise<void> {
    for (;;) {
      await this.#untilDue()
      if (this.#leaving) return
      await this.#round()
    }
  }

  /** Adjusts the claims, renews the Lease and takes free buckets. Rounds run one after the other. */
  async #round(): Promise<void> {
    this.#kicked = false
    const { log, renewMs } = this.#options
    const someEnded = this.#someEnded
    const gone = this.#others().filter(
      (replica) => this.#isExpired(replica) || (someEnded && hasEnded(replica.process)),
    )
    try {
      await this.#adjustClaims()
      const limit = AbortSignal.timeout(2 * renewMs)
      if (!this.#isWritten || this.#isRenewalDue()) await this.#write(limit)
      for (const replica of gone) await this.#depose(replica, limit)
      if (someEnded) this.#someEnded = false
      await this.#takeClaimed(limit)
      this.#failures = 0
    } catch (error) {
      // Logs once per outage: the round is repeated every second.
      if (this.#failures++ === 0) log.warn('the Leases of the replicas cannot be read or written', { error })
    }
    this.#updateRoutes()
  }

  /** Gives up the buckets that other replicas should own, and claims the buckets that this one should own. */
  async #adjustClaims(): Promise<void> {
    const { name } = this.#options
    const owners = assignBuckets([name, ...this.#alive().map((replica) => replica.name)])
    const wanted = new Set(owners.flatMap((owner, bucket) => (owner === name ? [bucket] : [])))
    await this.#giveUp([...this.#claims].filter((bucket) => !wanted.has(bucket)))
    if (isSameSet(wanted, this.#claims)) return
    this.#claims = wanted
    this.#isWritten = false
  }

  async #giveUp(buckets: readonly number[]): Promise<void> {
    const held = buckets.filter((bucket) => this.#tenures.has(bucket))
    if (held.length === 0) return
    await this.#tenures.drain(held, this.#options.drainMs)
    const limit = AbortSignal.timeout(lastWritesMs)
    await Promise.all([...this.#listeners].map(async ({ leaving }) => await leaving?.(new Set(held), limit)))
    this.#tenures.drop(held)
    this.#tell('lost', held)
  }

  async #write(limit: AbortSignal): Promise<void> {
    const { clock, marginMs, log, name, address } = this.#options
    const sentAt = clock.monotonic()
    const leaseMs = this.#nextLeaseMs(sentAt)
    const until = sentAt + leaseMs - marginMs
    // A Lease that is shorter than the last one counts from now on, even if the response to its write is lost.
    this.#tenures.shorten(until)
    const replica = { name, address, process: processMark(), leaseMs, claims: this.#claims }
    const outcome = await this.#lease.write(replica, limit)
    if (outcome === 'written') {
      this.#isWritten = true
      this.#writtenAt = sentAt
      this.#tenures.extend(until)
      return
    }
    this.#isWritten = false
    this.#kick()
    if (outcome === 'raced') return
    const held = [...this.#claims].filter((bucket) => this.#tenures.has(bucket))
    this.#tenures.drop(held)
    this.#claims = new Set()
    if (held.length > 0) log.warn('another replica took over: this one did not renew its Lease in time', {})
    this.#tell('lost', held)
  }

  /** Duration of the next Lease: longer for a replica alone, because no other waits to take over. */
  #nextLeaseMs(now: number): number {
    const { leaseMs, aloneLeaseMs, aloneAfterMs } = this.#options
    if (this.#others().length > 0) this.#sharedAt = now
    return now - this.#sharedAt < aloneAfterMs ? leaseMs : aloneLeaseMs
  }

  /** Holds the claimed buckets that no other replica claims. The list of Leases comes after the write of our claims. */
  async #takeClaimed(limit: AbortSignal): Promise<void> {
    const missing = [...this.#claims].filter((bucket) => !this.#tenures.has(bucket))
    if (!this.#isWritten || missing.length === 0) return
    const others = await this.#lease.others(this.#options.name, limit)
    const free = missing.filter((bucket) => others.every(({ claims }) => !claims.has(bucket)))
    if (free.length === 0) return
    this.#tell('gained', free)
    this.#tenures.hold(free)
  }

  #tell(what: 'gained' | 'lost', buckets: readonly number[]): void {
    if (buckets.length === 0) return
    const { log } = this.#options
    log.info(what === 'gained' ? 'took over logical clusters' : 'gave up logical clusters', { buckets: buckets.length })
    for (const listener of this.#listeners) listener[what](new Set(buckets))
  }

  async #depose(replica: SeenReplica, limit: AbortSignal): Promise<void> {
    if (!(await this.#lease.depose(replica, limit))) return
    this.#deposed.add(replica.uid)
    this.#options.log.warn('a replica has ended without giving up its Lease, which was deleted', {
      lease: replica.name,
    })
    this.#kick()
  }

  #updateRoutes(): void {
    this.#routes = routesOf(this.#alive(), this.#options.name)
  }

  #others(): SeenReplica[] {
    const seen = [...this.#seen.all()].filter(({ name }) => name !== this.#options.name)
    if (this.#deposed.size === 0) return seen
    for (const uid of this.#deposed) if (seen.every((replica) => replica.uid !== uid)) this.#deposed.delete(uid)
    return seen.filter(({ uid }) => !this.#deposed.has(uid))
  }

  #alive(): SeenReplica[] {
    return this.#others().filter((replica) => !this.#isExpired(replica))
  }

  /**
   * Whether the Lease has expired, by the duration in this version of it. It is deleted only if it has not changed
   * since.
   */
  #isExpired({ changedAt, leaseMs }: SeenReplica): boolean {
    const { clock, marginMs } = this.#options
    return clock.monotonic() > changedAt + leaseMs + marginMs
  }

  #isRenewalDue(): boolean {
    return this.#options.clock.monotonic() >= this.#writtenAt + this.#options.renewMs
  }

  #kick(): void {
    this.#kicked = true
    this.#updateRoutes()
    this.#wake()
  }

  /** Resolves when something changed, our Lease must be renewed, or another Lease expires. */
  async #untilDue(): Promise<void> {
    if (this.#kicked && this.#failures === 0) return
    const { clock, renewMs, marginMs } = this.#options
    const soon = clock.monotonic() + (this.#failures === 0 ? againMs : Math.min(afterFailureMs, renewMs))
    const isWaiting = !this.#isWritten || [...this.#claims].some((bucket) => !this.#tenures.has(bucket))
    const times = [
      Math.max(this.#writtenAt + renewMs, soon),
      ...(isWaiting ? [soon] : []),
      ...this.#others().map(({ changedAt, leaseMs }) => Math.max(changedAt + leaseMs + marginMs + 1, soon)),
    ]
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.min(...times) - clock.monotonic())
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wake = () => undefined
  }
}

function isSameSet(a: ReadonlySet<number>, b: ReadonlySet<number>): boolean {
  return a.size === b.size && [...a].every((bucket) => b.has(bucket))
}
