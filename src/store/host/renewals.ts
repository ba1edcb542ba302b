// Renewals of Leases, and repeated Events, that the host does not have yet. Most writes of a logical cluster are such,
// and they matter for seconds: so they are kept in memory, and one in half a minute is written to the host.
//
// Each needs a revision that is above all that were shown and never comes again, also after a crash. It is one that the
// host gave to a write of ours which changes no object (revision-record.ts). One such write serves one renewal of each
// logical cluster that waits. The renewals become events at the place of that write in the host's stream.
import { randomUUID } from 'node:crypto'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { StoreError, type ObjectKey, type StoredObject, type StoreEvent } from '#store/store.ts'
import type { KnownRecord } from './record-index.ts'

type Put = Extract<StoreEvent, { type: 'put' }>

export interface RenewalsOptions {
  /** Takes the next revision of the host, which the stream then reports with this text. */
  readonly takeRevision: (cluster: ClusterId, text: string) => Promise<void>
  /** The Record of an object as the stream last reported it. */
  readonly known: (cluster: ClusterId, record: string) => KnownRecord | undefined
  /** Whether this process may change the logical cluster now. */
  readonly mayWrite: (cluster: ClusterId) => boolean
  /**
   * How long the first of several renewals may wait for the write to the host that it causes, milliseconds. Default 30
   * s.
   */
  readonly keepMs?: number
  /** How many of one resource are kept for one logical cluster. Default 100. */
  readonly maxPerCluster?: number
  /** How long a renewal of this resource may wait for its revision, where no others wait, milliseconds. Default 250. */
  readonly gapMsOf?: (resource: string) => number
}

export interface Renewal {
  readonly key: ObjectKey
  /** Name of its Record. */
  readonly record: string
  readonly value: Uint8Array
  readonly ifRevision: Revision
}

/** A state that is newer than the Record. */
export interface Kept {
  readonly key: ObjectKey
  readonly value: Uint8Array
  /** As clients see it. */
  readonly revision: Revision
  /** Of the Record, which has not changed since. */
  readonly base: Revision
  /** When the first renewal was kept that the host does not have, monotonic milliseconds. */
  readonly since: number
}

interface Waiting extends Renewal {
  readonly resolve: (object: StoredObject) => void
  readonly reject: (error: Error) => void
}

interface Taking {
  readonly text: string
  readonly renewals: readonly Waiting[]
  readonly over: Promise<void>
  readonly end: () => void
}

/** Kept of one resource, for one logical cluster and for all together; more are written to the host at once. */
const defaultPerCluster = 100
const maxKept = 10_000
const maxValueBytes = 4096
/** Of one logical cluster, waiting for a revision; more are written to the host at once. */
const maxWaiting = 40
/** Between two writes for revisions: the longest line of a logical cluster decides. */
const defaultGapMs = 250
const minGapMs = 25
/** How long the stream may take to report a revision. */
const reportMs = 10_000
const defaultKeepMs = 30_000

export class Renewals {
  readonly #options: RenewalsOptions
  readonly #keepMs: number
  readonly #kept = new Map<string, Kept>()
  readonly #keptIn = new Map<string, number>()
  /** By resource: those of one never take the room of another. */
  readonly #keptOf = new Map<string, number>()
  readonly #waiting = new Map<ClusterId, Waiting[]>()
  readonly #waitingRecords = new Map<string, Promise<unknown>>()
  /** Records with a write to the host under way. */
  readonly #writing = new Map<string, number>()
  /** No other process writes the same texts. */
  readonly #process = randomUUID()
  #texts = 0
  #taking: Taking | undefined
  #takenAt = -Infinity
  #timer: NodeJS.Timeout | undefined
  #dueAt = Infinity

  constructor(options: RenewalsOptions) {
    this.#options = options
    this.#keepMs = options.keepMs ?? defaultKeepMs
  }

  /** Objects that are newer here than in the host. */
  get size(): number {
    return this.#kept.size
  }

  /** Whether this renewal may stay in memory; if not, it is written to the host. */
  takes({ key, record, value, ifRevision }: Renewal): boolean {
    const { known, maxPerCluster = defaultPerCluster } = this.#options
    if (value.length > maxValueBytes || this.#writing.has(record) || this.#waitingRecords.has(record)) return false
    if ((this.#waiting.get(key.cluster)?.length ?? 0) >= maxWaiting) return false
    const kept = this.#kept.get(record)
    if (kept !== undefined) return kept.revision === ifRevision && performance.now() - kept.since < this.#keepMs
    if (known(key.cluster, record)?.revision !== ifRevision) return false
    return (this.#keptOf.get(key.resource) ?? 0) < maxKept && (this.#keptIn.get(placeOf(key)) ?? 0) < maxPerCluster
  }

  /** Call it if `takes`. Resolves once readers see it. Rejects Unavailable if no revision was found in time. */
  async keep(renewal: Renewal): Promise<StoredObject> {
    const { promise, resolve, reject } = Promise.withResolvers<StoredObject>()
    const { cluster } = renewal.key
    const waiting = this.#waiting.get(cluster) ?? []
    waiting.push({ ...renewal, resolve, reject })
    this.#waiting.set(cluster, waiting)
    this.#waitingRecords.set(renewal.record, promise)
    this.#schedule(waiting.length, this.#gapMsOf(renewal))
    try {
      return await promise
    } finally {
      this.#waitingRecords.delete(renewal.record)
    }
  }

  /**
   * Runs a write to the host of an object that may be kept here. It is given the revision of the Record instead of the
   * one that clients see. Throws RevisionMismatch.
   */
  async around<T>(record: string, ifRevision: Revision, write: (ifRevision: Revision) => Promise<T>): Promise<T> {
    while (this.#waitingRecords.has(record)) await this.#waitingRecords.get(record)?.catch(() => undefined)
    const kept = this.#kept.get(record)
    if (kept !== undefined && kept.revision !== ifRevision)
      throw new StoreError('RevisionMismatch', `"${kept.key.resource}/${kept.key.name}" is at another revision`)
    count(this.#writing, record, 1)
    try {
      return await write(kept?.base ?? ifRevision)
    } finally {
      count(this.#writing, record, -1)
    }
  }

  /** Resolves when every revision that was taken before is reported. */
  async reported(): Promise<void> {
    await this.#taking?.over
  }

  /** An object that was read from the host, as it is now. */
  newest(record: string, object: StoredObject): StoredObject {
    const kept = this.#kept.get(record)
    if (kept?.base !== object.revision) return object
    return { ...object, value: kept.value, revision: kept.revision }
  }

  /** The stream reports the revision of this text: the changes to tell at it, and what to do when they were told. */
  at(text: string, revision: Revision): { readonly changes: readonly Put[]; readonly told: () => void } | undefined {
    const taking = this.#taking
    if (taking?.text !== text) return undefined
    this.#taking = undefined
    const done: (() => void)[] = [taking.end]
    const changes: Put[] = []
    for (const renewal of taking.renewals) {
      const object = this.#apply(renewal, revision)
      if (object === undefined) continue
      changes.push({ type: 'put', object })
      done.push(() => renewal.resolve(object))
    }
    return { changes, told: () => done.forEach((run) => run()) }
  }

  /** The stream reports a change of the Record: what is kept of it is older. */
  changed(record: string): void {
    const kept = this.#kept.get(record)
    if (kept === undefined) return
    this.#kept.delete(record)
    count(this.#keptIn, placeOf(kept.key), -1)
    count(this.#keptOf, kept.key.resource, -1)
  }

  /** The stream lost events: nobody will report the revision that was taken. */
  interrupted(): void {
    this.#fail(this.#taking, new StoreError('Unavailable', 'the stream of the host was interrupted'))
  }

  /** Renewals that the host should have: all of these logical clusters, else those without another renewal for long. */
  *unsaved(of?: (cluster: ClusterId) => boolean): Generator<Kept> {
    // A holder that still renews has its next renewal written: it would be told of a conflict if we were faster.
    const late = performance.now() - 1.5 * this.#keepMs
    for (const kept of [...this.#kept.values()]) if (of?.(kept.key.cluster) ?? kept.since <= late) yield kept
  }

  /** Forgets what is kept of these logical clusters: another process has changed them since. */
  forget(of: (cluster: ClusterId) => boolean): void {
    for (const [record, { key }] of this.#kept) if (of(key.cluster)) this.changed(record)
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    const closed = new StoreError('Closed', 'the store is closed')
    this.#fail(this.#taking, closed)
    for (const waiting of this.#waiting.values()) for (const { reject } of waiting) reject(closed)
    this.#waiting.clear()
  }

  #apply({ key, record, value, ifRevision, reject }: Waiting, revision: Revision): StoredObject | undefined {
    const known = this.#options.known(key.cluster, record)
    const kept = this.#kept.get(record)
    if (known === undefined || (kept?.revision ?? known.revision) !== ifRevision) {
      reject(new StoreError('RevisionMismatch', `"${key.resource}/${key.name}" is at another revision`))
      return undefined
    }
    if (!this.#options.mayWrite(key.cluster)) {
      reject(new StoreError('Unavailable', 'this process may not write to the logical cluster now'))
      return undefined
    }
    if (kept === undefined) {
      count(this.#keptIn, placeOf(key), 1)
      count(this.#keptOf, key.resource, 1)
    }
    const since = kept?.since ?? performance.now()
    this.#kept.set(record, { key, value, revision, base: known.revision, since })
    return { key, value, revision, createRevision: known.createRevision }
  }

  #gapMsOf({ key }: Renewal): number {
    return this.#options.gapMsOf?.(key.resource) ?? defaultGapMs
  }

  /** The longest line of a logical cluster, and the shortest gap of those that wait. */
  #schedule(longest: number, gapMs: number): void {
    if (this.#taking !== undefined || this.#waiting.size === 0) return
    const dueAt = Math.max(performance.now(), this.#takenAt + Math.max(minGapMs, gapMs / longest))
    if (dueAt >= this.#dueAt) return
    clearTimeout(this.#timer)
    this.#dueAt = dueAt
    this.#timer = setTimeout(() => void this.#take(), Math.max(0, dueAt - performance.now()))
  }

  /** One renewal of each logical cluster: two events of one logical cluster never have the same revision. */
  async #take(): Promise<void> {
    this.#dueAt = Infinity
    this.#takenAt = performance.now()
    const renewals: Waiting[] = []
    for (const [cluster, waiting] of this.#waiting) {
      const first = waiting.shift()
      if (first !== undefined) renewals.push(first)
      if (waiting.length === 0) this.#waiting.delete(cluster)
    }
    const [first] = renewals
    if (first === undefined) return
    const { promise: over, resolve: end } = Promise.withResolvers<undefined>()
    const text = `${this.#process} ${++this.#texts}`
    const taking: Taking = { text, renewals, over, end: () => end(undefined) }
    this.#taking = taking
    const silence = new StoreError('Unavailable', 'the host did not tell of a revision in time')
    const timer = setTimeout(() => this.#fail(taking, silence), reportMs)
    try {
      await this.#options.takeRevision(first.key.cluster, text)
      await over
    } catch (cause) {
      const why = cause instanceof Error ? `: ${cause.message}` : ''
      this.#fail(taking, new StoreError('Unavailable', `the host took no renewal${why}`, { cause }))
    } finally {
      clearTimeout(timer)
      if (this.#taking === taking) this.#taking = undefined
      let longest = 0
      let gapMs = defaultGapMs
      for (const waiting of this.#waiting.values()) {
        const [first] = waiting
        longest = Math.max(longest, waiting.length)
        if (first !== undefined) gapMs = Math.min(gapMs, this.#gapMsOf(first))
      }
      this.#schedule(longest, gapMs)
    }
  }

  /** Its renewals will not happen, also if the revision is reported later. */
  #fail(taking: Taking | undefined, error: StoreError): void {
    if (taking === undefined) return
    if (this.#taking === taking) this.#taking = undefined
    taking.end()
    for (const { reject } of taking.renewals) reject(error)
  }
}

const placeOf = ({ cluster, resource }: ObjectKey): string => `${cluster} ${resource}`

function count<K>(counts: Map<K, number>, key: K, more: 1 | -1): void {
  const now = (counts.get(key) ?? 0) + more
  if (now === 0) counts.delete(key)
  else counts.set(key, now)
}
