// The contract for keeping objects. A Store knows keys, bytes and revisions, and nothing about kinds.
// One suite (test/conformance/store.ts) runs on every implementation.
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'

/** The place of an object. Keys are ordered by cluster, then resource, namespace, name, each by UTF-16 code units. */
export interface ObjectKey {
  readonly cluster: ClusterId
  /**
   * Resource and group as in messages: `configmaps`, `deployments.apps`. An object has the same key in all its
   * versions.
   */
  readonly resource: string
  /** Empty for cluster-scoped objects. */
  readonly namespace: string
  readonly name: string
}

/** An object at rest. `value` is JSON without a resourceVersion: the revision is stored beside it. */
export interface StoredObject {
  readonly key: ObjectKey
  /** Revision of the write that made this value. */
  readonly revision: Revision
  /** Revision of the create that began this object's life. */
  readonly createRevision: Revision
  readonly value: Uint8Array
}

export type StoreEvent =
  | { readonly type: 'put'; readonly object: StoredObject }
  /**
   * `revision` is the revision of the deletion; `previous` is the last state, if the backend still knows it. `missed`:
   * the deletion was found afterwards; `revision` is then an upper bound that other changes may share.
   */
  | {
      readonly type: 'delete'
      readonly key: ObjectKey
      readonly revision: Revision
      readonly previous?: StoredObject
      readonly missed?: boolean
    }
  /** Everything up to and including this revision was delivered. Sent when a backend learns it (bookmarks). */
  | { readonly type: 'progress'; readonly revision: Revision }

export type StoreErrorCode =
  | 'KeyExists'
  | 'KeyMissing'
  /** The object is at another revision than the writer expected. */
  | 'RevisionMismatch'
  /** The requested revision is older than the kept history: list again. */
  | 'Compacted'
  | 'TooLarge'
  /** The disk is full; nothing was written. */
  | 'Full'
  /** The write exceeds the storage limit of its logical cluster; nothing was written. */
  | 'OverBudget'
  /** Too many writes wait for a slow backend; this one was not begun. */
  | 'Busy'
  /** The objects of the logical cluster may not change, because it goes to another installation. */
  | 'Frozen'
  | 'Closed'
  /** The backend can't be reached, or the outcome of a write is unknown even after re-reading. */
  | 'Unavailable'

/** The error of every Store. The registry, which knows kinds, turns it into a Status. */
export class StoreError extends Error {
  readonly code: StoreErrorCode
  constructor(code: StoreErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'StoreError'
    this.code = code
  }
}

/** By its name: a store that is loaded late has a class of its own in the compiled program. */
export function isStoreError(error: unknown, code?: StoreErrorCode): error is StoreError {
  if (!(error instanceof Error) || error.name !== 'StoreError') return false
  return code === undefined || ('code' in error && error.code === code)
}

/** Selects objects: a prefix of the key order, or one resource over all logical clusters. */
export interface ListScope {
  readonly cluster?: ClusterId
  readonly resource?: string
  readonly namespace?: string
  /** Only objects whose stored value contains one of these texts. */
  readonly containing?: readonly string[]
}

export interface ListResult {
  readonly items: readonly StoredObject[]
  /** The list is the state at this revision. */
  readonly revision: Revision
  /** Set when `limit` cut the list: pass it as `after` to get the rest. */
  readonly next?: ObjectKey
}

export interface Waiting {
  readonly signal: AbortSignal
}

/** What a new store takes over from the store that it replaces. */
export interface Succession {
  readonly instanceId: string
  /** The newest revision there: new ones are above, and of changes up to it nothing is known. */
  readonly revision: Revision
}

/** Options of a create. */
export interface Creating extends Waiting {
  /**
   * The revision of the write is above this one. A host, whose revisions come from elsewhere, leaves it out of account, and
   * an etcd if it is more than 100,000 revisions away.
   */
  readonly above?: Revision
}

/** Options of an update. */
export interface Updating extends Waiting {
  readonly ifRevision: Revision
  /**
   * Nobody waits for the write: the backend may delay it for some milliseconds, to make it durable with another write.
   */
  readonly deferrable?: boolean
  /**
   * The write only renews an object, such as a Lease. A backend may keep the write in memory for some seconds: if the
   * process is killed in that time, the object is as it was before.
   */
  readonly renewal?: boolean
}

export interface Store extends AsyncDisposable {
  /** Size limit of one value in bytes, after the backend's encoding; larger writes fail TooLarge. */
  readonly maxValueBytes: number
  /** A random id made with the store and never changed: it identifies an installation's data. */
  readonly instanceId: string
  /**
   * True for resources whose renewals may be lost. Clients may have seen revisions of lost renewals, so they cannot
   * resume watches from before another process took over. Absent: no renewals are lost.
   */
  mayLoseRenewals?(resource: string): boolean

  /** The object, or undefined. Linearizable. */
  get(key: ObjectKey, options: Waiting): Promise<StoredObject | undefined>
  /** The objects of the scope in key order, at one revision. Linearizable when `after` is absent. */
  list(scope: ListScope, options: Waiting & { limit?: number; after?: ObjectKey }): Promise<ListResult>
  /** Resolves once it is on disk. Rejects KeyExists. */
  create(key: ObjectKey, value: Uint8Array, options: Creating): Promise<StoredObject>
  /** Resolves once it is on disk. Rejects KeyMissing, RevisionMismatch. */
  update(key: ObjectKey, value: Uint8Array, options: Updating): Promise<StoredObject>
  /** Resolves with the revision of the deletion. Rejects KeyMissing, RevisionMismatch. */
  delete(key: ObjectKey, options: Waiting & { ifRevision: Revision }): Promise<Revision>
  /** Deletes all objects of one logical cluster, in bounded batches. Each deletion is an event. */
  deleteCluster(cluster: ClusterId, options: Waiting): Promise<void>
  /**
   * Every change after `since`, in revision order, exactly once, for all logical clusters; ends only with the signal or
   * by rejecting. Rejects Compacted when `since` is older than the kept history. For writes through this Store
   * (embedded), events are delivered before the write's promise resolves; otherwise as soon as the backend sends them
   * (host).
   */
  watch(options: Waiting & { since: Revision }): AsyncIterable<readonly StoreEvent[]>
  /**
   * The changes after `since`, without a running watch: only the final state of every key. If another object had the
   * key at `since`, its deletion comes first. Lets a watch resume after a restart. Rejects Compacted when the deletions
   * after `since` are no longer known, and, without a cluster, when the backend does not support this or the changes
   * are too many.
   */
  changes(
    scope: { cluster?: ClusterId; resource: string },
    options: Waiting & { since: Revision },
  ): Promise<readonly StoreEvent[]>
  /** The newest revision that is durable and known here. */
  revision(options: Waiting): Promise<Revision>
}
