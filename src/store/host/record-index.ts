// Indexes the Records without their payloads: to find changes by comparing with a list of the host, and for the
// metadata that an update needs.
import type { ClusterId, Revision } from '../../apimachinery/meta/index.ts'
import type { ObjectKey, StoreEvent } from '../store.ts'

export interface KnownRecord {
  readonly key: ObjectKey
  readonly revision: Revision
  readonly createRevision: Revision
}

export class RecordIndex {
  readonly #byCluster = new Map<ClusterId, Map<string, KnownRecord>>()

  get(cluster: ClusterId, recordName: string): KnownRecord | undefined {
    return this.#byCluster.get(cluster)?.get(recordName)
  }

  /** Finds a Record in any logical cluster, for one that no longer names its own. Searches all of them. */
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
    const { cluster } = event.type === 'put' ? event.object.key : event.key
    let records = this.#byCluster.get(cluster)
    if (event.type === 'delete') {
      records?.delete(recordName)
      if (records?.size === 0) this.#byCluster.delete(cluster)
      return
    }
    if (!records) {
      records = new Map<string, KnownRecord>()
      this.#byCluster.set(cluster, records)
    }
    const { key, revision, createRevision } = event.object
    records.set(recordName, { key, revision, createRevision })
  }
}
