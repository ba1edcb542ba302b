// The writes of this process to the host that its watch has not shown yet: the event of such a write needs no decoding.
import type { StorageRecord } from '#crds/index.ts'
import type { ObjectKey } from '#store/store.ts'

/**
 * Maximum size of the kept payloads, in bytes. Above it the oldest are dropped, and their events are decoded like those
 * of other processes.
 */
const maxBytes = 16 * 1024 * 1024

interface OwnWrite {
  readonly record: StorageRecord
  readonly key: ObjectKey
  readonly value: Uint8Array
}

export class OwnWrites {
  readonly #byRecord = new Map<string, OwnWrite>()
  #bytes = 0

  /** Adds a write. Call this before the write is sent: its event may arrive before its response. */
  add(record: StorageRecord, key: ObjectKey, value: Uint8Array): void {
    this.#drop(record.metadata.name)
    this.#byRecord.set(record.metadata.name, { record, key, value })
    this.#bytes += value.length
    for (const oldest of this.#byRecord.keys()) {
      if (this.#bytes <= maxBytes) break
      this.#drop(oldest)
    }
  }

  /** Removes a write that was refused. */
  forget(record: StorageRecord): void {
    if (this.#byRecord.get(record.metadata.name)?.record === record) this.#drop(record.metadata.name)
  }

  /** Removes and returns the object in a reported Record; undefined if it differs from this process's last write. */
  take(reported: StorageRecord): Pick<OwnWrite, 'key' | 'value'> | undefined {
    const own = this.#byRecord.get(reported.metadata.name)
    if (own === undefined || !isSame(own.record, reported)) return undefined
    this.#drop(reported.metadata.name)
    return own
  }

  #drop(name: string): void {
    this.#bytes -= this.#byRecord.get(name)?.value.length ?? 0
    this.#byRecord.delete(name)
  }
}

function isSame(a: StorageRecord, b: StorageRecord): boolean {
  return (
    a.data === b.data &&
    a.cluster === b.cluster &&
    a.resource === b.resource &&
    (a.namespace ?? '') === (b.namespace ?? '') &&
    a.name === b.name &&
    a.metadata.namespace === b.metadata.namespace
  )
}
