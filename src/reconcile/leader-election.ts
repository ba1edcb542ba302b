// One leader among several processes, by a Lease and client-go's rules: a candidate takes over a Lease that has not
// changed for a whole lease duration by the candidate's own monotonic clock. A leader that cannot renew stops before
// that time.
import { childSignal, sleep, systemClock, type Clock } from '#async/index.ts'
import type { KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import type { Logger } from '#telemetry/index.ts'

export interface LeaderElectionOptions {
  readonly client: KubeClient
  readonly namespace: string
  readonly name: string
  /** Names this process; unique among the candidates. */
  readonly identity: string
  /**
   * Runs while this process leads. Its signal aborts when leadership is lost or the election ends; it must then end
   * soon.
   */
  readonly lead: (signal: AbortSignal) => Promise<void>
  /**
   * Called after each attempt that finds the Lease with another process. `isAlive`: that process has renewed it since this
   * one first looked.
   */
  readonly onTaken?: (holder: { readonly identity: string; readonly isAlive: boolean }) => void
  /** Called with the error of an attempt to become the leader; another attempt follows. */
  readonly onError?: (error: unknown) => void
  readonly log: Logger
  readonly signal: AbortSignal
  /** Duration of the Lease. Default 15 s. */
  readonly leaseMs?: number
  /** A leader stops leading if it could not renew for this time. Default 10 s. */
  readonly renewDeadlineMs?: number
  /** Time between attempts. Default 2 s, plus a random fifth. */
  readonly retryMs?: number
  readonly clock?: Clock
}

interface Lease extends KubeObject {
  apiVersion: 'coordination.k8s.io/v1'
  kind: 'Lease'
  metadata: ObjectMeta
  spec?: {
    holderIdentity?: string
    leaseDurationSeconds?: number
    acquireTime?: string
    renewTime?: string
    leaseTransitions?: number
  }
}

/** `raced`: another process changed the Lease between our read and our write; the next attempt sees who holds it. */
type Attempt = 'held' | 'taken' | 'raced'

const leases = { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' } as const

/**
 * Competes for the Lease until the signal aborts, again after losing it, and runs `lead` while it holds the Lease.
 * Resolves after giving up the Lease; rejects if `lead` rejects.
 */
export async function runAsLeader(options: LeaderElectionOptions): Promise<void> {
  const election = new Election(options)
  const { signal } = options
  while (!signal.aborted) {
    try {
      await election.acquire(signal)
    } catch {
      return
    }
    await election.leadWhileRenewed(signal)
  }
}

class Election {
  readonly #options: Required<LeaderElectionOptions>
  /** The holder whom this candidate waits for, and the Lease's version when it began to wait. */
  #awaited: { readonly holder: string; readonly version: string | undefined } | undefined
  /**
   * The Lease as it was last seen, and the time of that by our monotonic clock: times of other processes are never
   * compared with ours.
   */
  #seen: { readonly lease: Lease; readonly at: number } | undefined

  constructor({
    leaseMs = 15_000,
    renewDeadlineMs = 10_000,
    retryMs = 2000,
    clock = systemClock,
    onTaken = () => undefined,
    onError = () => undefined,
    ...rest
  }: LeaderElectionOptions) {
    this.#options = { leaseMs, renewDeadlineMs, retryMs, clock, onTaken, onError, ...rest }
  }

  async acquire(signal: AbortSignal): Promise<void> {
    const { log, name, identity, renewDeadlineMs, onError } = this.#options
    for (;;) {
      try {
        if ((await this.#tryWithin(renewDeadlineMs, signal)) === 'held') {
          log.info('became leader', { lease: name, identity })
          return
        }
      } catch (error) {
        signal.throwIfAborted()
        log.debug('could not read or write a lease', { lease: name, error })
        onError(error)
      }
      await sleep(this.#retryMs(), signal)
    }
  }

  async leadWhileRenewed(signal: AbortSignal): Promise<void> {
    const { log, name, identity, lead } = this.#options
    using term = childSignal(signal)
    const leading = lead(term.signal).finally(() => term.abort(new DOMException('the leader has ended', 'AbortError')))
    try {
      await this.#renewUntilLost(term.signal)
      log.warn('lost leadership', { lease: name, identity })
      term.abort(new Error(`lost the lease "${name}"`))
    } catch {
      // The signal aborted: `lead` has ended, or the program ends.
    }
    try {
      await leading
    } catch (error) {
      if (error !== term.signal.reason) throw error
    } finally {
      await this.#release()
    }
  }

  /** Resolves when the lease is lost; rejects with signal.reason. */
  async #renewUntilLost(signal: AbortSignal): Promise<void> {
    const { clock, renewDeadlineMs, log, name } = this.#options
    let renewed = clock.monotonic()
    for (;;) {
      await sleep(this.#retryMs(), signal)
      const left = renewed + renewDeadlineMs - clock.monotonic()
      if (left <= 0) return
      const asked = clock.monotonic()
      try {
        const answer = await this.#tryWithin(left, signal)
        if (answer === 'taken') return
        if (answer === 'held') renewed = asked
      } catch (error) {
        signal.throwIfAborted()
        log.debug('could not renew a lease', { lease: name, error })
      }
    }
  }

  /**
   * An attempt with a timeout: a slow response is useless to a leader, and hides from a candidate that the leader is
   * gone.
   */
  async #tryWithin(ms: number, signal: AbortSignal): Promise<Attempt> {
    using attempt = childSignal(signal)
    const timer = setTimeout(() => attempt.abort(new Error(`no answer within ${Math.round(ms)} ms`)), ms)
    try {
      return await this.#tryAcquireOrRenew(attempt.signal)
    } finally {
      clearTimeout(timer)
    }
  }

  async #tryAcquireOrRenew(signal: AbortSignal): Promise<Attempt> {
    const { client, namespace, name, identity, clock, leaseMs } = this.#options
    const current = await client.tryGet<Lease>(leases, { namespace, name }, { signal })
    const now = microTime(clock.now())
    if (current === undefined) {
      return await this.#write(() =>
        client.create<Lease>(
          leases,
          {
            apiVersion: 'coordination.k8s.io/v1',
            kind: 'Lease',
            metadata: { namespace, name },
            spec: { ...this.#held(now), acquireTime: now, leaseTransitions: 0 },
          },
          { signal },
        ),
      )
    }
    if (this.#seen?.lease.metadata.resourceVersion !== current.metadata.resourceVersion) {
      this.#seen = { lease: current, at: clock.monotonic() }
    }
    const holder = current.spec?.holderIdentity ?? ''
    const theirs = holder !== '' && holder !== identity
    const lasts = Math.max(leaseMs, (current.spec?.leaseDurationSeconds ?? 0) * 1000)
    if (theirs && clock.monotonic() < (this.#seen?.at ?? 0) + lasts) {
      this.#taken(holder, current.metadata.resourceVersion)
      return 'taken'
    }
    const spec = { ...current.spec, ...this.#held(now) }
    if (holder !== identity) {
      spec.acquireTime = now
      spec.leaseTransitions = (current.spec?.leaseTransitions ?? 0) + 1
    }
    return await this.#write(() => client.update<Lease>(leases, { ...current, spec }, { signal }))
  }

  #taken(holder: string, version: string | undefined): void {
    if (this.#awaited?.holder !== holder) this.#awaited = { holder, version }
    this.#options.onTaken({ identity: holder, isAlive: this.#awaited.version !== version })
  }

  async #write(write: () => Promise<Lease>): Promise<Attempt> {
    try {
      const lease = await write()
      this.#seen = { lease, at: this.#options.clock.monotonic() }
      return 'held'
    } catch (error) {
      if (isStatusError(error, 'Conflict') || isStatusError(error, 'AlreadyExists')) return 'raced'
      throw error
    }
  }

  /** Gives up the Lease so that the next leader need not wait. If this fails, the Lease expires by itself. */
  async #release(): Promise<void> {
    const { client, log, namespace, name, identity } = this.#options
    const lease = this.#seen?.lease
    if (lease?.spec?.holderIdentity !== identity) return
    const signal = AbortSignal.timeout(2000)
    try {
      if ((await this.#writeWithoutHolder(lease, signal)) === 'held') return
      // A renewal that was aborted on our side may have been written all the same.
      const current = await client.tryGet<Lease>(leases, { namespace, name }, { signal })
      if (current?.spec?.holderIdentity === identity) await this.#writeWithoutHolder(current, signal)
    } catch (error) {
      log.debug('could not give up a lease', { lease: name, error })
    } finally {
      this.#seen = undefined
    }
  }

  async #writeWithoutHolder(lease: Lease, signal: AbortSignal): Promise<Attempt> {
    const { client, clock } = this.#options
    const spec = { ...lease.spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime(clock.now()) }
    return await this.#write(() => client.update<Lease>(leases, { ...lease, spec }, { signal }))
  }

  #held(now: string): { holderIdentity: string; leaseDurationSeconds: number; renewTime: string } {
    const { identity, leaseMs } = this.#options
    return { holderIdentity: identity, leaseDurationSeconds: Math.max(1, Math.ceil(leaseMs / 1000)), renewTime: now }
  }

  #retryMs(): number {
    return this.#options.retryMs * (1 + Math.random() / 5)
  }
}

function microTime(ms: number): string {
  return new Date(ms).toISOString().replace(/Z$/, '000Z')
}
