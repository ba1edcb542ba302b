// The requests of clients and their answers, as the clients recorded them: the only input of the checker.

/** The content of an object, written twice in every write, so that a partial write shows as two different copies. */
export interface Content {
  readonly data: Readonly<Record<string, string>>
  readonly mirror: Readonly<Record<string, string>>
}

/** An object at one revision, as a server returned it. */
export interface Seen {
  readonly cluster: string
  readonly name: string
  readonly uid: string
  readonly revision: number
  readonly content: Content
}

export type Outcome =
  /** Acknowledged. `seen`: the returned object; `uids`: the objects that a deletion listed. */
  | { readonly is: 'done'; readonly seen?: Seen; readonly uids?: readonly string[] }
  /** Refused for certain: it may never take effect. */
  | { readonly is: 'refused'; readonly code: number }
  /** No answer: it may have taken effect or not. */
  | { readonly is: 'unknown' }

export interface Write {
  readonly kind: 'create' | 'update' | 'patch' | 'delete' | 'deletecollection'
  readonly cluster: string
  /** For a collection: the prefix of its objects' names. */
  readonly name: string
  /** The written token, unique in the history. */
  readonly token?: string
  /** The key of the token; a create and an update replace all keys, a patch sets this one. */
  readonly key?: string
  /** The expected revision of a compare-and-swap. */
  readonly ifRevision?: number
  /** Milliseconds on one clock. `ended` of an unknown outcome: when it can no longer take effect. */
  readonly begun: number
  readonly ended: number
  readonly outcome: Outcome
}

/** All objects of a logical cluster, or of all of them. */
export interface ListRead {
  readonly cluster: string
  readonly revision: number
  readonly items: readonly Seen[]
  readonly begun: number
  readonly ended: number
  /** False for a list at a revision that the client named: it may be old. */
  readonly latest: boolean
}

export interface GetRead {
  readonly cluster: string
  readonly name: string
  readonly seen: Seen | undefined
  readonly begun: number
  readonly ended: number
}

export type Entry =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly seen: Seen }
  | { readonly type: 'BOOKMARK'; readonly revision: number }

/** One watch request, from its start to its end. */
export interface Session {
  /** The requested resourceVersion. */
  readonly since: number
  /**
   * Set if the server restarted since the last session, to its revision then: for changes in between, only the final
   * state of each object is required.
   */
  readonly restartedAt?: number
  /** When it was asked for, in milliseconds on the clock of writes. Only people who read a history need it. */
  readonly begun?: number
  readonly entries: Entry[]
}

/** A list and the watches that continue it. A 410 begins a new one. */
export interface Epoch {
  readonly list: ListRead
  readonly sessions: Session[]
}

export interface Watch {
  readonly title: string
  /** A logical cluster, or `*`. */
  readonly cluster: string
  readonly epochs: Epoch[]
}

export interface History {
  readonly writes: readonly Write[]
  readonly lists: readonly ListRead[]
  readonly gets: readonly GetRead[]
  readonly watches: readonly Watch[]
}

/** Whether this write, a deletion, may delete the object with this name. */
export function mayDelete({ kind, name }: Write, object: string): boolean {
  return kind === 'deletecollection' ? object.startsWith(name) : kind === 'delete' && name === object
}

export function isInScope(scope: string, cluster: string): boolean {
  return scope === '*' || scope === cluster
}
