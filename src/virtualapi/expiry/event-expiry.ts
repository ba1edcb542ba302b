// Events do not stay for ever: what nobody wrote for an hour is deleted, in every logical cluster, loaded or not. A real
// server does the same with leases of etcd (its --event-ttl).
import type { Revision } from '../../apimachinery/meta/index.ts'
import { sleep, type Clock } from '../../async/index.ts'
import { isStoreError, type ObjectKey, type Store, type StoredObject } from '../../store/index.ts'
import type { Logger } from '../../telemetry/index.ts'

/** As a real server's default, milliseconds. */
export const defaultEventTtlMs = 60 * 60_000

/** Both APIs of Events keep them under this key. */
const resource = 'events'
/** Looks in one time to live: an Event lives at most so much of it longer. */
const looksPerTtl = 12
/** Events read at once. */
const pageSize = 200

export interface EventExpiryOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  /** How long an Event stays after it was last written. */
  readonly ttlMs: number
}

interface Look {
  readonly at: number
  readonly revision: Revision
}

/** Ends Events from now on, one look after the other, until the signal. Resolves then. */
export async function expireEvents(options: EventExpiryOptions, signal: AbortSignal): Promise<void> {
  const { ttlMs, log } = options
  const expiry = new EventExpiry(options)
  const isOver = (): boolean => signal.aborted
  while (!isOver()) {
    try {
      await sleep(ttlMs / looksPerTtl, signal, { unref: true })
      const ended = await expiry.look(signal)
      if (ended > 0) log.debug('events ended', { ended })
    } catch (error) {
      if (!isOver()) log.warn('events could not be ended; tried again at the next look', { error })
    }
  }
}

/** Remembers how far the store was at each look: what is older than the one a time to live ago was not written since. */
export class EventExpiry {
  readonly #options: EventExpiryOptions
  readonly #looks: Look[] = []

  constructor(options: EventExpiryOptions) {
    this.#options = options
  }

  /** Deletes what has lived its time. Returns how many. Rejects with what the store rejects with. */
  async look(signal: AbortSignal): Promise<number> {
    const { store, clock, ttlMs } = this.#options
    const now = clock.now()
    this.#looks.push({ at: now, revision: await store.revision({ signal }) })
    while ((this.#looks[1]?.at ?? Infinity) <= now - ttlMs) this.#looks.shift()
    const [oldest] = this.#looks
    const settled = oldest !== undefined && oldest.at <= now - ttlMs ? oldest.revision : undefined
    let ended = 0
    let after: ObjectKey | undefined
    for (;;) {
      const page = await store.list({ resource }, { signal, limit: pageSize, ...(after && { after }) })
      for (const object of page.items) {
        const isOld = settled !== undefined && object.revision <= settled
        if ((isOld || lastTold(object) <= now - ttlMs) && (await this.#end(object, signal))) ended++
      }
      if (page.next === undefined) return ended
      after = page.next
    }
  }

  /** Returns whether it was this state of it that ended. */
  async #end({ key, revision }: StoredObject, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#options.store.delete(key, { ifRevision: revision, signal })
      return true
    } catch (error) {
      if (isStoreError(error, 'RevisionMismatch') || isStoreError(error, 'KeyMissing')) return false
      throw error
    }
  }
}

/** The newest time an Event tells of itself, milliseconds since 1970; for those from before this process began. */
function lastTold({ value }: StoredObject): number {
  const event = JSON.parse(Buffer.from(value.buffer, value.byteOffset, value.length).toString()) as {
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
