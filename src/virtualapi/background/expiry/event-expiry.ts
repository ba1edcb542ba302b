// Deletes Events that were not written for an hour, in every logical cluster, loaded or not. kube-apiserver does the
// same with etcd leases (--event-ttl).
import { parseJsonText } from '#apimachinery/json/index.ts'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { sleep, type Clock } from '#async/index.ts'
import { isStoreError, type ObjectKey, type Store, type StoredObject } from '#store/index.ts'
import type { Logger } from '#telemetry/index.ts'

/** The time to live of Events in milliseconds: kube-apiserver's default. */
export const defaultEventTtlMs = 60 * 60_000

/** Events of core/v1 and of events.k8s.io are stored under this key. */
const resource = 'events'
/** Scans per time to live: an Event outlives its time by at most 1/12. */
const scansPerTtl = 12
/** Events read per page. */
const pageSize = 200

export interface EventExpiryOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  /** The time in milliseconds for which an Event stays after its last write. */
  readonly ttlMs: number
  /** True if this process deletes the Events of a logical cluster. Default: of every logical cluster. */
  readonly owns?: (cluster: ClusterId) => boolean
}

interface Scan {
  readonly at: number
  readonly revision: Revision
}

/** Scans for expired Events and deletes them, at regular intervals. Resolves when the signal aborts. */
export async function expireEvents(options: EventExpiryOptions, signal: AbortSignal): Promise<void> {
  const { ttlMs, log } = options
  const expiry = new EventExpiry(options)
  const isOver = (): boolean => signal.aborted
  while (!isOver()) {
    try {
      await sleep(ttlMs / scansPerTtl, signal, { unref: true })
      const deleted = await expiry.look(signal)
      if (deleted > 0) log.debug('expired events deleted', { count: deleted })
    } catch (error) {
      if (!isOver()) log.warn('expired events could not be deleted; will be tried again', { error })
    }
  }
}

/**
 * Remembers the store's revision at each scan: an Event has expired if its revision is not newer than the revision at a
 * scan one TTL ago.
 */
export class EventExpiry {
  readonly #options: EventExpiryOptions
  readonly #scans: Scan[] = []

  constructor(options: EventExpiryOptions) {
    this.#options = options
  }

  /** Deletes the expired Events. Resolves with their number. Rejects with the store's errors. */
  async look(signal: AbortSignal): Promise<number> {
    const { store, clock, ttlMs, owns = () => true } = this.#options
    const now = clock.now()
    this.#scans.push({ at: now, revision: await store.revision({ signal }) })
    while ((this.#scans[1]?.at ?? Infinity) <= now - ttlMs) this.#scans.shift()
    const [oldest] = this.#scans
    const expiredRevision = oldest !== undefined && oldest.at <= now - ttlMs ? oldest.revision : undefined
    let deleted = 0
    let after: ObjectKey | undefined
    for (;;) {
      const page = await store.list({ resource }, { signal, limit: pageSize, ...(after && { after }) })
      for (const object of page.items) {
        if (!owns(object.key.cluster)) continue
        const isOld = expiredRevision !== undefined && object.revision <= expiredRevision
        if ((isOld || newestTime(object) <= now - ttlMs) && (await this.#delete(object, signal))) deleted++
      }
      if (page.next === undefined) return deleted
      after = page.next
    }
  }

  /** Deletes the Event unless it was written since it was read. Resolves with true if it was deleted. */
  async #delete({ key, revision }: StoredObject, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#options.store.delete(key, { ifRevision: revision, signal })
      return true
    } catch (error) {
      if (isStoreError(error, 'RevisionMismatch') || isStoreError(error, 'KeyMissing')) return false
      throw error
    }
  }
}

/**
 * The newest time in an Event, in milliseconds since 1970. It decides about Events that were written before this
 * process began, because no older revision is known.
 */
function newestTime({ value }: StoredObject): number {
  const event = parseJsonText(Buffer.from(value.buffer, value.byteOffset, value.length).toString()) as {
    metadata?: { creationTimestamp?: string }
    eventTime?: string | null
    lastTimestamp?: string | null
    series?: { lastObservedTime?: string } | null
  }
  const times = [
    event.metadata?.creationTimestamp,
    event.eventTime,
    event.lastTimestamp,
    event.series?.lastObservedTime,
  ].map((text) => Date.parse(text ?? ''))
  return Math.max(...times.filter((time) => !Number.isNaN(time)))
}
