// The buckets of logical clusters that this process owns among several. Each replica holds a Lease that names the
// buckets it claims. A replica takes a bucket in this order: it writes the claim, then lists the Leases of all, and
// holds the bucket only if no other claims it. It gives one up by ending its requests, then removing the claim. So two
// never hold the same bucket, however late one hears of the other; docs/design/0012-ownership.md has the argument.
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
  /** Default 10 s. The others take over one margin later, and this process stops one margin before. */
  readonly leaseMs?: number
  /**
   * The same for a replica that has been alone for a while: it answers on over a short outage of the host. Default 75
   * s.
   */
  readonly aloneLeaseMs?: number
  /** How long no other replica may have had a Lease before. Default 60 s. */
  readonly aloneAfterMs?: number
  /** Between two renewals. Default 2 s. */
  readonly renewMs?: number
  /** For clocks that do not run equally fast. Default 1 s. */
  readonly marginMs?: number
  /** How long requests may take to end before their bucket is given up. Default 3 s. */
  readonly drainMs?: number
  readonly clock?: Clock
}

/** Called while buckets change hands: must not throw, and must return at once where it says nothing else. */
export interface BucketListener {
  /** Before the first request for them is let in. */
  readonly gained: (buckets: ReadonlySet<number>) => void
  /** After the last request for them, while they are still held: the last chance to write. Must end with the signal. */
  readonly leaving?: (buckets: ReadonlySet<number>, signal: AbortSignal) => Promise<void>
  /** After the last request for them; or at once, if the Lease was lost. */
  readonly lost: (buckets: ReadonlySet<number>) => void
}

/** For what must be written before a bucket is given up, milliseconds: the Lease is not renewed meanwhile. */
const lastWritesMs = 1000
/** Between two looks while another replica still claims what we wait for, milliseconds. */
const againMs = 250
/** Between two attempts while the host does not answer, milliseconds. */
const afterFailureMs = 1000

export class BucketOwnership implements AsyncDisposable {
  readonly #options: Required<BucketOwnershipOptions>
  readonly #tenures: Tenures
  readonly #lease: OwnLease
  readonly #seen: SeenReplicas
  readonly #listeners = new Set<BucketListener>()
  /** The claims in our Lease, as it is or will be with the next write. Never less than the held buckets. */
  #claims: ReadonlySet<number> = new Set()
  #isWritten = false
  #writtenAt = -Infinity
  /** When there last was another Lease, monotonic milliseconds. */
  #sharedAt: number
  #leaving = false
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

  /** Calls the listener from now on. Nothing is held before `start`. */
  follow(listener: BucketListener): void {
    this.#listeners.add(listener)
  }

  /** Lets a request in; undefined if this process may not answer for the bucket now. */
  enter(bucket: number): Tenure | undefined {
    return this.#tenures.enter(bucket)
  }

  /** Held, although the Lease may have ended: nobody has taken it over that this process knows of. */
  has(bucket: number): boolean {
    return this.#tenures.has(bucket)
  }

  /** Whether the Lease lasts: if not, others may have taken over everything. */
  get isLive(): boolean {
    return this.#tenures.leftMs > 0
  }

  isHeld(bucket: number): boolean {
    return this.#tenures.isHeld(bucket)
  }

  /** For how long this process may write to the bucket, milliseconds; 0: not at all. */
  leftMs(bucket: number): number {
    return this.#tenures.has(bucket) ? this.#tenures.leftMs : 0
  }

  /** The replica to ask about a bucket instead of this one; undefined while nobody else is known to own it. */
  ownerOf(bucket: number): Replica | undefined {
    return this.#routes[bucket]
  }

  /** Whether this replica still exists for all that is known here: it has a Lease that has not expired. */
  isThere(name: string): boolean {
    const replica = this.#seen.get(name)
    return replica !== undefined && !this.#isExpired(replica)
  }

  /** Whether other replicas live. */
  get isShared(): boolean {
    return this.#alive().length > 0
  }

  /** Buckets that this process holds. */
  get size(): number {
    let size = 0
    for (let bucket = 0; bucket < bucketCount; bucket++) if (this.#tenures.isHeld(bucket)) size++
    return size
  }

  /** Gives everything up for good, so that others take over at once. Requests may be passed on to them afterwards. */
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

  /** One after the other: a round is never interrupted by another one. */
  async #round(): Promise<void> {
    this.#kicked = false
    const { log, renewMs } = this.#options
    const expired = this.#others().filter((replica) => this.#isExpired(replica))
    try {
      await this.#adjustClaims()
      const limit = AbortSignal.timeout(2 * renewMs)
      if (!this.#isWritten || this.#isRenewalDue()) await this.#write(limit)
      for (const replica of expired) await this.#depose(replica, limit)
      await this.#takeClaimed(limit)
      this.#failures = 0
    } catch (error) {
      // Once per outage: it is tried again every second.
      if (this.#failures++ === 0) log.warn('the Leases of the replicas cannot be read or written', { error })
    }
    this.#updateRoutes()
  }

  /** Gives up what others should have, and claims what we should have. */
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
    // If it is shorter than the last, it counts from now on, even if we never hear that it was written.
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

  /** Longer where nobody waits to take over: a replica alone. */
  #nextLeaseMs(now: number): number {
    const { leaseMs, aloneLeaseMs, aloneAfterMs } = this.#options
    if (this.#others().length > 0) this.#sharedAt = now
    return now - this.#sharedAt < aloneAfterMs ? leaseMs : aloneLeaseMs
  }

  /** Holds what is claimed and what nobody else claims. The list comes after the write of our own claim. */
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

  /** By the duration that this version of its Lease says: it is deleted only if it has not changed since. */
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

  /** Until something changed, the Lease must be renewed, or another one expires. */
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
