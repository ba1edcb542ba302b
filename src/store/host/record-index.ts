// An index of the Records without their payloads. It serves to find changes by comparison with a list of the host, and
// holds the metadata that an update needs.
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import type { ObjectKey, StoreEvent } from '#store/store.ts'

export interface KnownRecord {
  readonly key: ObjectKey
  readonly revision: Revision
  readonly createRevision: Revision
  /** Size of the object's value; of the Record's payload, if the object was not written since the start. */
  readonly bytes: number
}

export class RecordIndex {
  readonly #byCluster = new Map<ClusterId, Map<string, KnownRecord>>()
  #size = 0
  #bytes = 0

  /** Number of objects of all logical clusters. */
  get size(): number {
    return this.#size
  }

  /** Bytes of these objects. */
  get bytes(): number {
    return this.#bytes
  }

  get(cluster: ClusterId, recordName: string): KnownRecord | undefined {
    return this.#byCluster.get(cluster)?.get(recordName)
  }

  /** Finds a Record that no longer names its logical cluster. Searches all logical clusters. */
  find(recordName: string): KnownRecord | undefined {
    for (const records of this.#byCluster.values()) {
      const known = records.get(recordName)
      if (known !== undefined) return known
    }
    return undefined
  }

  has(cluster: ClusterId): boolean {
    return this.#byCluster.has(cluster)
  }

  *all(): Generator<[recordName: string, known: KnownRecord]> {
    for (const records of this.#byCluster.values()) yield* records
  }

  apply(recordName: string, event: Exclude<StoreEvent, { type: 'progress' }>): void {
    if (event.type === 'put') {
      const { key, revision, createRevision, value } = event.object
      this.put(recordName, { key, revision, createRevision, bytes: value.length })
      return
    }
    const { cluster } = event.key
    const records = this.#byCluster.get(cluster)
    const before = records?.get(recordName)
    if (records === undefined || before === undefined) return
    this.#count(-1, -before.bytes)
    records.delete(recordName)
    if (records.size === 0) this.#byCluster.delete(cluster)
  }

  put(recordName: string, known: KnownRecord): void {
    let records = this.#byCluster.get(known.key.cluster)
    if (!records) {
      records = new Map<string, KnownRecord>()
      this.#byCluster.set(known.key.cluster, records)
    }
    const before = records.get(recordName)
    this.#count(before ? 0 : 1, known.bytes - (before?.bytes ?? 0))
    records.set(recordName, known)
  }

  #count(objects: number, bytes: number): void {
    this.#size += objects
    this.#bytes += bytes
  }
}
