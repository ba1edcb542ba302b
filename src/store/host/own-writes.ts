// The writes of this process to the host that its watch has not shown yet: the event of such a write needs no decoding.
import type { StorageRecord } from '#crds/index.ts'
import type { ObjectKey } from '#store/store.ts'

/** Payloads that are kept while the host reports nothing; beyond, the oldest are decoded like those of others. */
const maxBytes = 16 * 1024 * 1024

interface OwnWrite {
  readonly record: StorageRecord
  readonly key: ObjectKey
  readonly value: Uint8Array
}

export class OwnWrites {
  readonly #byRecord = new Map<string, OwnWrite>()
  #bytes = 0

  /** Call it before the write is sent: its event may come before its answer. */
  add(record: StorageRecord, key: ObjectKey, value: Uint8Array): void {
    this.#drop(record.metadata.name)
    this.#byRecord.set(record.metadata.name, { record, key, value })
    this.#bytes += value.length
    for (const oldest of this.#byRecord.keys()) {
      if (this.#bytes <= maxBytes) break
      this.#drop(oldest)
    }
  }

  /** The write was refused. */
  forget(record: StorageRecord): void {
    if (this.#byRecord.get(record.metadata.name)?.record === record) this.#drop(record.metadata.name)
  }

  /** The object in a Record that the host reports, if it is as this process wrote it last. */
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
