// Renewals of Leases, and repeated Events, that the host does not have yet. Most writes of a logical cluster are
// renewals, and each matters for seconds only. They are therefore kept in memory, and one in half a minute is written
// to the host.
//
// Each renewal needs a revision that is above all revisions shown before and is never used again, even after a crash.
// The host gives this revision to a write of ours that changes no object (revision-record.ts). One such write serves
// one waiting renewal of each logical cluster. The renewals become events at the place of that write in the host's
// stream.
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
   * Milliseconds after the first kept renewal of an object from which on its next renewal is written to the host.
   * Default 30 s.
   */
  readonly keepMs?: number
  /** Maximum number of kept objects of one resource in one logical cluster. Default 100. */
  readonly maxPerCluster?: number
  /** Milliseconds that a renewal of this resource may wait for its revision if no others wait. Default 250. */
  readonly gapMsOf?: (resource: string) => number
}

export interface Renewal {
  readonly key: ObjectKey
  /** Name of the object's Record. */
  readonly record: string
  readonly value: Uint8Array
  readonly ifRevision: Revision
}

/** A state of an object that is newer than its Record. */
export interface Kept {
  readonly key: ObjectKey
  readonly value: Uint8Array
  /** Revision of the object as clients see it. */
  readonly revision: Revision
  /** Revision of the Record, which has not changed since. */
  readonly base: Revision
  /** Time of the first renewal that the host does not have, in monotonic milliseconds. */
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

/**
 * Maximum number of kept objects of one resource, in one logical cluster and in all. Further renewals are written to
 * the host at once.
 */
const defaultPerCluster = 100
const maxKept = 10_000
const maxValueBytes = 4096
/**
 * Maximum number of renewals of one logical cluster that wait for a revision. Further renewals are written to the host
 * at once.
 */
const maxWaiting = 40
/**
 * Milliseconds between two writes that take a revision: the gap of the resource divided by the length of the longest
 * queue of a logical cluster, at least `minGapMs`.
 */
const defaultGapMs = 250
const minGapMs = 25
/** Milliseconds that the stream may take to report a revision. */
const reportMs = 10_000
const defaultKeepMs = 30_000

export class Renewals {
  readonly #options: RenewalsOptions
  readonly #keepMs: number
  readonly #kept = new Map<string, Kept>()
  readonly #keptIn = new Map<string, number>()
  /** Number of kept objects by resource: no resource uses up the limit of another. */
  readonly #keptOf = new Map<string, number>()
  readonly #waiting = new Map<ClusterId, Waiting[]>()
  readonly #waitingRecords = new Map<string, Promise<unknown>>()
  /** Records with a write to the host under way. */
  readonly #writing = new Map<string, number>()
  /** Distinguishes the texts of this process from those of other processes. */
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

  /** Number of objects that are newer here than in the host. */
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

  /**
   * Keeps a renewal for which `takes` returned true. Resolves once readers see the new state. Rejects Unavailable if no
   * revision was taken in time, RevisionMismatch if the object changed meanwhile.
   */
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
   * Runs a write to the host for an object that may have a kept renewal. `write` gets the revision of the Record
   * instead of the revision that clients see. Rejects RevisionMismatch.
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

  /** The newest state of an object that was read from the host: with its kept renewal, if there is one. */
  newest(record: string, object: StoredObject): StoredObject {
    const kept = this.#kept.get(record)
    if (kept?.base !== object.revision) return object
    return { ...object, value: kept.value, revision: kept.revision }
  }

  /**
   * Call this when the stream reports `text`. Returns the changes to report at this revision, and the callback to run
   * after their delivery; undefined if no renewals wait for this text.
   */
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

  /** Call this when the stream reports a change of the Record: forgets its kept renewal, which is older. */
  changed(record: string): void {
    const kept = this.#kept.get(record)
    if (kept === undefined) return
    this.#kept.delete(record)
    count(this.#keptIn, placeOf(kept.key), -1)
    count(this.#keptOf, kept.key.resource, -1)
  }

  /**
   * Call this when the stream lost events: rejects the renewals of the revision that was taken but will not be
   * reported.
   */
  interrupted(): void {
    this.#fail(this.#taking, new StoreError('Unavailable', 'the stream of the host was interrupted'))
  }

  /**
   * The renewals to write to the host: with `of`, all of these logical clusters; else those that were not repeated for
   * long.
   */
  *unsaved(of?: (cluster: ClusterId) => boolean): Generator<Kept> {
    // The next renewal of a holder that still renews is written anyway. An earlier write here would cause a conflict
    // for it.
    const late = performance.now() - 1.5 * this.#keepMs
    for (const kept of [...this.#kept.values()]) if (of?.(kept.key.cluster) ?? kept.since <= late) yield kept
  }

  /** Forgets the kept renewals of these logical clusters: another process may have changed their objects since. */
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

  /**
   * Plans the next write for a revision. `longest` is the length of the longest queue of a logical cluster, `gapMs` the
   * shortest gap of the waiting renewals.
   */
  #schedule(longest: number, gapMs: number): void {
    if (this.#taking !== undefined || this.#waiting.size === 0) return
    const dueAt = Math.max(performance.now(), this.#takenAt + Math.max(minGapMs, gapMs / longest))
    if (dueAt >= this.#dueAt) return
    clearTimeout(this.#timer)
    this.#dueAt = dueAt
    this.#timer = setTimeout(() => void this.#take(), Math.max(0, dueAt - performance.now()))
  }

  /**
   * Takes a revision for one renewal of each logical cluster: two events of one logical cluster never have the same
   * revision.
   */
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

  /** Rejects the renewals of `taking`. They do not happen even if the revision is reported later. */
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
